"""The store: one directory that kernels and the Jupyter server agree on without talking.

docs/architecture.md describes its layout. Readers take no lock and see every capture whole or not at all,
since captures come and go by one rename; writers hold `lock` only while a record or a name changes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from . import disk
from .draft import Draft, Place
from .errors import (
    ANOTHER_DIRECTORY,
    ANOTHER_STORE,
    InvalidValue,
    StoreError,
    UnknownCapture,
    UnreadableCapture,
    sentence,
)
from .index import Entry, Index, folded, read_all, read_record
from .names import checked_name, checked_notes, is_id
from .owner import IN_DIRECTORY, IN_STORE, sweep
from .page import OverLimit, Page, Row, files_problem
from .progress import Running, running
from .record import RECORD_FILE, NewerRecord, Record, RecordError, encode, is_relative_path
from .settings import read_settings
from .sizes import parse_size
from .workspace import Workspace

_NEARLY_FULL_BYTES = 1024 * 1024
#: A trace is written as a dozen files and directories.
_NEARLY_FULL_FILES = 16


class Store:
    """The captures below one directory. Making a Store touches nothing; methods look at the disk anew."""

    def __init__(self, root: str | Path, size_limit_bytes: int | None = None) -> None:
        self.root = _absolute(root)
        self.captures_dir = self.root / "captures"
        self.size_limit_bytes = size_limit_bytes or None
        self.limit_problem: str | None = None
        self._partial_dir = self.root / "partial"
        self._lock_path = self.root / "lock"
        self._index = Index(self.captures_dir)

    @classmethod
    def default(cls) -> Store:
        """Give this process's store: JAXPROF_DIR, else Jupyter's data directory; limit JAXPROF_SIZE_LIMIT."""
        root = os.environ.get("JAXPROF_DIR", "").strip()
        store = cls(_anchored(root) if root else _in_data_dir())
        try:
            store.size_limit_bytes = parse_size(os.environ.get("JAXPROF_SIZE_LIMIT", ""))
        except InvalidValue as error:
            store.limit_problem = f"JAXPROF_SIZE_LIMIT is ignored. {error}"
        return store

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    # Writing

    def begin(self, kind: str, name: str, *, capture_id: str = "") -> Draft:
        """Start a capture. Raises StoreError, before anything is measured, when it could not be written.

        `capture_id` is the identifier of one that is imported; FileExistsError when that happens already.
        """
        checked_name(name)
        self.prepare()
        try:
            sweep(self._partial_dir, IN_STORE)
            place = Place(self._partial_dir, "{}", self.captures_dir, self._publish, True, ANOTHER_STORE)
            return Draft(kind, name, place, capture_id)
        except FileExistsError:
            raise
        except OSError as error:
            raise StoreError(sentence("No capture can be written", self.root, error)) from error

    def workspace(self) -> Workspace:
        """Make a private directory for files on their way into a capture. Raises StoreError."""
        self.prepare()
        try:
            sweep(self._partial_dir, IN_STORE)
            return Workspace(self._partial_dir)
        except OSError as error:
            raise StoreError(sentence("Nothing can be imported", self.root, error)) from error

    def prepare(self) -> None:
        """Make the store's directories where they are missing. Raises StoreError when that can't be done."""
        try:
            for directory in (self.root, self.captures_dir, self._partial_dir):
                disk.make_private(directory)
            with disk.locked(self._lock_path):
                pass  # made now, so that a deletion on a full disk finds it
        except OSError as error:
            raise StoreError(sentence("No capture can be written", self.root, error)) from error

    def sweep(self) -> bool:
        """Delete what dead processes have left of what they wrote; tells whether anything is there still.

        Whoever begins a capture does that too. Raises nothing.
        """
        sweep(self._partial_dir, IN_STORE)
        try:
            return any(self._partial_dir.iterdir())
        except OSError:
            return False

    @staticmethod
    def begin_in(directory: str | Path, kind: str, name: str) -> Draft:
        """Start a capture that is published as the plain directory `<directory>/<id>`, outside any store."""
        checked_name(name)
        parent = _absolute(directory)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            sweep(parent, IN_DIRECTORY)
            return Draft(
                kind, name, Place(parent, ".{}.partial", parent, os.rename, False, ANOTHER_DIRECTORY)
            )
        except OSError as error:
            raise StoreError(
                sentence("No capture can be written", parent, error, ANOTHER_DIRECTORY)
            ) from error

    def update(
        self,
        capture_id: str,
        *,
        name: str | None = None,
        notes: str | None = None,
        pinned: bool | None = None,
    ) -> Record:
        """Change what the user may change; all else in its file stays. Returns the new record."""
        changes: dict[str, Any] = {}
        if name is not None:
            changes["name"] = checked_name(name)
        if notes is not None:
            changes["notes"] = checked_notes(notes)
        if pinned is not None:
            if not isinstance(pinned, bool):  # pyright: ignore[reportUnnecessaryIsInstance] (REST brings anything)
                raise InvalidValue("'pinned' must be true or false.")
            changes["pinned"] = pinned
        directory = self.directory(capture_id)
        try:
            with disk.locked(self._lock_path), disk.changing(self.captures_dir):
                data = self._read(capture_id)[1] | changes
                record = Record.from_json(data)
                disk.write_atomically(directory / RECORD_FILE, encode(data))
        except FileNotFoundError:
            raise _unknown(capture_id) from None
        except OSError as error:
            raise StoreError(sentence("The change can't be saved", self.root, error)) from error
        return record

    def delete(self, capture_id: str) -> None:
        """Delete a capture, damaged ones too: it leaves the list with one rename, and then the disk."""
        directory = self.directory(capture_id)
        trash = self._partial_dir / f"trash-{capture_id}-{os.urandom(4).hex()}"
        try:
            disk.make_private(self._partial_dir)
            with disk.locked(self._lock_path), disk.changing(self.captures_dir):
                directory.rename(trash)
        except FileNotFoundError:
            raise _unknown(capture_id) from None
        except OSError as error:
            raise StoreError(sentence("The capture can't be deleted", self.root, error)) from error
        disk.remove_tree(trash)

    def _publish(self, source: Path, place: Path) -> None:
        with disk.locked(self._lock_path), disk.changing(self.captures_dir):
            source.rename(place)

    # Reading

    def version(self) -> float:
        """Give a number that changes whenever a capture comes, changes or goes; 0.0 without a store."""
        try:
            return self.captures_dir.stat().st_mtime
        except OSError:
            return 0.0

    def running_version(self) -> float:
        """Give a number that changes when a measurement begins, tells a phase or ends; 0.0 without any."""
        try:
            return self._partial_dir.stat().st_mtime
        except OSError:
            return 0.0

    def running(self) -> Sequence[Running]:
        """Give what is measured now by any living process, the oldest first."""
        return running(self._partial_dir)

    def look(self) -> None:
        """Learn what a list needs of each capture, so that the next list is quick. Raises nothing."""
        with suppress(OSError):  # the list will tell
            self._index.refresh()

    def list(
        self,
        *,
        offset: int = 0,
        limit: int = 50,
        kind: str | None = None,
        notebook: str | None = None,
        text: str | None = None,
        ids: Collection[str] | None = None,
    ) -> Page:
        """List captures, newest first. `text`: each word is in name, notes, notebook, cell, or begins the id.

        With `ids`: those of them that there are.

        Raises nothing for what is on disk: a store that can't be read is a page with a problem and no rows.
        """
        problems = [problem for problem in (self.problem(), self.limit_problem) if problem]
        limit_bytes = self._limit_bytes()
        try:
            entries = self._index.refresh()
        except OSError as error:
            entries = []
            problems = problems or [sentence("The captures can't be read", self.captures_dir, error)]
        words = folded(text or "").split()
        matched = entries
        if ids is not None or kind or notebook or words:
            matched = [
                entry
                for entry in entries
                if (ids is None or entry.id in ids)
                and (not kind or entry.kind == kind)
                and (not notebook or entry.notebook == notebook)
                and all(word in entry.text or entry.id.startswith(word) for word in words)
            ]
        size_bytes = sum(entry.disk_bytes for entry in entries)
        start = max(offset, 0)
        shown = matched[start : start + max(limit, 0)]
        return Page(
            rows=[row for entry in shown if (row := self._row(entry)) is not None],
            matched=len(matched),
            total=len(entries),
            size_bytes=size_bytes,
            size_limit_bytes=limit_bytes,
            over_limit=_over_limit(entries, size_bytes, limit_bytes),
            problems=problems,
            kinds=sorted({entry.kind for entry in entries} - {""}),
            notebooks=sorted({entry.notebook for entry in entries} - {""}),
        )

    def get(self, capture_id: str) -> Record:
        """Read one record. Raises UnknownCapture, or UnreadableCapture with the record's problem."""
        return self._read(capture_id)[0]

    def _read(self, capture_id: str) -> tuple[Record, dict[str, Any]]:
        directory = self.directory(capture_id)
        try:
            return read_all(directory)
        except RecordError as error:
            if not directory.is_dir():
                raise _unknown(capture_id) from None
            raise UnreadableCapture(f"The capture {capture_id} can't be used. {error}") from error

    def directory(self, capture_id: str) -> Path:
        """Give a capture's directory; raises UnknownCapture, for anything that is no identifier too."""
        directory = self.captures_dir / capture_id if is_id(capture_id) else None
        if directory is None or directory.is_symlink() or not directory.is_dir():
            raise _unknown(capture_id)
        return directory

    def open(self, capture_id: str, path: str) -> BinaryIO:
        """Open a file that the record lists, no link followed; raises UnknownCapture for any other.

        It stays readable when the capture is deleted meanwhile.
        """
        listed = {file.path for file in self.get(capture_id).files}
        if path not in listed or not is_relative_path(path):
            raise UnknownCapture(f"The capture {capture_id} has no file {path!r}: look at its list of files.")
        try:
            return os.fdopen(disk.open_below(self.directory(capture_id), path), "rb")
        except OSError as error:
            raise UnknownCapture(
                f"The file {path!r} of the capture {capture_id} can't be read: deleted or replaced since "
                f"({error.strerror})."
            ) from error

    def disk_bytes(self, capture_id: str) -> int:
        """Give the bytes that a capture takes on disk, viewers' caches included."""
        try:
            return disk.total_bytes(self.directory(capture_id))
        except OSError:
            raise _unknown(capture_id) from None

    def problem(self) -> str | None:
        """Say in a sentence why the store can't be written (or read); None when it can. Changes nothing."""
        place = self.root
        try:
            for directory in (self.captures_dir, self._partial_dir, self.root):
                if disk.exists(directory):
                    _check_access(directory)
            while not disk.exists(place):
                place = place.parent
            _check_access(place)
            free = os.statvfs(place)
            if free.f_blocks and free.f_bavail * free.f_frsize < _NEARLY_FULL_BYTES:
                raise OSError(errno.ENOSPC, "full")
            if free.f_files and free.f_favail < _NEARLY_FULL_FILES:
                raise OSError(errno.ENOSPC, "full of files")
        except OSError as error:
            return sentence("No capture can be written", self.root, error)
        return None

    def _row(self, entry: Entry) -> Row | None:
        directory = self.captures_dir / entry.id
        record, problem, name = None, None, ""
        try:
            record = read_record(directory)
            name = record.name
        except RecordError as error:
            if not directory.is_dir():  # deleted meanwhile
                return None
            problem = str(error)
            name = str(error.known.get("name") or "") if isinstance(error, NewerRecord) else ""
        try:
            found = disk.plain_files(directory)
            on_disk = sum(found.values())
            problem = problem or (files_problem(record, found) if record else None)
        except OSError:
            on_disk = entry.disk_bytes
        return Row(
            id=entry.id,
            record=record,
            problem=problem,
            kind=entry.kind,
            name=name or entry.id,
            size_bytes=record.size_bytes if record else entry.size_bytes,
            disk_bytes=on_disk,
        )

    def _limit_bytes(self) -> int | None:
        """Give the limit that the user's settings have, else the configuration's."""
        limit = read_settings(self.root).values.get("size_limit")
        return parse_size(limit) if limit else self.size_limit_bytes


@cache
def _anchored(root: str) -> Path:
    """Make JAXPROF_DIR absolute once in a process: a notebook that changes its directory keeps its store."""
    return _absolute(root)


def _in_data_dir() -> Path:
    """Give the place in Jupyter's data directory. Without a home directory there is none: StoreError."""
    from jupyter_core.paths import jupyter_data_dir

    try:
        place = Path(jupyter_data_dir(), "jaxprof")
    except RuntimeError:  # neither HOME nor an entry of this user in the system's list
        place = Path("~")
    if not place.is_absolute():
        raise StoreError(
            "There is no place for captures: this user has no home directory (HOME is not set). Set "
            "JAXPROF_DIR to a directory for them, and restart Jupyter."
        )
    return place


def _absolute(path: str | Path) -> Path:
    """Make a path absolute at once, since a notebook may change its directory; `~` is the home directory."""
    try:
        path = Path(path).expanduser()
    except RuntimeError:  # `~nobody`: there is no such user, and no such home
        path = Path(path)
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow links)


def _check_access(directory: Path) -> None:
    """Raise OSError, with the reason, unless files can be made in `directory`."""
    if not directory.is_dir():
        raise OSError(errno.ENOENT if directory.is_symlink() else errno.ENOTDIR, "not a directory")
    if os.access(
        directory, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    ):
        return
    read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
    raise OSError(errno.EROFS if read_only else errno.EACCES, "not writable")


def _unknown(capture_id: str) -> UnknownCapture:
    return UnknownCapture(
        f"There is no capture {str(capture_id)[:80]!r} in this store: it may have been deleted."
    )


def _over_limit(entries: Iterable[Entry], size_bytes: int, limit_bytes: int | None) -> OverLimit:
    """Tell by how much the store is over its limit, and its oldest unpinned captures that would mend it.

    Nothing is ever deleted without the user: the ids are an offer. A damaged one might be pinned.
    """
    excess = size_bytes - (limit_bytes or 0)
    if not limit_bytes or excess <= 0:
        return OverLimit(0, ())
    ids: list[str] = []
    freed = 0
    for entry in sorted(entries, key=lambda entry: entry.id):
        if freed >= excess:
            break
        if entry.pinned is False:
            ids.append(entry.id)
            freed += entry.disk_bytes
    return OverLimit(excess, tuple(ids))
