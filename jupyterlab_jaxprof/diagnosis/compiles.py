"""Which functions were compiled in the window, and which of them had been compiled or run before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union_of
from jupyterlab_jaxprof.timeline.model import Floats, Phase, Timeline

from . import thresholds
from .window import StepTable, Window

LAMBDA = "<lambda>"
_CALL = "PjitFunction("


@dataclass(frozen=True)
class Compiled:
    """One function's compiles in the window, each array rows of `Timeline.compiles`.

    `again` made a program anew though an earlier step had one; `first` are first calls. Those of the first
    calls that are `besides` came in a step that called the name more often than any step before: they
    belong to another function of that name, or to other shapes that are an addition to the usual ones.
    Where no steps are marked, a few compiles more are `besides` too. `steps` has the step of each of
    `again`; `replaced` tells whether these took the place of usual calls, as far as those are recorded.
    """

    function: str
    first: NDArray[np.intp]
    besides: NDArray[np.intp]
    again: NDArray[np.intp]
    again_time: Intervals
    steps: NDArray[np.int64]
    replaced: bool
    every_call: bool = False  # each recorded call of the name compiled

    @property
    def certain(self) -> bool:
        """Whether `again` can hardly be another function's first call: a name alone doesn't tell a function,
        and least of all that of a lambda."""
        return len(self.again) >= thresholds.SURELY_AGAIN or (self.replaced and self.function != LAMBDA)


def function_name(text: str) -> str:
    """Give the user's name of a function: `jit(f)` and `jit_f` are `f`, `jit__lambda` is `<lambda>`."""
    name = text[4:-1] if text.startswith("jit(") and text.endswith(")") else text.removeprefix("jit_")
    return LAMBDA if name in ("_lambda", "_lambda_") else name  # how HLO writes it


def compiled_functions(
    timeline: Timeline, window: Window, steps: StepTable | None, process: int, thread: int
) -> list[Compiled]:
    """Give every function for which the leading thread made a program in the window, in the order of time.

    A program is made anew when its function was compiled or had run in an earlier step. Several programs in
    one step are first calls with several shapes; without steps any earlier run counts. What other threads
    compile holds no step up by itself.
    """
    table = timeline.compiles
    inside = (table.start_ns < window.end_ns) & (table.start_ns + table.duration_ns > window.start_ns)
    made = np.flatnonzero(inside & leading(timeline, process, thread) & _makes_program(timeline))
    functions = np.array([function_name(timeline.text(int(table.function[row]))) for row in made])
    calls: dict[str, Floats] | None = None
    found: list[Compiled] = []
    for function in dict.fromkeys(functions.tolist()):
        rows = made[functions == function]
        again = rows[_was_there(timeline, steps, function, rows)]
        besides, starts = again[:0], np.zeros(0)
        if len(again) and steps is not None:
            calls = _calls(timeline, thread) if calls is None else calls
            starts = calls.get(function, np.zeros(0))
            besides = again[_besides(steps, starts, table.start_ns[again])]
            again = np.setdiff1d(again, besides)
        elif steps is None and not _go_on(table.start_ns[again], window):
            besides, again = again, again[:0]
        found.append(
            Compiled(
                function=function,
                first=np.setdiff1d(rows, again),
                besides=besides,
                again=again,
                again_time=_time_of(timeline, function, again),
                steps=_step_of(steps, table.start_ns[again]),
                replaced=len(starts) > 0,
                every_call=1 < len(starts) <= len(rows),
            )
        )
    return found


def _go_on(starts_ns: Floats, window: Window) -> bool:
    """Whether compiles, where no steps are marked, are more than some shapes that a program starts with: they
    must go on, over much of the window."""
    if len(starts_ns) < thresholds.FEWEST_STEPS:
        return False
    spread_ns = float(starts_ns.max() - starts_ns.min())
    return spread_ns >= thresholds.RECOMPILING_SPREAD_SHARE * (window.end_ns - window.start_ns)


def leading(timeline: Timeline, process: int, thread: int) -> NDArray[np.bool_]:
    """Tell which compiles are those of the leading thread; of all its process where none is known to lead."""
    table = timeline.compiles
    if thread >= 0:
        return table.thread == thread
    processes = np.array([one.process for one in timeline.threads], dtype=np.int64)
    return processes[table.thread] == process if len(processes) else np.ones(len(table), dtype=np.bool_)


def from_cache(timeline: Timeline, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which of these programs were read from the persistent cache."""
    table = timeline.compiles
    read = table.take(table.phase == Phase.CACHE_READ)
    starts, ends = table.start_ns[rows], table.start_ns[rows] + table.duration_ns[rows]
    inside = np.searchsorted(read.start_ns, ends) - np.searchsorted(read.start_ns, starts)
    return (inside > 0) | (table.phase[rows] == Phase.CACHE_READ)


def _calls(timeline: Timeline, thread: int) -> dict[str, Floats]:
    """When a thread called each jitted function, by the function's name.

    Not what it called while it traced another one, and once where JAX marks a call twice.
    """
    ranges = timeline.ranges
    functions = {
        number: function_name(text[len(_CALL) : -1])
        for number, text in enumerate(timeline.texts)
        if text.startswith(_CALL) and text.endswith(")")
    }
    named = np.zeros(len(timeline.texts), dtype=np.bool_)
    named[list(functions)] = True
    rows = np.flatnonzero(named[ranges.name] & ((ranges.thread == thread) | (thread < 0)))
    starts, ends = ranges.start_ns[rows], ranges.start_ns[rows] + ranges.duration_ns[rows]
    order = np.lexsort((-ends, starts))
    rows, starts, ends = rows[order], starts[order], ends[order]
    outermost = np.ones(len(rows), dtype=np.bool_)
    outermost[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    found: dict[str, list[Floats]] = {}
    for number in np.unique(ranges.name[rows]).tolist():
        own = outermost & (ranges.name[rows] == number)
        found.setdefault(functions[number], []).append(starts[own])
    return {function: np.sort(np.concatenate(parts)) for function, parts in found.items()}


def _besides(steps: StepTable, calls_ns: Floats, again_ns: Floats) -> NDArray[np.bool_]:
    """Tell which of these compiles belong to calls that a step has more of than any before it."""
    counts = np.bincount(np.maximum(_step_of(steps, calls_ns), 0), minlength=len(steps))
    before = np.append(0, np.maximum.accumulate(counts)[:-1])
    additional = np.where(before > 0, np.maximum(counts - before, 0), 0)
    found = np.zeros(len(again_ns), dtype=np.bool_)
    step = _step_of(steps, again_ns)
    for one in np.unique(step):
        # The usual calls come first: what is new in a step is mostly its end, an evaluation or a metric
        own = np.flatnonzero(step == one)
        found[own[len(own) - min(int(additional[one]), len(own)) :]] = True
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
