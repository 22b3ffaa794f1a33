"""Temporary directories of our own: what a killed process has left, the next one that makes one removes.

A directory is locked (flock) for as long as it is used, and the system drops the lock however its holder
ends. So what nobody holds is left over.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

#: No earlier version has made such a name, and none is removed that its process doesn't hold.
PREFIX = "jaxprof."


class TemporaryDirectory:
    """A private directory (0700) below `parent` or the system's temporary one, until it is closed."""

    def __init__(self, parent: Path | None = None) -> None:
        """Make it, and remove what the dead have left beside it. Raises OSError."""
        place = parent or Path(tempfile.gettempdir())
        sweep(place)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            self._lock = hold(self.path)
            if self._lock is not None and self.path.is_dir():  # no sweep came before the lock
                break
            self._release()

    def close(self) -> None:
        """Delete it with all in it; nothing happens when that is done already."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def sweep(place: Path) -> None:
    """Remove the directories of this user's dead processes in `place`."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_if_left(entry)


def _remove_if_left(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_uid == os.getuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        finally:
            os.close(descriptor)


def hold(directory: Path) -> int | None:
    """Lock a directory called PREFIX... for as long as the descriptor that is given stays open.

    None where it is gone already. On a file system without locks nobody can sweep it either.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor
