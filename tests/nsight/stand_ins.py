"""Stand-ins for an nsys that fails in ways which the real one can't be made to show; and its processes."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

from jupyterlab_jaxprof.environment import nsys

REAL = shutil.which("nsys") or ""
#: A variable that reaches every process which a kernel of these tests starts.
MARK = "JAX_PROFILED_BY_TEST"


def stand_in(folder: Path, profile: str, *, layout: str = "bin") -> Path:
    """Write an nsys that does `profile` (shell) in place of recording, and all else as the real one.

    `$real` is that one, `"$@"` its arguments. Gives the directory for PATH; `layout` is the directory's name.
    """
    directory = folder / layout
    directory.mkdir(parents=True)
    script = directory / "nsys"
    script.write_text(
        f"""#!/bin/bash
real={REAL}
PATH=$PATH:/usr/bin:/bin
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2099.1.1"; exit; fi
if [ "$1" = profile ] && [ "$2" != --help ]; then
{profile}
fi
exec $real "$@"
"""
    )
    script.chmod(0o755)
    return directory


def laid_out(folder: Path) -> Path:
    """Lay the real nsys out as NVIDIA does, its importer where it looks for it; gives its directory."""
    tools = folder / "target-linux-x64"
    tools.mkdir(parents=True)
    real = Path(REAL).resolve()
    for path in real.parent.iterdir():
        if path != real:
            (tools / path.name).symlink_to(path)
    shutil.copy(real, tools / "nsys")  # a link would be followed to the place that lacks the importer
    found = nsys.best()
    assert found is not None
    assert found.importer is not None
    (folder / "host-linux-x64").symlink_to(found.importer.parent)
    return tools


@contextmanager
def on_path(directory: Path, *, alone: bool = False):
    before = os.environ["PATH"]
    os.environ["PATH"] = str(directory) if alone else f"{directory}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def marked_processes(mark: str) -> list[str]:
    """The command lines of the living processes that were started with MARK=mark, but for this one."""
    found: list[str] = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            environment = (place / "environ").read_bytes().split(b"\0")
            state = (place / "stat").read_bytes().rpartition(b")")[2].split()[0]
            command = (place / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if f"{MARK}={mark}".encode() in environment and state != b"Z":
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def assert_nothing_left(mark: str, timeout_s: float = 30) -> None:
    deadline_s = time.monotonic() + timeout_s
    while left := marked_processes(mark):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


def pids(mark: str, *words: str) -> list[int]:
    """The processes of a mark whose command line begins so."""
    found: list[int] = []
    beginning = "\0".join(words).encode()
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                environment = (place / "environ").read_bytes()
                command = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environment.split(b"\0") and command.startswith(beginning):
                found.append(int(place.name))
    return found
