"""Which part of a timeline is judged: the steps and what they started, or else all that was recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.model import Floats, Integers, RangeKind, Timeline


@dataclass(frozen=True)
class StepTable:
    """The steps that are judged: those of one name and one process, in the order of time."""

    name: str
    process: int
    thread: int
    number: Integers
    start_ns: Floats
    end_ns: Floats

    def __len__(self) -> int:
        return len(self.number)

    @property
    def duration_ns(self) -> Floats:
        """How long each marker is."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Window:
    """The time that is judged, and a sentence on how it was chosen."""

    start_ns: float
    end_ns: float
    reason: str

    @property
    def length_ns(self) -> float:
        """How long it is."""
        return self.end_ns - self.start_ns


def main_steps(timeline: Timeline) -> StepTable | None:
    """Give the steps that take the most time; of several processes, those of the first that has them."""
    steps = timeline.steps
    if not len(steps):
        return None
    totals = np.bincount(steps.name, weights=steps.duration_ns)
    name = int(np.argmax(totals))
    rows = np.flatnonzero(steps.name == name)
    processes = np.array([thread.process for thread in timeline.threads], dtype=np.int64)
    if len(processes):
        of_row = processes[steps.thread[rows]]
        rows = rows[of_row == of_row.min()]
    thread = int(np.bincount(steps.thread[rows]).argmax())
    rows = rows[steps.thread[rows] == thread]
    return StepTable(
        name=timeline.text(name),
        process=int(processes[thread]) if len(processes) else 0,
        thread=thread,
        number=steps.number[rows],
        start_ns=steps.start_ns[rows],
        end_ns=steps.start_ns[rows] + steps.duration_ns[rows],
    )


def choose_window(timeline: Timeline, steps: StepTable | None) -> Window:
    """Judge from the first step to the end of the last and of what it started on the devices."""
    if steps is None:
        return _whole(timeline)
    start, end = float(steps.start_ns[0]), float(steps.end_ns.max())
    reached = max(end, _end_of_started(timeline, start, end, float(np.median(steps.duration_ns))))
    after = " and what it had started on the device" if reached > end else ""
    few = "the one step" if len(steps) == 1 else f"the first of {len(steps)} steps"
    return Window(start, reached, f"From the start of {few} `{steps.name}` to the end of the last{after}.")


def _whole(timeline: Timeline) -> Window:
    """From the first to the last that devices and compiler did; without these, all that the host did for JAX."""
    ranges = timeline.ranges
    marked = (ranges.kind == RangeKind.ANNOTATION) | (ranges.kind == RangeKind.RUNTIME)
    choices = (
        (
            (timeline.ops, timeline.compiles),
            "From the first to the last thing that a device or the compiler did",
        ),
        ((ranges.take(marked),), "From the first to the last thing that JAX did on the host"),
    )
    for tables, reason in choices:
        seen = [(table.start_ns, table.start_ns + table.duration_ns) for table in tables if len(table)]
        if seen:
            return Window(
                float(min(starts.min() for starts, _ in seen)),
                float(max(ends.max() for _, ends in seen)),
                f"{reason}, since no steps are marked.",
            )
    return Window(*timeline.recorded_ns, "All that was recorded: nothing of JAX is in it.")


def _end_of_started(timeline: Timeline, start_ns: float, end_ns: float, median_step_ns: float) -> float:
    """When the devices were done with what was started before the last step's end."""
    ops = timeline.ops
    inside = (ops.start_ns < end_ns) & (ops.start_ns >= start_ns)
    done = float((ops.start_ns[inside] + ops.duration_ns[inside]).max(initial=end_ns))
    later = np.flatnonzero(ops.start_ns >= end_ns)
    if not len(later):
        return done
    ends = ops.start_ns[later] + ops.duration_ns[later]
    launched = _launch_times(timeline, later)
    if not np.isnan(launched).any():
        return float(ends[launched < end_ns].max(initial=done))
    reached = np.maximum.accumulate(np.concatenate([[done], ends]))[:-1]
    apart = np.flatnonzero(ops.start_ns[later] - reached > max(median_step_ns, 1e6))
    return float(ends[: apart[0] if len(apart) else len(ends)].max(initial=done))


def _launch_times(timeline: Timeline, rows: NDArray[np.intp]) -> Floats:
    """When the host launched these operations; NaN where that isn't known."""
    calls, wanted = timeline.calls, timeline.ops.correlation[rows]
    times = np.full(len(rows), np.nan)
    if not len(calls):
        return times
    order = np.argsort(calls.correlation, kind="stable")
    place = np.minimum(np.searchsorted(calls.correlation[order], wanted), len(calls) - 1)
    known = (calls.correlation[order][place] == wanted) & (wanted != 0)
    times[known] = calls.start_ns[order][place[known]]
    return times
