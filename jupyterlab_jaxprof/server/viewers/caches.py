"""XProf's caches beside a trace, thrown away where XProf died while it wrote them, or had no room to.

XProf trusts a cache file that was cut off: the tool stays empty for good, or shows zeros. So a file beside
the trace marks that XProf is at work there, with a lock that the system drops however XProf ends. A mark
that nobody holds is that of a process which died at its work. Where the disk has not clearly more room than
caches take, none of them is kept.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK = ".jaxprof-xprof-at-work"
# What XProf 2.24 writes; a trace itself (*.xplane.pb) is none of these.
CACHES = (
    "*.SSTABLE",
    "*.op_stats_v2.pb",
    "*.hlo_proto.pb",
    "ALL_HOSTS.*",
    "cache_version.txt",
    ".cached_tools.json",
)

# What a few files take at least, be the trace ever so small.
_FILES_BYTES = 65_536

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Room:
    """What a trace takes, and what is free on its disk."""

    trace_bytes: int
    free_bytes: int
    suffices: bool
    """Whether caches surely fit: all together they are smaller than the trace."""


def room(directory: Path) -> Room:
    """Look at the room for caches in `directory`; what can't be known suffices."""
    trace_bytes = 0
    try:
        disk = os.statvfs(directory)
        trace_bytes = sum(trace.stat().st_size for trace in directory.glob("*.xplane.pb"))
    except OSError:
        return Room(trace_bytes, 0, suffices=True)
    free_bytes = disk.f_bavail * disk.f_frsize
    suffices = not disk.f_blocks or free_bytes >= 2 * trace_bytes + _FILES_BYTES
    return Room(trace_bytes, free_bytes, suffices)


@dataclass
class _Users:
    """This process's requests that are at work in one directory; they share one mark."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    mark: int | None = None


_users: defaultdict[Path, _Users] = defaultdict(_Users)
_users_lock = threading.Lock()


@contextmanager
def at_work(directory: Path) -> Generator[None]:
    """Mark that XProf is at work in `directory`; first remove what one that died there may have left."""
    with _users_lock:
        users = _users[directory]
    with users.lock:
        if users.count == 0:
            users.mark = _begin(directory)
        users.count += 1
    try:
        yield
    finally:
        with users.lock:
            users.count -= 1
            if users.count == 0 and not room(directory).suffices:
                discard(directory)
            if users.count == 0 and users.mark is not None:
                _end(directory, users.mark)
                users.mark = None


def discard(directory: Path) -> None:
    """Remove XProf's caches from a run's directory."""
    for pattern in CACHES:
        for path in directory.glob(pattern):
            if not path.name.endswith(".xplane.pb"):
                with suppress(OSError):
                    path.unlink()


def _begin(directory: Path) -> int | None:
    """Make the mark and hold it; None where it can't be made, and XProf writes no caches either."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(OSError):
        while True:
            mark = os.open(directory / MARK, flags, 0o600)
            try:
                if _hold(directory, mark):
                    return mark
            except BaseException:
                os.close(mark)
                raise
            os.close(mark)
    return None


def _hold(directory: Path, mark: int) -> bool:
    """Lock the mark, shared; False if another process, at the end of its work, has removed it meanwhile.

    Raises:
        OSError: where the file system has no locks; a mark there would tell nothing.
    """
    if _lock_alone(mark):
        if not _is_in_place(directory, mark):
            return False
        # An empty mark was only just made, and nobody has worked under it.
        if os.fstat(mark).st_size:
            log.warning("XProf died while it worked in %s: its caches there are made again.", directory)
            discard(directory)
        else:
            os.write(mark, b"\n")
    # Waits, not for long, for a process that throws caches away or removes the mark.
    fcntl.flock(mark, fcntl.LOCK_SH)
    return _is_in_place(directory, mark)


def _end(directory: Path, mark: int) -> None:
    """Remove the mark, unless another process is at work here as well."""
    with suppress(OSError):  # where it stays, the caches are made again
        if _lock_alone(mark) and _is_in_place(directory, mark):
            (directory / MARK).unlink()
    os.close(mark)


def _lock_alone(mark: int) -> bool:
    """Lock the mark if no other process holds it."""
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_in_place(directory: Path, mark: int) -> bool:
    """Whether the open mark is the file that lies in the directory now."""
    try:
        found = (directory / MARK).lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(mark))
