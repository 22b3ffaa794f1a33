"""Running a program that only reports."""

from __future__ import annotations

import subprocess

_TIMEOUT_S = 10


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
