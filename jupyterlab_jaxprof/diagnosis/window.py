"""Which part of a timeline is judged: the steps and what they started, or else all that was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jupyterlab_jaxprof.timeline.model import (
    ApiCalls,
    Floats,
    Integers,
    RangeKind,
    Steps,
    Timeline,
)

#: A step that holds so many others on average is an epoch around them.
_AROUND = 2.0


@dataclass(frozen=True)
class StepTable:
    """The steps of one name and one process, in the order of time."""

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


def main_steps(timeline: Timeline) -> list[StepTable]:
    """Give the steps that take the most time, for each process that marks them, in the order of processes."""
    steps = timeline.steps
    if not len(steps):
        return []
    totals = np.bincount(steps.name, weights=steps.duration_ns)
    totals[_outer(steps)] = 0.0
    name = int(np.argmax(totals))
    named = np.flatnonzero(steps.name == name)
    processes = np.array([thread.process for thread in timeline.threads], dtype=np.int64)[steps.thread[named]]
    tables: list[StepTable] = []
    for process in np.unique(processes):
        rows = named[processes == process]
        thread = int(np.bincount(steps.thread[rows]).argmax())
        rows = rows[steps.thread[rows] == thread]
        tables.append(
            StepTable(
                name=timeline.text(name),
                process=int(process),
                thread=thread,
                number=steps.number[rows],
                start_ns=steps.start_ns[rows],
                end_ns=steps.start_ns[rows] + steps.duration_ns[rows],
            )
        )
    return tables


@dataclass(frozen=True)
class OtherSteps:
    """Marked steps of a process besides those that are judged: of another name, or on another thread."""

    name: str
    count: int
    median_ns: float
    around: bool  # each around several of the judged ones, as an epoch is
    number: Integers
    start_ns: Floats
    end_ns: Floats


def other_steps(timeline: Timeline, chosen: StepTable) -> list[OtherSteps]:
    """Give the other marked steps of the process of the chosen ones, the longest in all first."""
    steps = timeline.steps
    processes = np.array([thread.process for thread in timeline.threads], dtype=np.int64)[steps.thread]
    same = np.isin(steps.name, timeline.find(chosen.name)) & (steps.thread == chosen.thread)
    steps = steps.take((processes == chosen.process) & ~same)
    found: list[tuple[float, OtherSteps]] = []
    for name in np.unique(steps.name):
        own = steps.take(steps.name == name)
        ends = own.start_ns + own.duration_ns
        inside = np.searchsorted(chosen.start_ns, ends) - np.searchsorted(chosen.start_ns, own.start_ns)
        around = bool((own.thread == chosen.thread).all()) and float(inside.mean()) >= _AROUND
        one = OtherSteps(
            name=timeline.text(int(name)),
            count=len(own),
            median_ns=float(np.median(own.duration_ns)),
            around=around,
            number=own.number,
            start_ns=own.start_ns,
            end_ns=ends,
        )
        found.append((float(own.duration_ns.sum()), one))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


def _outer(steps: Steps) -> list[int]:
    """Names of steps around steps: an epoch around its training steps."""
    names = np.unique(steps.name)
    outer: list[int] = []
    for name in names if len(names) > 1 else ():
        own = steps.name == name
        others = steps.start_ns[~own]
        starts, ends = steps.start_ns[own], steps.start_ns[own] + steps.duration_ns[own]
        inside = np.searchsorted(others, ends) - np.searchsorted(others, starts)
        if float(inside.mean()) >= _AROUND:
            outer.append(int(name))
    return outer if len(outer) < len(names) else []


def choose_windows(timeline: Timeline, every_steps: Sequence[StepTable]) -> dict[int, Window]:
    """Give each process its window; one without steps of its own has that of the others.

    From the first step's start to the end of the last step, or to that of the devices' last work.
    """
    places = (*timeline.devices, *timeline.threads)
    processes = sorted({place.process for place in places}) or [0]
    if not every_steps:
        return dict.fromkeys(processes, _whole(timeline))
    of_process = {device.process: [] for device in timeline.devices}
    for index, device in enumerate(timeline.devices):
        of_process[device.process].append(index)
    windows = {
        steps.process: _around(timeline, steps, of_process.get(steps.process)) for steps in every_steps
    }
    common = Window(
        min(window.start_ns for window in windows.values()),
        max(window.end_ns for window in windows.values()),
        next(iter(windows.values())).reason,
    )
    return {process: windows.get(process, common) for process in processes}


def _around(timeline: Timeline, steps: StepTable, devices: Sequence[int] | None) -> Window:
    """The window of one process: around all its steps, those of other names too."""
    ops = timeline.ops
    if len({device.process for device in timeline.devices}) > 1:
        ops = ops.take(np.isin(ops.device, devices or []))
    own = timeline.steps.take(timeline.steps.thread == steps.thread)
    start, end = float(own.start_ns.min()), float((own.start_ns + own.duration_ns).max())
    reached = float((ops.start_ns + ops.duration_ns).max(initial=end))
    until = "the last work of a device" if reached > end else "the end of the last"
    others = other_steps(timeline, steps)
    if len(own) == 1:
        end_of = until if reached > end else "its end"
        return Window(start, reached, f"From the start of the one step `{steps.name}` to {end_of}.")
    listed = [f"`{steps.name}`", *(f"`{one.name}`" for one in others if one.name != steps.name)]
    reason = f"From the start of the first of {len(own)} steps {' and '.join(listed)} to {until}."
    return Window(start, reached, reason + _choice(steps, others))


def _choice(steps: StepTable, others: Sequence[OtherSteps]) -> str:
    """Say which of several kinds of steps are told, and why."""
    parts: list[str] = []
    around = [one for one in others if one.around]
    beside = [one for one in others if not one.around and one.name != steps.name]
    elsewhere = sum(one.count for one in others if one.name == steps.name)
    if around:
        parts.append("lie in " + " and ".join(f"the {one.count} `{one.name}`" for one in around))
    if beside:
        parts.append(
            "take more time in all than " + " and ".join(f"the {one.count} `{one.name}`" for one in beside)
        )
    told = f" Told as steps are the {len(steps)} `{steps.name}`"
    text = f"{told}, which {' and '.join(parts)}." if parts else ""
    if elsewhere:
        text += f"{'' if text else told + '.'} {elsewhere} more `{steps.name}` of other threads are not told."
    return text


def _whole(timeline: Timeline) -> Window:
    """From the first to the last that devices and compiler did; without these, that the host did for JAX."""
    ranges = timeline.ranges
    marked = (ranges.kind == RangeKind.ANNOTATION) | (ranges.kind == RangeKind.RUNTIME)
    known = "known: the recording has nothing of the host" if "host" in timeline.blind else "marked"
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
                f"{reason}, since no steps are {known}.",
            )
    return Window(*timeline.recorded_ns, "All that was recorded: nothing of JAX is in it.")


def launch_times(calls: ApiCalls, correlations: Integers) -> Floats:
    """When the host launched operations, by their correlations; NaN where that isn't known."""
    times = np.full(len(correlations), np.nan)
    if not len(calls):
        return times
    order = np.argsort(calls.correlation, kind="stable")
    place = np.minimum(np.searchsorted(calls.correlation[order], correlations), len(calls) - 1)
    known = (calls.correlation[order][place] == correlations) & (correlations != 0)
    times[known] = calls.start_ns[order][place[known]]
    return times
