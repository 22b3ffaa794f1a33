"""What a process remembers of a store between two lists, so that ten thousand captures are listed quickly.

Names come from one scan of the directory; of each capture a slim entry is kept for as long as its record's
modification time and size stay the same. The records themselves are read again for the rows that are shown.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import threading
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import disk
from .names import SESSION_PATTERN, is_id
from .record import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    SCHEMA,
    DamagedRecord,
    Record,
    decode,
    load,
    of_this_schema,
)

# XProf goes on writing its caches after it has made their files: a size is remembered once a directory rests.
_RESTING_NS = 60_000_000_000
# Some file systems keep times to two seconds: a record changed twice within them looks the same.
_COARSEST_NS = 2_500_000_000
# How long a look holds while the directory is as it was: records that are edited by hand are seen after that.
_TRUSTED_S = 3.0


@dataclass
class Entry:
    """What the list needs of one capture without reading it again; its row tells whether it is sound."""

    id: str
    stamp: tuple[int, int, int]
    kind: str
    notebook: str
    text: str
    pinned: bool | None
    size_bytes: int
    listed: frozenset[str]
    session_dir: str | None
    is_settled: bool = False
    """Whether the record was old enough, when it was read, to have another stamp after its next change."""
    session_stamp: int = -1
    cache_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk: the files that the record lists, the record, and the caches that XProf made."""
        return self.size_bytes + max(self.stamp[1], 0) + self.cache_bytes


def folded(text: str) -> str:
    """Give `text` as a search compares it: letter case and the ways to write an accent make no difference."""
    return unicodedata.normalize("NFKC", text).casefold()


def read_record(directory: Path) -> Record:
    """Read and check the record in a capture's directory; raises RecordError."""
    return read_all(directory)[0]


def read_all(directory: Path) -> tuple[Record, dict[str, Any]]:
    """Read and check a record; gives it, and all that its file holds: keys of other versions are in that."""
    try:
        content = disk.read_below(directory, RECORD_FILE, MAX_RECORD_BYTES)
    except FileNotFoundError:
        raise DamagedRecord(
            f"It has no {RECORD_FILE}: its record was deleted, or is of something else."
        ) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            reason = f"is larger than {MAX_RECORD_BYTES // 2**20} MiB, so the record is damaged"
        elif error.errno in (errno.ELOOP, errno.EINVAL, errno.ENOTDIR):
            reason = "is not a plain file, so the record is damaged"
        else:
            reason = f"can't be read: the system says '{error.strerror or error}'"
        raise DamagedRecord(f"Its {RECORD_FILE} {reason}.") from error
    data = decode(content)
    record = Record.from_json(data)
    if record.id != directory.name:
        raise DamagedRecord(
            f"Its {RECORD_FILE} belongs to the capture {record.id}: the directory was renamed."
        )
    return record, data


class Index:
    """The entries of one store's captures, newest first; safe to use from several threads."""

    def __init__(self, captures_dir: Path) -> None:
        self._captures_dir = captures_dir
        self._entries: dict[str, Entry] = {}
        self._version = -1
        self._looked_s = -math.inf
        self._lock = threading.Lock()

    def refresh(self) -> list[Entry]:
        """Look for what changed; give every capture's entry. Raises OSError when the store can't be read.

        Each change of ours gives the directory a new modification time. While it keeps the one it had, a look
        that is a few seconds old still holds: searches and scrolling cost no ten thousand looks at the disk.
        """
        with self._lock:
            try:
                version = os.stat(self._captures_dir).st_mtime_ns  # noqa: PTH116 (before the scan, never after)
                fresh = time.monotonic() - self._looked_s < _TRUSTED_S
                if version != self._version or not fresh:
                    self._looked_s = time.monotonic()
                    self._entries = self._scan()
            except FileNotFoundError:
                version, self._entries = -1, {}
            self._version = version
            return list(self._entries.values())

    def _scan(self) -> dict[str, Entry]:
        known = self._entries
        with os.scandir(self._captures_dir) as found:
            names = [
                entry.name
                for entry in found
                if (entry.name in known or is_id(entry.name)) and entry.is_dir(follow_symlinks=False)
            ]
        names.sort(reverse=True)
        base = str(self._captures_dir)
        entries = (self._current(base, name) for name in names)
        return {entry.id: entry for entry in entries if entry is not None}

    def _current(self, base: str, name: str) -> Entry | None:
        place = f"{base}/{name}"  # ten thousand Path objects would cost more than all the rest
        stamp = (-1, -1, -1)
        try:
            status = os.lstat(f"{place}/{RECORD_FILE}")
            if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_RECORD_BYTES:
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            if not Path(place).is_dir():  # deleted meanwhile
                return None
        entry = self._entries.get(name)
        if entry is None or entry.stamp != stamp or not entry.is_settled:
            is_settled = abs(time.time_ns() - stamp[0]) > _COARSEST_NS
            entry = _entry(name, stamp, _content(f"{place}/{RECORD_FILE}") if stamp[1] >= 0 else {})
            entry.is_settled = is_settled
        if entry.session_dir is not None:
            _measure_caches(entry, f"{place}/{entry.session_dir}")
        return entry


def _content(path: str) -> Mapping[str, Any]:
    """Give what JSON object there is in the file; an empty one where it can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            data = load(file.read(), floats=False)
    except (OSError, ValueError, RecursionError):
        return {}
    return of_this_schema(cast("dict[str, Any]", data)) if isinstance(data, dict) else {}


def _entry(capture_id: str, stamp: tuple[int, int, int], data: Mapping[str, Any]) -> Entry:
    """Make an entry out of whatever stands in a record: damaged and newer ones are listed too."""

    def text(key: str) -> str:
        value = data.get(key)
        return value if isinstance(value, str) else ""

    listed = data.get("files")
    files = (
        [file for file in cast("list[Any]", listed) if isinstance(file, dict)]
        if isinstance(listed, list)
        else []
    )
    sizes = [file.get("size_bytes") for file in files]
    run = text("xprof_run").partition("/")[2]
    session_dir = f"plugins/profile/{run}" if SESSION_PATTERN.fullmatch(run) else None
    pinned = data.get("pinned", False)
    schema = data.get("schema", SCHEMA)
    if not isinstance(schema, int) or (schema > SCHEMA and pinned is not True):
        pinned = None  # a later version may tell that in another way
    words = [text(key) for key in ("name", "notes", "notebook", "kind", "magic", "cell")]
    return Entry(
        id=capture_id,
        stamp=stamp,
        kind=text("kind"),
        notebook=text("notebook"),
        text=folded("\n".join(words)),
        pinned=pinned if data and isinstance(pinned, bool) else None,
        size_bytes=sum(size for size in sizes if isinstance(size, int) and 0 < size < 2**63),
        listed=frozenset(str(file.get("path", "")).rpartition("/")[2] for file in files)
        if session_dir
        else frozenset(),
        session_dir=session_dir,
    )


def _measure_caches(entry: Entry, directory: str) -> None:
    """Bring `cache_bytes` up to date, where XProf has put something into the session's directory."""
    try:
        changed = os.lstat(directory).st_mtime_ns
        if changed == entry.session_stamp:
            return
        with os.scandir(directory) as found:
            entry.cache_bytes = sum(
                item.stat(follow_symlinks=False).st_size
                for item in found
                if item.name not in entry.listed and item.is_file(follow_symlinks=False)
            )
    except OSError:  # deleted meanwhile, or not readable: what is known stays the best there is
        return
    entry.session_stamp = changed if time.time_ns() - changed > _RESTING_NS else -1
