"""What can go wrong in a store, as sentences: what happened, why, and what to do now."""

from __future__ import annotations

import errno
import os
from pathlib import Path


class StoreError(Exception):
    """Something about the store or one capture; the message is a sentence for the user."""


class UnknownCapture(StoreError):
    """There is no such capture, or no such file in it."""


class InvalidValue(StoreError):
    """A name, note or other value that the caller gave can't be used."""


class UnreadableCapture(StoreError):
    """The capture is there, but its record is damaged or was written by a newer version."""


_REASONS = {
    errno.ENOSPC: "the disk is full. Free some space (delete captures, say), or {elsewhere}.",
    errno.EDQUOT: "your disk quota is used up. Free some space (delete captures, say), or {elsewhere}.",
    errno.EFBIG: "a file would be larger than allowed (ulimit -f). Raise that limit, or {elsewhere}.",
    errno.EROFS: "the file system is read-only. Mount it writable, or {elsewhere}.",
    errno.EACCES: "you have no permission. Mend its owner and mode (chmod u+rwx), or {elsewhere}.",
    errno.EPERM: "the system does not permit it. Mend its owner and attributes (lsattr), or {elsewhere}.",
    errno.ENOTDIR: "a file is there where a directory is needed. Move the file away, or {elsewhere}.",
    errno.EEXIST: "something else than a directory is in the way there. Move it away, or {elsewhere}.",
    errno.ENOENT: "a part of that path is missing. Make the directory, or {elsewhere}.",
    errno.ELOOP: "its links lead in a circle. Mend the links, or {elsewhere}.",
    errno.ENAMETOOLONG: "its path is too long for the file system. Choose a shorter one, or {elsewhere}.",
    errno.EMFILE: "this process has too many files open. Close some, or raise the limit (ulimit -n).",
    errno.ESTALE: "the network file system lost it. Try again once the file system is back.",
}


ANOTHER_STORE = "set JAXPROF_DIR to another directory"
ANOTHER_DIRECTORY = "give --dir another directory"


def sentence(what: str, path: Path, error: OSError, elsewhere: str = ANOTHER_STORE) -> str:
    """Say that `what` (for example 'The capture can't be written') failed at `path`, why, and what helps."""
    reason = _REASONS.get(error.errno or 0)
    if error.errno == errno.ENOSPC and _has_room_for_no_file(path):
        reason = (
            "the disk takes no more files, though it may have space (its inodes are used up: df -i). Delete "
            "files (captures, say), or {elsewhere}."
        )
    if reason is None:
        said = (error.strerror or str(error)).replace("{", "(").replace("}", ")")
        reason = f"the system says '{said}'. Check that disk, or {{elsewhere}}."
    return f"{what} in {path}: {reason.format(elsewhere=elsewhere)}"


def _has_room_for_no_file(path: Path) -> bool:
    """Tell whether the disk of `path`, or of the nearest directory above it, has inodes and none is free."""
    for place in (path, *path.parents):
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        return found.f_files > 0 and found.f_favail == 0
    return False
