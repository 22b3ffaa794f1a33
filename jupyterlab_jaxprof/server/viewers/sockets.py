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

# The system's limit is 108 bytes with the closing null on Linux, 104 on macOS.
MAX_PATH_BYTES = 103
LONGEST_NAME = "tensorboard.sock"


@functools.cache
def directory() -> Path:
    """This process's directory for sockets: below Jupyter's runtime directory if a socket works there.

    A runtime directory can be too deep for a socket's path, or on a file system without sockets; then it is a
    directory below the system's temporary one. It is made (0700) when the first socket is bound, not before.
    """
    name = f"jaxprof-{os.getpid()}-{secrets.token_hex(4)}"
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
