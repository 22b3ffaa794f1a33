"""The patterns: one file each, a pure function from an analysed timeline to findings."""

from __future__ import annotations

from collections.abc import Callable

from ..analysis import Analysis
from ..finding import Finding
from . import (
    callbacks,
    collectives,
    device_copies,
    eager,
    first_call,
    host_copies,
    host_starves,
    idle,
    memory,
    recompilation,
    recorder,
    small_step,
    stragglers,
    tiny_kernels,
    waiting,
)

PATTERNS: tuple[Callable[[Analysis], list[Finding]], ...] = (
    first_call.find,
    recompilation.find,
    host_starves.find,
    eager.find,
    tiny_kernels.find,
    small_step.find,
    waiting.find,
    host_copies.find,
    callbacks.find,
    collectives.find,
    stragglers.find,
    device_copies.find,
    memory.find,
    idle.find,
    recorder.find,
)
