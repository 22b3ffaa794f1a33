"""What both viewers' processes do alike: serve a WSGI application on the Jupyter server's listening socket.

The process ends when the Jupyter server does, however that ends: its standard input is a pipe whose other end
only the server holds, and on Linux the kernel sends it SIGTERM when its parent dies.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cheroot import wsgi

from jupyterlab_jaxprof.server.viewers.gate import Gate

PR_SET_PDEATHSIG = 1
STOP_TIMEOUT_S = 5.0


class InheritedSocketServer(wsgi.Server):
    """cheroot on a unix socket that is listening already."""

    def __init__(self, fd: int, application: Callable[..., Any]) -> None:
        super().__init__("inherited", application, numthreads=10, request_queue_size=128)
        self._fd = fd

    def bind_unix_socket(self, bind_addr: Any) -> socket.socket:
        """Take the inherited socket instead of binding one."""
        self.socket = socket.socket(fileno=self._fd)
        return self.socket


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments that the supervisor gives to every viewer."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument(
        "--fd", type=int, required=True, help="file descriptor of the listening unix socket"
    )
    arguments.add_argument("--parent", type=int, required=True, help="process id of the Jupyter server")
    arguments.add_argument("--socket", type=Path, required=True, help="path of the socket")
    arguments.add_argument("--logdir", type=Path, required=True, help="directory of the captures")
    arguments.add_argument(
        "--no-external-scripts", action="store_true", help="let the pages load nothing from other hosts"
    )
    return arguments


def prepare(options: argparse.Namespace) -> None:
    """To be called first, before slow imports: private files, and no life after the parent's."""
    os.umask(0o077)
    signal.signal(signal.SIGTERM, lambda signum, frame: _exit(options))
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != options.parent:  # it was gone before the line above
        _exit(options)


def serve(gate: Gate, options: argparse.Namespace) -> None:
    """Serve until the parent is gone or SIGTERM comes; then let requests end for some seconds, and exit."""
    server = InheritedSocketServer(options.fd, gate)
    wake_reader, wake_writer = os.pipe()
    signal.signal(signal.SIGTERM, lambda signum, frame: os.write(wake_writer, b"\0"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server.prepare()
    threading.Thread(target=server.serve, name="serve", daemon=True).start()
    select.select([sys.stdin.fileno(), wake_reader], [], [])
    # A conversion inside C++ can't be interrupted: don't wait for it longer than this.
    deadline = threading.Timer(STOP_TIMEOUT_S, _exit, [options])
    deadline.daemon = True
    deadline.start()
    server.stop()
    _exit(options)


def _exit(options: argparse.Namespace) -> None:
    """Leave at once, without waiting for threads; take the sockets along when nobody else will."""
    if os.getppid() != options.parent:
        directory: Path = options.socket.parent
        with suppress(OSError):
            for path in directory.glob("*.sock"):  # nobody listens at the other viewer's either
                path.unlink(missing_ok=True)
            directory.rmdir()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
