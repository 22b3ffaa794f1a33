"""A capture while it is being written: a directory that nobody else sees until one rename publishes it."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from . import disk
from .errors import StoreError, sentence
from .names import checked_name, created_at, new_id, session_slug
from .owner import OWNER_FILE, take
from .progress import PROGRESS_FILE
from .record import (
    MAX_CELL_BYTES,
    MAX_RECORD_BYTES,
    RECORD_FILE,
    CaptureFile,
    Record,
    Status,
    parse,
    serialize,
)

_ROLES = (
    ("perfetto_trace.json.gz", "perfetto"),
    (".trace.json.gz", "trace_json"),
    (".xplane.pb", "xplane"),
    (".nsys-rep", "nsys"),
)


_PATIENCE_S = 1.0
_LARGE_BYTES = 100_000_000

#: Every draft that this process has made and that something still holds.
_drafts: WeakSet[Draft] = WeakSet()


def drafts() -> set[Draft]:
    """Give the drafts of this process that are being written or were not long ago."""
    return set(_drafts)


def role_of(path: str) -> str:
    """Tell a file's role by its name: `xplane`, `trace_json`, `perfetto`, `nsys` or `other`."""
    return next((role for ending, role in _ROLES if path.endswith(ending)), "other")


@dataclass(frozen=True)
class Place:
    """Where drafts are written and published: inside a store, or a plain directory (`--dir`)."""

    parent: Path
    draft_name: str
    target: Path
    move: Callable[[Path, Path], None]
    private: bool
    elsewhere: str


class Draft:
    """One capture being written. Use it in a `with` block: what isn't published by its end is discarded.

    `directory` exists and is private; write the capture's files there. For a trace, JAX's log directory is
    `directory` itself and its session id is `session`, so that XProf finds the run `<id>/<session>`.
    """

    def __init__(self, kind: str, name: str, place: Place, capture_id: str = "") -> None:
        """Make the draft's directory; raises InvalidValue for the name and OSError for the disk.

        `capture_id` is the identifier of a capture that is imported; FileExistsError if it is just now.
        """
        self.kind = kind
        self.name = checked_name(name)
        self.session = session_slug(self.name)
        self.record: Record | None = None
        """What it was published as."""
        self.outlives_cell = False
        """Whether later cells go on with it, from a magic's start to its stop."""
        self.on_slow_disk: Callable[[], None] | None = None
        """Called, once, where publishing takes longer than a second."""
        self._place = place
        while True:
            self.id = capture_id or new_id()
            self.directory = place.parent / place.draft_name.format(self.id)
            try:
                self.directory.mkdir(disk.DIRECTORY_MODE if self._place.private else 0o777)
                break
            except FileExistsError:  # the same millisecond and the same six digits
                if capture_id:
                    raise
        self._owner: FileIO | None = take(self.directory, private=self._place.private)
        _drafts.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

    @property
    def is_open(self) -> bool:
        """Whether it is neither published nor discarded yet."""
        return self._owner is not None

    @property
    def progress_place(self) -> Path | None:
        """Where to tell how it goes (`Progress`); None outside a store, where nobody looks."""
        return self.directory if self._place.private and self._owner is not None else None

    @property
    def reference(self) -> str:
        """What names it, once it is published: its name in a store, elsewhere its directory."""
        return self.name if self._place.private else str(self._place.target / self.id)

    @property
    def trash(self) -> Path:
        """A free name beside the draft for what is given up; a sweep deletes it, if nobody else does."""
        name = f"trash-{self.id}-0" if self._place.private else self._place.draft_name.format(new_id())
        return self._place.parent / name

    def discard(self) -> None:
        """Delete the draft; nothing happens when it is published or discarded already."""
        if self._owner is not None:
            try:
                disk.remove_tree(self.directory)
            finally:  # what an interrupt leaves of it is nobody's, and swept
                self._owner.close()
                self._owner = None

    def refusal(self, error: OSError) -> StoreError:
        """Give the error that tells of a disk which does not take it."""
        what = f"The capture '{self.name}' can't be written, and nothing of it was kept"
        return StoreError(sentence(what, self._place.target, error, self._place.elsewhere))

    def publish(
        self,
        *,
        status: Status,
        reason: str = "",
        notebook: str = "",
        magic: str = "",
        cell: str = "",
        environment: Mapping[str, Any] | None = None,
        summary: Mapping[str, Any] | None = None,
        notices: Iterable[str] = (),
        findings: Iterable[Mapping[str, Any]] = (),
    ) -> Record:
        """Write the record, flush everything, and put the capture into place with one rename.

        The files are those found in the directory. Raises StoreError (and discards the draft) when the disk
        is full or can't be written: then no part of the capture is left.
        """
        if self._owner is None:
            raise StoreError(
                f"The capture '{self.name}' was published or discarded already; start another one."
            )
        try:
            files, left_out = self._files()
            return self._publish(
                Record(
                    id=self.id,
                    kind=self.kind,
                    name=self.name,
                    created=created_at(self.id),
                    status=status,
                    reason=reason,
                    notebook=notebook,
                    magic=magic,
                    cell=cell,
                    environment=dict(environment or {}),
                    files=files,
                    summary=dict(summary or {}),
                    notices=(*notices, *left_out),
                    findings=tuple(findings),
                    xprof_run=self._xprof_run(files),
                )
            )
        except OSError as error:
            self.discard()
            raise self.refusal(error) from error

    def publish_as(self, record: Record) -> Record:
        """Publish the files under an imported capture's record; raises StoreError as `publish` does."""
        try:
            files, left_out = self._files()
            notices = tuple(dict.fromkeys((*record.notices, *left_out)))
            run = record.xprof_run or self._xprof_run(files)
            return self._publish(replace(record, id=self.id, files=files, notices=notices, xprof_run=run))
        except OSError as error:
            self.discard()
            raise self.refusal(error) from error

    def _publish(self, record: Record) -> Record:
        """Write `record` and move the draft into place; gives the record as readers will see it."""
        record, content = _fitting(record)
        patience = _Patience(self.on_slow_disk)
        disk.settle(
            self.directory, private=self._place.private, without=OWNER_FILE, before=patience.before_flush
        )
        patience.before_flush(len(content))
        disk.write_atomically(self.directory / RECORD_FILE, content, private=self._place.private)
        # Not before the record is there: on a full disk its room would let a damaged capture pass as whole.
        (self.directory / PROGRESS_FILE).unlink(missing_ok=True)
        (self.directory / f".{PROGRESS_FILE}.new").unlink(missing_ok=True)
        patience.before_flush(0)
        self._move(record)
        return record

    def _move(self, record: Record) -> None:
        place = self._place.target / self.id
        self._place.move(self.directory, place)
        # First of all: whatever interrupts now, nothing discards a capture.
        owner, self._owner = self._owner, None
        self.directory, self.record = place, record
        with suppress(OSError):  # the capture is in place; a stray owner file harms nobody
            (place / OWNER_FILE).unlink()
        if owner is not None:
            owner.close()
        with suppress(OSError):
            disk.flush_directory(self._place.target)

    def _files(self) -> tuple[tuple[CaptureFile, ...], list[str]]:
        ours = (OWNER_FILE, PROGRESS_FILE, f".{PROGRESS_FILE}.new", RECORD_FILE)
        found = {path: size for path, size in disk.plain_files(self.directory).items() if path not in ours}
        odd = [path for path in found if any("\ud800" <= character <= "\udfff" for character in path)]
        notices = [f"{len(odd)} files have names that are not UTF-8 and can't be listed."] if odd else []
        return tuple(
            CaptureFile(path, found[path], role_of(path)) for path in found if path not in odd
        ), notices

    def _xprof_run(self, files: tuple[CaptureFile, ...]) -> str | None:
        place = f"plugins/profile/{self.session}/"
        there = any(file.role == "xplane" and file.path.startswith(place) for file in files)
        return f"{self.id}/{self.session}" if there else None


