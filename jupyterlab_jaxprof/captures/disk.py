"""The few things the store does on disk: private directories, durable writes, reads that follow no link."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
#: A capture is some directories deep; Python's own limit is near a thousand.
_DEEPEST = 64
#: By which a modification time goes on: what any file system can hold, and what the coarse ones can.
_STEPS_NS = (1_000, 1_000_000_000, 2_000_000_000, 4_000_000_000)
#: After so long a change of a record is over, on the slowest disk.
_CLAIM_S = 20.0
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def exists(path: Path) -> bool:
    """Tell whether something has that name, be it a broken link; raises OSError where nothing ever could."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def restrict(path: Path, mode: int) -> None:
    """Set the mode where the file system has modes; mounted cloud storage and Windows shares have none."""
    with suppress(PermissionError, NotImplementedError):
        path.chmod(mode)


def make_private(directory: Path) -> None:
    """Make `directory` (and its parents), mode 0700 whatever the umask; an existing one is left as it is."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(DIRECTORY_MODE, exist_ok=True)
        restrict(directory, DIRECTORY_MODE)


def flush_directory(directory: Path) -> None:
    """Make the names in `directory` survive a power cut, where the file system can flush a directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES):
            raise
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes, *, private: bool = True) -> None:
    """Put `content` at `path`, for good: a reader sees the old content or the new, and never a part."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, FILE_MODE if private else 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            now = time.time_ns()  # the kernel's own time is too coarse to tell two changes apart
            os.utime(descriptor, ns=(now, now))
            os.fsync(descriptor)
        if private:
            restrict(temporary, FILE_MODE)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def open_below(directory: Path, relative: str) -> int:
    """Open the regular file `relative` below `directory` for reading, following no link on the way.

    Returns a descriptor. Raises OSError: ELOOP or ENOTDIR at a link, EINVAL at anything but a plain file.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        *parents, name = relative.split("/")
        for part in parents:
            inner = os.open(part, _READ_FLAGS | os.O_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        found = os.open(name, _READ_FLAGS, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "not a plain file", relative)
    os.set_blocking(found, True)
    return found


def read_below(directory: Path, relative: str, limit_bytes: int) -> bytes:
    """Read a small file below `directory`. Raises OSError, EFBIG where it is larger than `limit_bytes`."""
    with os.fdopen(open_below(directory, relative), "rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, "too large", relative)
    return content


def plain_files(directory: Path) -> dict[str, int]:
    """Give the regular files below `directory` as {relative path: bytes}; no link is followed or listed."""
    found: dict[str, int] = {}
    pending = [("", str(directory))]
    while pending:
        prefix, place = pending.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((f"{prefix}{entry.name}/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    found[prefix + entry.name] = entry.stat(follow_symlinks=False).st_size
    return dict(sorted(found.items()))


def total_bytes(directory: Path) -> int:
    """Add up the sizes of all files below `directory`, listed or not."""
    return sum(plain_files(directory).values())


def settle(
    directory: Path, *, private: bool, without: str = "", before: Callable[[int], None] = lambda _: None
) -> None:
    """Flush all that is below `directory` to the disk; `private` sets modes 0700 and 0600.

    The names in `directory` itself are left to whoever writes the last file there. The file called `without`
    there is left alone. `before` is called before each flush, with the bytes of the file.
    """
    for place, _, names in os.walk(directory):
        is_top = Path(place) == directory
        for name in names:
            path = Path(place, name)
            if path.is_symlink() or not path.is_file() or (is_top and name == without):
                continue
            if private:
                restrict(path, FILE_MODE)
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                before(os.fstat(descriptor).st_size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if private:
            restrict(Path(place), DIRECTORY_MODE)
        if not is_top:
            before(0)
            flush_directory(Path(place))


def remove_tree(directory: Path) -> None:
    """Delete `directory` with all in it; what others delete meanwhile, or nobody can, is passed over."""
    try:
        shutil.rmtree(directory, ignore_errors=True)
    except RecursionError:  # nested deeper than any capture is: made so by somebody
        with suppress(OSError):
            _flatten(directory)
        with suppress(RecursionError):
            shutil.rmtree(directory, ignore_errors=True)


def _flatten(directory: Path) -> None:
    """Move what is nested deeper than _DEEPEST into `directory` itself, until nothing is."""
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        while _lift(top, top, 0):
            continue
    finally:
        os.close(top)


def _lift(place: int, top: int, depth: int) -> bool:
    """Move the directories at depth _DEEPEST below `top` into it; tells whether there were any."""
    lifted = False
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        if depth == _DEEPEST:
            os.rename(name, secrets.token_hex(8), src_dir_fd=place, dst_dir_fd=top)
            lifted = True
            continue
        inner = os.open(name, _READ_FLAGS | os.O_DIRECTORY, dir_fd=place)
        try:
            lifted |= _lift(inner, top, depth + 1)
        finally:
            os.close(inner)
    return lifted


@contextmanager
def changing(directory: Path) -> Generator[None]:
    """Give `directory` a later modification time than it had, once what is done within has changed it.

    The kernel's own time is too coarse to tell two changes apart (4 ms; a second or two on some file systems,
    which cut off what they can't hold), and goes back where somebody sets the clock.
    """
    before_ns = _modified_ns(directory)
    yield
    with suppress(OSError):  # the change itself is made, and has set a time too
        for step_ns in _STEPS_NS:
            now_ns = max(time.time_ns(), before_ns) + step_ns
            os.utime(directory, ns=(now_ns, now_ns))
            if _modified_ns(directory) > before_ns:
                return


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold an exclusive flock() on the file `path`, made when absent.

    Where the file system has no locks (ENOLCK, ENOTSUP on some network mounts) a file stands in for it that
    only one process can make. Where no file can be made (a full disk must not keep anybody from deleting)
    the work is done without.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            with _claimed(path.with_name(f"{path.name}.held")):
                yield
        else:
            yield
    finally:
        os.close(descriptor)


@contextmanager
def _claimed(path: Path) -> Generator[None]:
    """Make the file `path`, which nobody else can make meanwhile, and remove it at the end.

    One that stays as it is for longer than any change takes was left by a process that was killed.
    """
    seen: tuple[int, int] | None = None
    seen_s = time.monotonic()
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
            break
        except FileExistsError:
            with suppress(OSError):
                status = path.stat()
                found = (status.st_ino, status.st_mtime_ns)
                if found != seen:
                    seen, seen_s = found, time.monotonic()
                elif time.monotonic() - seen_s > _CLAIM_S:
                    path.unlink()
            time.sleep(0.002 + 0.008 * secrets.randbelow(1000) / 1000)
        except OSError:  # the disk is full
            yield
            return
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
