"""How often a test of the hardening tries: little in CI, much when the endurance run asks for it."""

from __future__ import annotations

import os

FULL = os.environ.get("JAXPROF_ENDURANCE") == "full"


def tries(in_ci: int, full: int) -> int:
    """Return `in_ci`, or `full` where `scripts/endurance.sh` runs the tests."""
    return full if FULL else in_ci
