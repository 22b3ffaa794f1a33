"""Running a program that only reports."""

from __future__ import annotations

import subprocess

_TIMEOUT_S = 10


def output_of(*command: str) -> tuple[str, str | None]:
    """Run a command that only reports; returns its output, and why it failed (None where it worked)."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", f"it gave no answer within {_TIMEOUT_S} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        return done.stdout, f"exit status {done.returncode}" + (f", '{said[-1][:200]}'" if said else "")
    return done.stdout, None
