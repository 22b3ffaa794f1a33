"""A trace or report from elsewhere, or another store's capture, becomes a capture of this store."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jupyterlab_jaxprof.captures import (
    Draft,
    Record,
    RecordError,
    Status,
    Store,
    UnreadableCapture,
    disk,
    is_id,
)
from jupyterlab_jaxprof.captures.draft import role_of
from jupyterlab_jaxprof.captures.index import read_record
from jupyterlab_jaxprof.captures.names import cleaned_name, new_id
from jupyterlab_jaxprof.captures.record import RECORD_FILE
from jupyterlab_jaxprof.environment import own_version

from .archives import is_archive, unpack
from .examine import examine
from .find import ReportError
from .report import record_of

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timeline.files import Kind

#: The ending by which a viewer knows a file of that kind, and other endings that are as good.
_ENDINGS = {"xplane": (".xplane.pb",), "sqlite": (".sqlite",), "nsys-rep": (".nsys-rep", ".qdstrm")}
#: Beside a trace these belong to it: the same events in another form.
_COMPANIONS = frozenset({"trace_json", "perfetto"})
#: No profiler of JAX is older.
_EARLIEST = datetime(2015, 1, 1, tzinfo=UTC)


class DuplicateError(ReportError):
    """The store has it already, as the capture `capture_id`."""

    def __init__(self, message: str, capture_id: str) -> None:
        super().__init__(message)
        self.capture_id = capture_id


def import_path(store: Store, path: Path, *, name: str = "", move: bool = False) -> Record:
    """Make a capture of a trace, a report, a directory with one, or the zip that a capture downloads as.

    The files are copied, or taken away with `move`; a report that can't be opened here is kept all the same,
    with the reason. Raises ReportError where there is nothing to keep (DuplicateError where the store has it)
    and StoreError where the disk does not take it.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow links)
    with _without(path.parent if move else None):
        if not is_archive(path):
            return _import(store, path, name, move=move)
        with store.workspace() as workspace, _without(workspace.files):
            unpack(path, workspace.files)
            return _import(store, workspace.files, name or _stem(path.name), move=True)


@contextmanager
def _without(directory: Path | None) -> Generator[None]:
    """Tell what is wrong without the path of a directory of ours, which the user never saw."""
    try:
        yield
    except ReportError as error:
        if directory is None or str(directory) not in str(error):
            raise
        text = str(error).replace(f"{directory}/", "").replace(str(directory), "It")
        if isinstance(error, DuplicateError):
            raise DuplicateError(text, error.capture_id) from None
        raise ReportError(text) from None


def _import(store: Store, path: Path, name: str, *, move: bool) -> Record:
    capture = _capture_in(path)
    if capture is not None:
        return _import_capture(store, capture, move=move)
    files = _files_of(path)
    _check_new(store, [file for file, _ in files])
    record = _read(path, files)
    moment = _moment(record, files)
    record = replace(
        record,
        name=cleaned_name(name or _name_of(path, files)),
        created=moment.isoformat(),
        environment={**record.environment, "imported": files[0][0].name},
    )
    with store.begin(record.kind, record.name, capture_id=new_id(moment)) as draft:
        _take(files, record, draft, move=move)
        return draft.publish_as(replace(record, files=(), created=moment.isoformat()))


def _read(path: Path, files: Sequence[tuple[Path, Kind]]) -> Record:
    """Read what the files say; a report that only another nsys could open says nothing yet, and is kept."""
    directory = path if path.is_dir() else path.parent
    try:
        return record_of(examine([path]), path, directory)
    except ReportError as error:
        if files[0][1] != "nsys-rep" or not _is_report(files[0][0]):
            raise
        return Record(
            id="",
            kind="nsys",
            name="",
            created="",
            status=Status.PARTIAL,
            reason=f"The report is kept, but could not be read here. {error}".replace(f"{directory}/", ""),
            environment={"devices": [], "jaxprof": own_version()},
        )


def _is_report(path: Path) -> bool:
    from jupyterlab_jaxprof.timeline.nsight_export import REPORT_MAGIC, STREAM_MAGIC

    with path.open("rb") as file:
        return file.read(64).startswith((REPORT_MAGIC, STREAM_MAGIC))


def _files_of(path: Path) -> list[tuple[Path, Kind]]:
    from jupyterlab_jaxprof.timeline.files import find
    from jupyterlab_jaxprof.timeline.model import ReadError

    try:
        return find([path]).files
    except ReadError as error:
        raise ReportError(str(error)) from error


def _take(files: Sequence[tuple[Path, Kind]], record: Record, draft: Draft, *, move: bool) -> None:
    """Put the files where the viewers look for them.

    A trace that was cut off goes where XProf does not look, for it would fail there.
    """
    complete = record.status is Status.OK
    session = draft.directory / "plugins" / "profile" / draft.session
    for path, kind in files:
        endings = _ENDINGS[str(kind)]
        ending = next((one for one in endings if path.name.endswith(one)), endings[0])
        if kind == "xplane":
            name = path.name if path.name.endswith(ending) else path.name + ending
            _put(path, session / (name if complete else f"{name}.unreadable"), move=move)
        else:
            _put(path, draft.directory / f"{draft.session}{ending}", move=move)
    if files[0][1] == "xplane" and complete:
        for path in sorted(files[0][0].parent.iterdir()):
            if role_of(path.name) in _COMPANIONS and path.is_file() and not path.is_symlink():
                _put(path, session / path.name, move=move)


