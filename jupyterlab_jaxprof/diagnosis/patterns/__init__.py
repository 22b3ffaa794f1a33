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
    nothing_wrong,
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

#: The name of every finding that there may be.
IDS: tuple[str, ...] = (
    callbacks.ID,
    collectives.ID,
    device_copies.ID,
    eager.ID,
    first_call.ID,
    host_copies.TO_DEVICE,
    host_copies.TO_HOST,
    host_starves.ID,
    idle.ID,
    memory.ID,
    nothing_wrong.ID,
    recompilation.ID,
    recorder.DISTURBED,
    recorder.DROPPED,
    recorder.EARLY,
    recorder.GRAPHS,
    recorder.NO_DEVICE,
    recorder.NO_STEPS,
    small_step.ID,
    stragglers.ID,
    tiny_kernels.LAUNCH,
    tiny_kernels.TINY,
    waiting.READ,
    waiting.SYNC,
)
