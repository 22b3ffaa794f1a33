"""Starts a kernel under `nsys launch`: what the kernelspec of `%jaxprof install-nsys-kernel` runs.

    python -P -m jupyterlab_jaxprof.nsight.launcher [--trace=NAMES] -f CONNECTION_FILE

Jupyter knows this process as the kernel: signals that it gets go to the kernel itself, and it ends when the
kernel does. The guardian (guardian.py) is nsys's parent, in a session of its own where no signal of Jupyter's
arrives, and ends all that is left, whatever dies first. Where no nsys works, a kernel without it is started.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from jupyterlab_jaxprof.environment import guardian, nsys
from jupyterlab_jaxprof.environment.awake import AwakeClock
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.environment.temporary import TemporaryDirectory

from .flags import FlagError
from .launch_flags import TRACE, checked_trace, launch_flags
from .launched import PROBLEM
from .session import MARK, end_marked
from .surroundings import divided, own_preloads

#: Until the kernel's first sign of life. Jupyter gives up on a kernel after a minute.
START_TIMEOUT_S = 25.0
_TURN_S = 1.0
_LINGER_S = 10.0
_PACKAGE_PARENT = str(Path(__file__).parents[2])
#: The working directory is no place to import from until IPython says so.
_BOOTSTRAP = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); "
    f"{_PACKAGE_PARENT!r} in sys.path or sys.path.append({_PACKAGE_PARENT!r}); "
    "from jupyterlab_jaxprof.nsight.launched import main; main(sys.argv[1:])"
)


def main(arguments: Sequence[str]) -> NoReturn:
    """Be a kernel with ipykernel's `arguments` until its end, and exit with its status."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--trace", default=TRACE)
    asked, rest = parser.parse_known_args(arguments)
    found = [one for one in nsys.installations() if one.usable]
    problem = f"there is no nsys that works. {nsys.HOW_TO_GET}" if not found else ""
    # On a busy machine nsys 2022 may end before it has started anything.
    for installation in [one for one in found for _ in range(2)]:
        kernel = _Kernel(installation)
        try:
            if kernel.run(asked.trace, rest):
                sys.exit(kernel.status)
        except (FlagError, OSError) as error:
            problem = problem or str(error)
            continue
        if kernel.is_told_to_end:
            sys.exit(kernel.status)
        problem = problem or kernel.problem
    sys.stderr.write(f"This kernel runs without nsys: {problem}\n")
    sys.stderr.flush()
    os.environ[PROBLEM] = problem
    command = [sys.executable, "-m", "ipykernel_launcher", *rest]
    os.execv(command[0], command)


