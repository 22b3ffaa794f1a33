"""One thing that is amiss, and what helps."""

from __future__ import annotations

import shlex
import sys
from typing import Any


def problem(what: str, remedy: str, *, needed: bool = False) -> dict[str, Any]:
    """Say what is amiss and what helps; `needed`: something can't work before it is mended."""
    return {"what": what, "remedy": remedy, "needed": needed, "note": False}


def note(purpose: str, what: str, remedy: str) -> dict[str, Any]:
    """Say what is amiss with a tool that is only for `purpose`, beside what is used here already."""
    return problem(f"For {purpose}: {what}", remedy) | {"note": True}


def pip_install(wanted: str, restart: str) -> str:
    """Tell how to install `wanted` (quoted for a shell) into this Python's environment."""
    return f"Run: {shlex.quote(sys.executable)} -m pip install {wanted}, then restart {restart}."
