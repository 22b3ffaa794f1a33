"""Which functions were compiled in the window, and which of them had been compiled or run before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union_of
from jupyterlab_jaxprof.timeline.model import Phase, Timeline

from .window import StepTable, Window


@dataclass(frozen=True)
class Compiled:
    """One function's compiles in the window. `again` are the rows of `Timeline.compiles` that made a program
    anew though an earlier step had one; `first` are the others. `steps` has the step of each of `again`."""

    function: str
    first: NDArray[np.intp]
    again: NDArray[np.intp]
    again_time: Intervals
    steps: NDArray[np.int64]


def function_name(text: str) -> str:
    """Give the user's name of a function: `jit(f)` and `jit_f` are `f`."""
    if text.startswith("jit(") and text.endswith(")"):
        return text[4:-1]
    return text.removeprefix("jit_")


def compiled_functions(timeline: Timeline, window: Window, steps: StepTable | None) -> list[Compiled]:
    """Give every function for which a program was made in the window, in the order of time.

    A program is made anew when its function was compiled or had run in an earlier step. Several programs in
    one step are first calls with several shapes; without steps any earlier run counts.
    """
    table = timeline.compiles
    inside = (table.start_ns < window.end_ns) & (table.start_ns + table.duration_ns > window.start_ns)
    made = np.flatnonzero(inside & _makes_program(timeline))
    functions = np.array([function_name(timeline.text(int(table.function[row]))) for row in made])
    found: list[Compiled] = []
    for function in dict.fromkeys(functions.tolist()):
        rows = made[functions == function]
        again = rows[_was_there(timeline, steps, function, rows)]
        found.append(
            Compiled(
                function=function,
                first=np.setdiff1d(rows, again),
                again=again,
                again_time=_time_of(timeline, function, again),
                steps=_step_of(steps, table.start_ns[again]),
            )
        )
    return found


def _makes_program(timeline: Timeline) -> NDArray[np.bool_]:
    """Rows that end with a program: compiled, or read from the cache (outside a compile of its own)."""
    table = timeline.compiles
    compiling = table.phase == Phase.COMPILE
    whole = union_of(table.start_ns[compiling], table.duration_ns[compiling])
    middle = table.start_ns + table.duration_ns / 2
    return compiling | ((table.phase == Phase.CACHE_READ) & ~whole.contain(middle))


def _step_of(steps: StepTable | None, times_ns: NDArray[np.float64]) -> NDArray[np.int64]:
    if steps is None:
        return np.zeros(len(times_ns), dtype=np.int64)
    return np.searchsorted(steps.start_ns, times_ns, side="right") - 1


def _was_there(
    timeline: Timeline, steps: StepTable | None, function: str, rows: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether the function had been compiled or run in an earlier step (at all, without steps)."""
    starts = timeline.compiles.start_ns[rows]
    earliest = min(float(starts[0]), _first_run(timeline, function))
    if steps is None:
        return starts > earliest
    return _step_of(steps, starts) > _step_of(steps, np.array([earliest]))[0]


def _first_run(timeline: Timeline, function: str) -> float:
    """When the function was first seen to have run: on a device, or a call of it that had returned."""
    if not function:
        return np.inf
    first = np.inf
    ops, ranges = timeline.ops, timeline.ranges
    for number in timeline.find(f"jit_{function}"):
        first = min(first, float(ops.start_ns[ops.module == number].min(initial=np.inf)))
    for number in timeline.find(f"PjitFunction({function})"):
        calls = ranges.name == number
        starts, ends = ranges.start_ns[calls], ranges.start_ns[calls] + ranges.duration_ns[calls]
        # A call that compiles is the compile itself
        table = timeline.compiles
        compiling = union_of(table.start_ns, table.duration_ns)
        first = min(first, float(starts[compiling.covered(starts, ends) == 0].min(initial=np.inf)))
    return first


def _time_of(timeline: Timeline, function: str, again: NDArray[np.intp]) -> Intervals:
    """The time of all phases that led to these programs: the function's since its program before."""
    if not len(again):
        return NONE
    table = timeline.compiles
    own = np.array([function_name(timeline.text(int(number))) == function for number in table.function])
    made = np.flatnonzero(own & _makes_program(timeline))
    ends = table.start_ns[made] + table.duration_ns[made]
    # Each row belongs to the first program that is done after it began
    program = np.searchsorted(ends, table.start_ns, side="right")
    wanted = np.isin(program, np.searchsorted(made, again)) & own
    return union_of(table.start_ns[wanted], table.duration_ns[wanted])
