"""Whose a directory in `partial/` is: whoever writes there holds a lock, and what nobody holds is deleted."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

from . import disk
from .names import ID_PATTERN
from .record import RECORD_FILE

OWNER_FILE = ".owner"
_TRASH = re.compile(rf"trash-{ID_PATTERN.pattern}-[0-9a-f]+")
# What a sweep may look at: all that a store's partial/ holds, but in a user's own directory (--dir) hidden
# drafts alone: there a plain identifier is a published capture.
IN_STORE = re.compile(rf"{ID_PATTERN.pattern}|{_TRASH.pattern}|upload-[0-9a-f]{{16}}")
IN_DIRECTORY = re.compile(rf"\.{ID_PATTERN.pattern}\.partial")
_UNOWNED_GRACE_S = 3600.0
# Some clusters' file systems have locks that are each host's own: another host's draft only looks dead there.
_FOREIGN_GRACE_S = 24 * 3600.0


def own(directory: Path) -> FileIO:
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
        owner.write(_process(os.getpid()))
        os.fsync(descriptor)  # says now, before anything is measured, that the disk is full
        unlocked.rename(path)
    except BaseException:
        owner.close()
        raise
    return owner


def take(directory: Path, *, private: bool = True) -> FileIO:
    """Own a directory that was just made, `private` to this user; it is deleted where that fails."""
    try:
        if private:
            disk.restrict(directory, disk.DIRECTORY_MODE)
        return own(directory)
    except BaseException:
        disk.remove_tree(directory)
        raise


def sweep(parent: Path, names: re.Pattern[str]) -> None:
    """Delete what is called so in `parent` if it is trash or a draft whose owner is gone.

    `names` is IN_STORE or IN_DIRECTORY. A living draft is left alone, and a published capture too.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not names.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            if _TRASH.fullmatch(entry.name) or (is_abandoned(entry) and not _may_live_elsewhere(entry)):
                disk.remove_tree(Path(entry.path))


def _may_live_elsewhere(entry: os.DirEntry[str]) -> bool:
    """Tell whether another host's process has made it not long ago."""
    try:
        said = disk.read_below(Path(entry.path), OWNER_FILE, 1024).decode("utf-8", "replace")
    except OSError:
        return False
    is_ours = f" on {socket.gethostname()} " in said.replace("\n", " ")
    return not is_ours and time.time() - entry.stat(follow_symlinks=False).st_mtime < _FOREIGN_GRACE_S


def is_abandoned(entry: os.DirEntry[str]) -> bool:
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
    except BlockingIOError:  # its owner lives
        return False
    except OSError:  # a file system without locks
        return _has_ended(os.pread(descriptor, 1000, 0))
    finally:
        os.close(descriptor)
    return True


def _process(pid: int) -> bytes:
    """Give what an owner file says: whose it is, and where that process id means something."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        where = f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 (no path: a name in brackets)
    except OSError:
        where = "?"
    return f"process {pid} on {socket.gethostname()} {where}\n".encode()


def _has_ended(said: bytes) -> bool:
    """Tell whether an owner is known to be gone: a process of this machine and container that is no more."""
    found = re.match(rb"process (\d{1,9}) ", said)
    if found is None or b"?" in said or said != _process(pid := int(found[1])):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
