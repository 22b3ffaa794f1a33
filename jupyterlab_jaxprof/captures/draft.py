"""A capture while it is being written: a directory that nobody else sees until one rename publishes it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import disk
from .errors import StoreError, sentence
from .names import ID_PATTERN, checked_name, created_at, new_id, session_slug
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

OWNER_FILE = ".owner"
_TRASH = re.compile(rf"trash-{ID_PATTERN.pattern}-[0-9a-f]+")
# What a sweep may look at: all that a store's partial/ holds, but in a user's own directory (--dir) hidden
# drafts alone: there a plain identifier is a published capture.
IN_STORE = re.compile(rf"{ID_PATTERN.pattern}|{_TRASH.pattern}")
IN_DIRECTORY = re.compile(rf"\.{ID_PATTERN.pattern}\.partial")
_UNOWNED_GRACE_S = 3600.0
_ROLES = (
    ("perfetto_trace.json.gz", "perfetto"),
    (".trace.json.gz", "trace_json"),
    (".xplane.pb", "xplane"),
    (".nsys-rep", "nsys"),
)


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

    def __init__(self, kind: str, name: str, place: Place) -> None:
        """Make the draft's directory; raises InvalidValue for the name and OSError for the disk."""
        self.kind = kind
        self.name = checked_name(name)
        self.session = session_slug(self.name)
        self._place = place
        while True:
            self.id = new_id()
            self.directory = place.parent / place.draft_name.format(self.id)
            try:
                self.directory.mkdir(disk.DIRECTORY_MODE if self._place.private else 0o777)
                break
            except FileExistsError:  # the same millisecond and the same six digits
                continue
        try:
            if self._place.private:
                disk.restrict(self.directory, disk.DIRECTORY_MODE)
            self._owner: FileIO | None = _own(self.directory)
        except BaseException:
            disk.remove_tree(self.directory)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

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
            disk.remove_tree(self.directory)
            self._owner.close()
            self._owner = None

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
            what = f"The capture '{self.name}' can't be written, and nothing of it was kept"
            raise StoreError(sentence(what, self._place.target, error, self._place.elsewhere)) from error

    def _publish(self, record: Record) -> Record:
        """Write `record` and move the draft into place; gives the record as readers will see it."""
        record, content = _fitting(record)
        disk.settle(self.directory, private=self._place.private, without=OWNER_FILE)
        disk.write_atomically(self.directory / RECORD_FILE, content, private=self._place.private)
        self._move()
        return record

    def _move(self) -> None:
        place = self._place.target / self.id
        self._place.move(self.directory, place)
        # First of all: whatever interrupts now, nothing discards a capture.
        owner, self._owner = self._owner, None
        self.directory = place
        with suppress(OSError):  # the capture is in place; a stray owner file harms nobody
            (place / OWNER_FILE).unlink()
        if owner is not None:
            owner.close()
        with suppress(OSError):
            disk.flush_directory(self._place.target)

    def _files(self) -> tuple[tuple[CaptureFile, ...], list[str]]:
        found = {path: size for path, size in disk.plain_files(self.directory).items() if path != OWNER_FILE}
        odd = [path for path in found if any("\ud800" <= character <= "\udfff" for character in path)]
        notices = [f"{len(odd)} files have names that are not UTF-8 and can't be listed."] if odd else []
        return tuple(
            CaptureFile(path, found[path], role_of(path)) for path in found if path not in odd
        ), notices

    def _xprof_run(self, files: tuple[CaptureFile, ...]) -> str | None:
        place = f"plugins/profile/{self.session}/"
        there = any(file.role == "xplane" and file.path.startswith(place) for file in files)
        return f"{self.id}/{self.session}" if there else None


def _own(directory: Path) -> FileIO:
    """Mark `directory` as in use: an owner file, locked for as long as it is open.

    The system drops the lock however its holder ends, over network file systems and across containers too,
    where process ids mean nothing. The file gets its name once it is locked: no sweep comes in between.
    """
    path = directory / OWNER_FILE
    unlocked = directory / f"{OWNER_FILE}.new"
    descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, disk.FILE_MODE)
    owner = FileIO(descriptor, "r+")
    try:
        with suppress(OSError):  # a file system without locks: then nobody can sweep it either
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        os.fsync(descriptor)  # says now, before anything is measured, that the disk is full
        unlocked.rename(path)
    except BaseException:
        owner.close()
        raise
    return owner


def sweep(parent: Path, names: re.Pattern[str]) -> None:
    """Delete what is called so in `parent` if it is trash or a draft whose owner is gone.

    `names` is IN_STORE or IN_DIRECTORY. A living draft is left alone, and a published capture too.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not names.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            if _TRASH.fullmatch(entry.name) or _is_abandoned(entry):
                disk.remove_tree(Path(entry.path))


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    """Tell whether nobody holds the owner file's lock.

    Without that file it is a draft being born, and must be an hour old; or, with a record, a capture that was
    published there with --dir, which is nobody's to delete.
    """
    try:
        descriptor = os.open(Path(entry.path, OWNER_FILE), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        is_old = time.time() - entry.stat(follow_symlinks=False).st_mtime > _UNOWNED_GRACE_S
        return is_old and not disk.exists(Path(entry.path, RECORD_FILE))
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its owner lives; or a file system without locks, where nobody can tell
        return False
    finally:
        os.close(descriptor)
    return True


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
