"""Running a program of another's: one that only reports, or one that tells how far it is.

Each has a guardian (guardian.py) as its parent: what it starts ends with it, and all of that with us.
"""

from __future__ import annotations

import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from . import guardian
from .awake import AwakeClock

#: A program that tells how far it is tells something within this time, unless it hangs.
SILENCE_S = 300.0
#: How the failure of a program begins that was killed.
KILLED = "it was killed"
_FAILURE_KEPT_S = 60.0
_answers: dict[Hashable, tuple[float, tuple[str, str | None]]] = {}
_TIMEOUT_S = 10
_TURN_S = 1.0
_LINGER_S = 10.0
_PERCENT = re.compile(rb"(\d{1,3})\s*%")
_WITH_PERCENT = re.compile(r"\d%")


def output_of(*command: str, timeout_s: float | None = None) -> tuple[str, str | None]:
    """Run a command that only reports; returns its output, and why it failed (None where it worked)."""
    limit_s = _TIMEOUT_S if timeout_s is None else timeout_s
    try:
        with _guarded(command, stderr=subprocess.PIPE) as guarded:
            out, err = guarded.process.communicate(timeout=limit_s)
            status = guarded.status()
    except subprocess.TimeoutExpired:
        return "", f"it gave no answer within {limit_s} s"
    except OSError as error:
        return "", error.strerror or str(error)
    said = out.decode("utf-8", "replace")
    if status < 0:
        return said, f"{KILLED} (signal {-status})"
    if status != 0:
        lines = (said + err.decode("utf-8", "replace")).strip().splitlines()
        return said, f"exit status {status}" + (f", '{lines[-1][:200]}'" if lines else "")
    return said, None


def output_once(
    *command: str, state: Hashable = None, timeout_s: float | None = None
) -> tuple[str, str | None]:
    """Give what `output_of` gives, asked once as long as the program has the same `state`.

    After a failure it is asked again in a minute, for what was in the way may be gone; and at once where it
    was killed, which tells nothing of it.
    """
    key = (command, state)
    until_s, answer = _answers.get(key, (0.0, ("", None)))
    if time.monotonic() < until_s:
        return answer
    said, failure = output_of(*command, timeout_s=timeout_s)
    if failure is None:
        _answers[key] = math.inf, (said, None)
    elif not failure.startswith(KILLED):
        _answers[key] = time.monotonic() + _FAILURE_KEPT_S, (said, failure)
    return said, failure


def followed(
    command: Sequence[str], place: Path, on_part: Callable[[float], None], time_limit_s: float
) -> str:
    """Run a program in a directory, passing on its percentages (0 to 1); gives what else it printed.

    Its temporary files lie there too; the directory is removed should this process be killed. Raises OSError
    where it does not start, TimeoutError where it has not ended in time or says nothing for SILENCE_S; it is
    ended then, and when an interrupt is raised meanwhile.
    """
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment["TMPDIR"] = str(place)
    with _guarded(command, subprocess.STDOUT, place, environment) as guarded:
        said = _listen(guarded.process, on_part, time_limit_s)
        guarded.status()
    return said


def is_count(text: str) -> bool:
    """Tell whether a word that a program printed is a number of things, and no other script's or endless."""
    return text.isascii() and text.isdecimal() and len(text) < 19


def percentage(part: bytes) -> float | None:
    """Give the last percentage in what a program prints, from 0 to 1."""
    found = _PERCENT.findall(part)
    return int(found[-1]) / 100 if found and int(found[-1]) <= 100 else None


@dataclass(frozen=True)
class _Guarded:
    """A guardian, and where it tells what came of its program."""

    process: subprocess.Popen[bytes]
    events: int

    def status(self) -> int:
        """Wait for the end, and give the program's exit status; raises OSError where it did not start."""
        said = b""
        while part := os.read(self.events, 65536):
            said += part
        for line in said.splitlines():
            event = json.loads(line)
            if event["event"] == "no-nsys":
                raise OSError(event["error"])
            if event["status"] is not None:
                return event["status"]
        return -signal.SIGKILL  # the guardian itself was killed


@contextmanager
def _guarded(
    command: Sequence[str],
    stderr: int,
    place: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Generator[_Guarded]:
    """Start a program in `place`; at the end of the `with` statement nothing of it is left."""
    events, theirs = os.pipe()
    wishes, life = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(theirs), str(place or ""), *command],
            stdin=wishes,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=(theirs,),
            env=environment,
            cwd=place,
            start_new_session=True,  # an interrupt of the notebook is ours to handle
        )
    except BaseException:
        for descriptor in (events, theirs, wishes, life):
            os.close(descriptor)
        raise
    os.close(theirs)
    os.close(wishes)
    try:
        yield _Guarded(process, events)
    finally:
        with suppress(OSError):
            os.write(life, guardian.END)
        os.close(life)
        try:
            process.wait(_LINGER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(events)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _listen(process: subprocess.Popen[bytes], on_part: Callable[[float], None], limit_s: float) -> str:
    """Collect what a program prints until it and all that it started have ended."""
    assert process.stdout is not None
    said = bytearray()
    clock, heard_s = AwakeClock(), 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            ready = selector.select(_TURN_S)
            now_s = clock.now_s()
            if now_s > limit_s or (not ready and now_s - heard_s > SILENCE_S):
                raise TimeoutError
            if not ready:
                continue
            heard_s = now_s
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                return _readable(bytes(said))
            said += part
            if (done := percentage(part)) is not None:
                on_part(done)


def _readable(said: bytes) -> str:
    """Give what a program printed without its progress bars."""
    lines = said.decode("utf-8", "replace").replace("\r", "\n").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip() and not _WITH_PERCENT.search(line))
