"""What a process remembers of a store between two lists, so that ten thousand captures are listed quickly.

Names come from one scan of the directory; of each capture a slim entry is kept for as long as its record's
modification time and size stay the same. The records themselves are read again for the rows that are shown.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import disk
from .names import is_id
from .record import MAX_RECORD_BYTES, RECORD_FILE, DamagedRecord, NewerRecord, Record, RecordError, parse

# XProf goes on writing its caches after it has made their files: a size is remembered once a directory rests.
_RESTING_NS = 60_000_000_000


@dataclass
class Entry:
    """What the list needs of one capture without reading it again."""

    id: str
    stamp: tuple[int, int]
    problem: str | None
    kind: str
    notebook: str
    text: str
    pinned: bool | None
    size_bytes: int
    cached_in: str | None
    cache_stamp: int = -1
    disk_bytes: int = 0


def folded(text: str) -> str:
    """Give `text` as a search compares it: letter case and the ways to write an accent make no difference."""
    return unicodedata.normalize("NFKC", text).casefold()


def read_record(directory: Path) -> tuple[Record, tuple[int, int]]:
    """Read and check the record in a capture's directory; returns it with its stamp. Raises RecordError."""
    try:
        content, stamp = disk.read_below(directory, RECORD_FILE, MAX_RECORD_BYTES)
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
    record = parse(content)
    if record.id != directory.name:
        raise DamagedRecord(
            f"Its {RECORD_FILE} belongs to the capture {record.id}: the directory was renamed."
        )
    return record, stamp


class Index:
    """The entries of one store's captures, newest first; safe to use from several threads."""

    def __init__(self, captures_dir: Path) -> None:
        self._captures_dir = captures_dir
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def refresh(self) -> list[Entry]:
        """Look for what changed; give every capture's entry. Raises OSError when the store can't be read."""
        with self._lock:
            try:
                with os.scandir(self._captures_dir) as found:
                    names = [
                        entry.name
                        for entry in found
                        if is_id(entry.name) and entry.is_dir(follow_symlinks=False)
                    ]
            except FileNotFoundError:
                names = []
            names.sort(reverse=True)
            base = str(self._captures_dir)
            entries = (self._current(base, name) for name in names)
            self._entries = {entry.id: entry for entry in entries if entry is not None}
            return list(self._entries.values())

    def _current(self, base: str, name: str) -> Entry | None:
        try:
            status = os.lstat(f"{base}/{name}/{RECORD_FILE}")  # ten thousand Path objects would cost more
            stamp = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamp = (-1, -1)
        entry = self._entries.get(name)
        if entry is None or entry.stamp != stamp or stamp == (-1, -1):
            entry = _entry(self._captures_dir / name, stamp)
        if entry is not None:
            _measure(entry, f"{base}/{name}")
        return entry


def _entry(directory: Path, stamp: tuple[int, int]) -> Entry | None:
    """Make the entry of one capture; None when it was deleted meanwhile."""
    try:
        record, _ = read_record(directory)
    except RecordError as error:
        if not directory.is_dir():
            return None
        known = error.known if isinstance(error, NewerRecord) else {}
        text = " ".join(filter(None, (_text(known, "name"), _text(known, "notes"), directory.name)))
        pinned = known.get("pinned")
        return Entry(
            id=directory.name,
            stamp=stamp,
            problem=str(error),
            kind=_text(known, "kind"),
            notebook=_text(known, "notebook"),
            text=folded(text),
            pinned=pinned if isinstance(pinned, bool) else None,
            size_bytes=0,
            cached_in=None,
        )
    text = "\n".join(
        (record.name, record.notes, record.notebook, record.kind, record.magic, record.cell, record.id)
    )
    return Entry(
        id=record.id,
        stamp=stamp,
        problem=None,
        kind=record.kind,
        notebook=record.notebook,
        text=folded(text),
        pinned=record.pinned,
        size_bytes=record.size_bytes,
        cached_in=record.xprof_run and f"plugins/profile/{record.xprof_run.partition('/')[2]}",
    )


def _text(known: Mapping[str, Any], key: str) -> str:
    value = known.get(key)
    return value if isinstance(value, str) else ""


def _measure(entry: Entry, directory: str) -> None:
    """Bring `disk_bytes` up to date: only where XProf has put something into the session's directory."""
    watched = f"{directory}/{entry.cached_in}" if entry.cached_in else directory
    try:
        changed = os.lstat(watched).st_mtime_ns
        if changed == entry.cache_stamp:
            return
        entry.disk_bytes = sum(disk.plain_files(Path(directory)).values())
    except OSError:  # deleted meanwhile, or not readable: what the record says is the best there is
        entry.disk_bytes = entry.size_bytes
        return
    entry.cache_stamp = changed if time.time_ns() - changed > _RESTING_NS else -1