def _put(source: Path, target: Path, *, move: bool) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if move:
            shutil.move(source, target)
        else:  # no hard link: whoever writes into the file, or changes its mode, would change the other too
            shutil.copyfile(source, target)
    except OSError as error:
        raise ReportError(
            f"{source.name} can't be brought into the store: {error.strerror or error}. Nothing of it was "
            "kept."
        ) from error


def _capture_in(path: Path) -> Path | None:
    """Give the directory of a capture, which `path` is or holds as the only thing; None for anything else."""
    if (path / RECORD_FILE).is_file():
        return path
    if not path.is_dir():
        return None
    below = [entry for entry in path.iterdir() if not entry.name.startswith((".", "__MACOSX"))]
    only = below[0] if len(below) == 1 else None
    return only if only is not None and not only.is_symlink() and (only / RECORD_FILE).is_file() else None


def _import_capture(store: Store, directory: Path, *, move: bool) -> Record:
    """Take a capture of another store as it is, with its identifier, name, notes and findings."""
    try:
        record = read_record(directory)
    except RecordError as error:
        raise ReportError(f"The capture in {directory} can't be used. {error}") from None
    with suppress(UnreadableCapture):
        if (store.captures_dir / record.id).exists():
            raise DuplicateError(
                f"The store has this capture already: {record.name!r} ({record.id}).", record.id
            )
    missing = [file.path for file in record.files if not _is_there(directory, file.path, file.size_bytes)]
    if missing:
        raise ReportError(
            f"The capture {record.name!r} is not whole: {', '.join(missing[:3])} is missing or cut short. "
            "Download or copy it again."
        )
    _check_new(store, [directory / file.path for file in record.files if file.role != "other"])
    try:
        with store.begin(record.kind, cleaned_name(record.name), capture_id=record.id) as draft:
            for file in record.files:
                _put(directory / file.path, draft.directory / file.path, move=move)
            return draft.publish_as(record)
    except FileExistsError:
        raise DuplicateError(f"The capture {record.name!r} is being imported already.", record.id) from None


def _is_there(directory: Path, path: str, size_bytes: int) -> bool:
    try:
        descriptor = disk.open_below(directory, path)  # follows no link
    except OSError:
        return False
    try:
        return os.fstat(descriptor).st_size == size_bytes
    finally:
        os.close(descriptor)


def _check_new(store: Store, files: Sequence[Path]) -> None:
    """Raise DuplicateError where a capture of the store holds one of these files."""
    sizes: dict[int, list[Path]] = {}
    for file in files:
        if size := file.stat().st_size:
            sizes.setdefault(size, []).append(file)
    with suppress(FileNotFoundError):  # no store yet
        for directory in store.captures_dir.iterdir():
            if is_id(directory.name) and (found := _holding(directory, sizes)) is not None:
                name = _name_in(store, directory.name)
                raise DuplicateError(
                    f"The store has {found.name} already: it is in the capture {name!r} ({directory.name}).",
                    directory.name,
                )


def _holding(directory: Path, sizes: Mapping[int, Sequence[Path]]) -> Path | None:
    """Give that of the files which a capture holds, byte for byte."""
    with suppress(OSError):  # deleted meanwhile
        for path, size in disk.plain_files(directory).items():
            for file in sizes.get(size, ()):
                if filecmp.cmp(file, directory / path, shallow=False):
                    return file
    return None


def _name_in(store: Store, capture_id: str) -> str:
    try:
        return store.get(capture_id).name
    except Exception:  # noqa: BLE001 (a damaged record has no name, and it is only for the sentence)
        return capture_id


def _moment(record: Record, files: Sequence[tuple[Path, Kind]]) -> datetime:
    """Tell when it was recorded: by itself, else by its file; now where neither can be."""
    now = datetime.now(UTC)
    moments: list[datetime] = []
    with suppress(ValueError):
        moments.append(datetime.fromisoformat(record.created).astimezone(UTC))
    with suppress(OSError, OverflowError, ValueError):
        moments.append(datetime.fromtimestamp(files[0][0].stat().st_mtime, UTC))
    return next((moment for moment in moments if _EARLIEST <= moment <= now), now)


def _name_of(path: Path, files: Sequence[tuple[Path, Kind]]) -> str:
    """Name it after its session (`plugins/profile/<session>`), its directory or its file."""
    session = files[0][0].parent
    if session.parent.name == "profile" and session.parent.parent.name == "plugins":
        return session.name
    return path.name if path.is_dir() and path.name != "files" else _stem(files[0][0].name)


def _stem(name: str) -> str:
    known = (".zip", *(ending for endings in _ENDINGS.values() for ending in endings))
    return next((name.removesuffix(one) for one in known if name.endswith(one)), name) or name
