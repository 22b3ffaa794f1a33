"""Start JupyterLab with a notebook open, print its address, and stay until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

START_TIMEOUT_S = 60


def free_port(first: int = 8888) -> int:
    """The first port from `first` on that nothing on loopback listens to."""
    for port in range(first, first + 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise SystemExit(f"No free port between {first} and {first + 99}: stop some other servers and try again.")


def wait_until_ready(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return when the server answers at `address`; exit with its log's end when it does not."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    server.kill()
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise SystemExit(
        f"JupyterLab did not start within {START_TIMEOUT_S} s. The end of its log ({log}):\n{tail}"
    )


def main(notebook: Path) -> int:
    """Serve the notebook's own folder, so that nothing else of the disk is shown."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port, token = free_port(), secrets.token_hex(24)
    log = Path(sys.prefix) / "jupyterlab.log"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={notebook.parent.resolve()}"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    with log.open("wb") as out:
        server = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            env={**os.environ, "JUPYTER_TOKEN": token},
        )
    wait_until_ready(server, f"http://127.0.0.1:{port}/api", log)
    print(f"JupyterLab is at http://127.0.0.1:{port}/lab/tree/{notebook.name}?token={token}")
    print(f"(its log: {log}; Ctrl-C stops it)", flush=True)
    try:
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:  # however this process is told to end, the server goes with it
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
