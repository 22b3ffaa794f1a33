"""The table of all programs."""

from __future__ import annotations

from tests.gpu.programs import compiling, healthy, host, kernels, transfers
from tests.gpu.programs.recording import PROGRAMS, Program


def table() -> dict[str, Program]:
    """Give every program by its name; importing the modules has entered them."""
    assert all(module.__doc__ for module in (compiling, healthy, host, kernels, transfers))
    return PROGRAMS
