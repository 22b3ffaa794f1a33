"""Where the viewers' unix sockets are: one directory a Jupyter server, that only its user can enter."""

from __future__ import annotations

import functools
import os
import secrets
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from jupyterlab_jaxprof.environment.temporary import PREFIX, hold, sweep

# The system's limit is 108 bytes with the closing null on Linux, 104 on macOS.
MAX_PATH_BYTES = 103
LONGEST_NAME = "tensorboard.sock"
_held: dict[Path, int] = {}
"""The directories that this process uses, each with the descriptor that tells others so."""


@functools.cache
def directory() -> Path:
    """This process's directory for sockets: below Jupyter's runtime directory if a socket works there.

    A runtime directory can be too deep for a socket's path, or on a file system without sockets; then it is a
    directory below the system's temporary one. It is made (0700) when the first socket is bound, not before.
    Whoever makes one removes those of servers that were killed.
    """
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    runtime = Path(jupyter_runtime_dir()) / name
    return runtime if _works(runtime) else Path(tempfile.gettempdir()) / name


def path(viewer: str) -> Path:
    """The socket of one viewer."""
    return directory() / f"{viewer}.sock"


def bind(socket_path: Path) -> socket.socket:
    """Listen at `socket_path`, in a directory of mode 0700 that is made here.

    Raises:
        OSError: if the directory or the socket can't be made.
    """
    with suppress(FileExistsError):
        socket_path.parent.mkdir(mode=0o700)
    if socket_path.parent.is_symlink() or socket_path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{socket_path.parent} belongs to somebody else")
    socket_path.parent.chmod(0o700)
    _keep(socket_path.parent)
    socket_path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(socket_path))
        socket_path.chmod(0o600)
        listener.listen(128)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def remove(socket_path: Path) -> None:
    """Remove a socket, and its directory if it was the last in it."""
    with suppress(OSError):
        socket_path.unlink()
    with suppress(OSError):
        socket_path.parent.rmdir()
        if (lock := _held.pop(socket_path.parent, None)) is not None:
            os.close(lock)


def _keep(directory: Path) -> None:
    """Tell others that this process uses the directory, and remove what the dead have left beside it."""
    if directory not in _held and (lock := hold(directory)) is not None:
        _held[directory] = lock
        sweep(directory.parent)


def _works(candidate: Path) -> bool:
    probe = candidate / LONGEST_NAME
    if len(os.fsencode(probe)) > MAX_PATH_BYTES:
        return False
    try:
        candidate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        bind(probe).close()
    except OSError:
        return False
    finally:
        remove(probe)
    return True