class _Kernel:
    """One kernel under one nsys."""

    def __init__(self, installation: Installation) -> None:
        self.status = 0
        self.problem = ""
        self.is_told_to_end = False
        self._installation = installation
        self._pid = 0
        self._files: list[str] = []
        # As ipykernel has it: where Jupyter says that it started us, we end with it, however that ends.
        self._parent = os.getppid() if os.environ.get("JPY_PARENT_PID", "1") != "1" else 0
        self._mark = secrets.token_hex(8)

    def run(self, trace: str, arguments: Sequence[str]) -> bool:
        """Run it to its end; False when nsys has not started it. Raises FlagError and OSError before."""
        installation, session = self._installation, f"jaxprof-{os.getpid()}-{secrets.token_hex(4)}"
        trace = checked_trace(trace, installation)
        flags = launch_flags(installation, trace, session)
        directory = TemporaryDirectory()
        temporary = directory.path
        try:
            first, spec = _spec(installation, session, trace, temporary)
            first[MARK] = self._mark
            with _Pipes(spec) as pipes, (temporary / "said").open("w+b") as said:
                program = [sys.executable, "-c", _BOOTSTRAP, *map(str, pipes.theirs), *arguments]
                command = [str(installation.path), "launch", *flags, *program]
                self._run(command, first, temporary, pipes, said)
                if not self._pid:
                    said.seek(0)
                    self.problem = self.problem or _told(installation, said.read())
        finally:
            directory.close()
            for path in map(Path, self._files):
                path.unlink(missing_ok=True)
        return bool(self._pid)

    def _run(
        self, command: list[str], environment: dict[str, str], temporary: Path, pipes: _Pipes, said: IO[bytes]
    ) -> None:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(pipes.events_end), str(temporary), *command],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            pass_fds=pipes.theirs,
            env=environment,
            start_new_session=True,
        )
        before = {number: signal.signal(number, self._pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            pipes.close_theirs()
            self._listen(process, pipes.events)
        finally:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            pipes.end_life()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LINGER_S)
            if process.returncode != 0:  # somebody has killed it: what it looked after goes as well
                process.kill()
                end_marked(f"{MARK}={self._mark}")
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self, process: subprocess.Popen[bytes], events: int) -> None:
        """Take what is told until nsys has ended, or will not start, or the guardian is gone."""
        clock, rest = AwakeClock(), b""
        while process.poll() is None:
            if self._parent and os.getppid() != self._parent:
                self.is_told_to_end = True
                return
            ready, _, _ = select.select([events], [], [], _TURN_S)
            part = os.read(events, 65536) if ready else b""
            if ready and not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if self._take(json.loads(line), process):
                    return
            if not self._pid and (self.is_told_to_end or clock.now_s() > START_TIMEOUT_S):
                self.problem = (
                    f"{self._installation.path} ({self._installation.version_text}) did not start the "
                    f"kernel within {START_TIMEOUT_S:.0f} s."
                )
                return

    def _take(self, event: dict[str, Any], process: subprocess.Popen[bytes]) -> bool:
        """Take one event; True when nsys has ended."""
        if event["event"] == "start":
            self._pid, self._files = event["pid"], event["files"]
            assert process.stdin is not None
            with suppress(OSError):  # the kernel is to go on without nsys, should that die
                process.stdin.write(guardian.PROGRAM + f"{self._pid:0{guardian.PROGRAM_DIGITS}d}".encode())
                process.stdin.flush()
        elif event["event"] == "no-nsys":
            self.problem = f"{self._installation.path} does not start: {event['error']}."
        elif event["event"] == "nsys-ended":
            status = event["status"]
            self.status = 1 if status is None else status if status >= 0 else 128 - status
        return event["event"] in ("no-nsys", "nsys-ended")

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """Give the kernel what Jupyter sends to this process, as its group would have got it."""
        if self._pid:
            with suppress(OSError):
                os.killpg(self._pid, number)
        elif number == signal.SIGTERM:
            self.is_told_to_end = True


def _spec(
    installation: Installation, session: str, trace: str, temporary: Path
) -> tuple[dict[str, str], dict[str, Any]]:
    """Give the variables to start with, and what the kernel is told by a file that nobody else can open."""
    first, later = divided(os.environ)
    own_temporary = first.get("TMPDIR")
    preloads = own_preloads(os.environ)
    later |= {"LD_PRELOAD": preloads} | ({"TMPDIR": own_temporary} if own_temporary else {})
    first |= {"TMPDIR": str(temporary)}
    tools = dict(first)
    if preloads:
        first["LD_PRELOAD"] = preloads
    spec = {
        "nsys": str(installation.path),
        "session": session,
        "trace": trace,
        "temporary": str(temporary),
        "environment": later,
        "unset": [MARK, *([] if own_temporary else ["TMPDIR"])],
        "tools_environment": tools,
    }
    return first, spec


class _Pipes:
    """The pipes between this process, the guardian and the kernel; a file with what the kernel needs."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._file = os.fdopen(os.memfd_create("jaxprof"), "w+b")
        self._file.write(json.dumps(spec).encode())
        self._file.flush()
        self._file.seek(0)
        self.events, self.events_end = os.pipe()
        life, self._life = os.pipe()
        self.theirs = (self._file.fileno(), self.events_end, life, os.dup(1), os.dup(2))
        self._are_theirs_open = True

    def close_theirs(self) -> None:
        """Close the ends that the others have now."""
        if self._are_theirs_open:
            self._are_theirs_open = False
            self._file.close()
            for descriptor in self.theirs[1:]:
                os.close(descriptor)

    def end_life(self) -> None:
        """Let the kernel end itself, should it still be there."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        self.end_life()
        os.close(self.events)


def _told(installation: Installation, said: bytes) -> str:
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    quoted = f" It said: '{' '.join(lines[-3:])[:400]}'." if lines else ""
    return f"{installation.path} ({installation.version_text}) ended before it started the kernel.{quoted}"


if __name__ == "__main__":
    main(sys.argv[1:])