class _Patience:
    """Tells, once, that a disk takes long: after a second, or before so much that it may take one."""

    def __init__(self, tell: Callable[[], None] | None) -> None:
        self._tell = tell
        self._began_s = time.monotonic()

    def before_flush(self, size_bytes: int) -> None:
        """Look at the time; what is flushed next can't be looked at before it is done."""
        is_long = time.monotonic() - self._began_s > _PATIENCE_S or size_bytes > _LARGE_BYTES
        if self._tell is not None and is_long:
            tell, self._tell = self._tell, None
            with suppress(OSError, ValueError):  # a closed terminal must not cost the capture
                tell()


def _fitting(record: Record) -> tuple[Record, bytes]:
    """Give the record and its file's content, shortened (with a notice) where it would be too long."""
    cell = record.cell.encode("utf-8", "replace")
    if len(cell) > MAX_CELL_BYTES:
        notice = f"The cell is longer than {MAX_CELL_BYTES // 1024} KiB: its record keeps the beginning."
        cell = cell[:MAX_CELL_BYTES].decode("utf-8", "ignore")
        record = replace(record, cell=cell, notices=(*record.notices, notice))
    content = serialize(record)
    if len(content) > MAX_RECORD_BYTES and record.steps is not None:
        notice = (
            "These are too many steps to keep each one's duration: their median, least and most are kept."
        )
        steps = {key: value for key, value in record.steps.items() if key != "durations_ms"}
        record = replace(
            record, summary={**record.summary, "steps": steps}, notices=(*record.notices, notice)
        )
        content = serialize(record)
    if len(content) > MAX_RECORD_BYTES:
        raise OSError(errno.EFBIG, "the record is too large")
    # What readers will see: the same values as after a round trip through JSON.
    return parse(content), content
