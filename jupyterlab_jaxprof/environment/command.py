"""Running a program of another's: one that only reports, or one that tells how far it is."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_TIMEOUT_S = 10
_PERCENT = re.compile(rb"(\d{1,3})\s*%")
_WITH_PERCENT = re.compile(r"\d%")


def output_of(*command: str, timeout_s: float | None = None) -> tuple[str, str | None]:
    """Run a command that only reports; returns its output, and why it failed (None where it worked)."""
    limit_s = _TIMEOUT_S if timeout_s is None else timeout_s
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", f"it gave no answer within {limit_s} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        return done.stdout, f"exit status {done.returncode}" + (f", '{said[-1][:200]}'" if said else "")
    return done.stdout, None


def followed(
    command: Sequence[str], place: Path, on_part: Callable[[float], None], time_limit_s: float
) -> str:
    """Run a program in a directory, passing on its percentages (0 to 1); gives what else it printed.

    Its temporary files lie there too. Raises OSError where it does not start, TimeoutError where it has not
    ended in time; it is ended then.
    """
    deadline_s = time.monotonic() + time_limit_s
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment, "TMPDIR": str(place)},
        cwd=place,
        start_new_session=True,  # an interrupt of the notebook is ours to handle
    )
    try:
        said = _listen(process, on_part, deadline_s)
        process.wait(max(1.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return said


def percentage(part: bytes) -> float | None:
    """Give the last percentage in what a program prints, from 0 to 1."""
    found = _PERCENT.findall(part)
    return int(found[-1]) / 100 if found and int(found[-1]) <= 100 else None


def _listen(process: subprocess.Popen[bytes], on_part: Callable[[float], None], deadline_s: float) -> str:
    """Collect what a program prints until it closes its output."""
    assert process.stdout is not None
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if (left_s := deadline_s - time.monotonic()) <= 0:
                raise TimeoutError
            if not selector.select(left_s):
                continue
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
