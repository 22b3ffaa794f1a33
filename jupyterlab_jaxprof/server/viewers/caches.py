"""XProf's caches beside a trace, thrown away where XProf died while it wrote them.

XProf trusts a cache file that was cut off: the tool stays empty for good, or shows zeros. So a file beside
the trace marks that XProf is at work there, with a lock that the system drops however XProf ends. A mark
that nobody holds is that of a process which died at its work.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
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

log = logging.getLogger(__name__)


@contextmanager
def at_work(directory: Path) -> Generator[None]:
    """Mark that XProf is at work in `directory`; first remove what one that died there may have left."""
    try:
        descriptor, found = _open_mark(directory / MARK)
    except OSError:  # it can't be written: then XProf writes no caches either
        yield
        return
    try:
        if found and _lock(descriptor, fcntl.LOCK_EX):
            log.warning("XProf died while it worked in %s: its caches there are made again.", directory)
            discard(directory)
        _lock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        if _lock(descriptor, fcntl.LOCK_EX):  # nobody else is at work here
            (directory / MARK).unlink(missing_ok=True)
        os.close(descriptor)


def discard(directory: Path) -> None:
    """Remove XProf's caches from a run's directory."""
    for pattern in CACHES:
        for path in directory.glob(pattern):
            if not path.name.endswith(".xplane.pb"):
                with suppress(OSError):
                    path.unlink()


def _open_mark(path: Path) -> tuple[int, bool]:
    """Open the mark, and tell whether it was there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_EXCL, 0o600), False
    except FileExistsError:
        return os.open(path, flags, 0o600), True


def _lock(descriptor: int, kind: int) -> bool:
    """Lock without waiting; False where another holds it, or the file system has no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
