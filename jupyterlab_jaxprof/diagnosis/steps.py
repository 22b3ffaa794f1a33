"""Step statistics: how long steps take, where the time of one goes, and what the slow ones had more of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals
from jupyterlab_jaxprof.timeline.model import Floats

from . import thresholds
from .analysis import Analysis
from .compiles import Compiled, from_cache
from .gaps import Cause, who
from .units import milliseconds, names
from .window import StepTable

_PARTS = ("compute", "copy", "collective", "host", "idle")
#: What the host is seen to do while a device rests; waiting and what isn't shown is 'idle'.
_HOST = tuple(cause for cause in Cause if cause not in (Cause.KERNELS, Cause.WAIT, Cause.UNSEEN))
_MAX_DURATIONS = 10_000


@dataclass(frozen=True)
class Parts:
    """Each step's time by what went on, in ns; together they are the step's duration exactly.

    Means over the devices. A moment in which a device computes is computing, whatever else goes on; then
    come collectives, then copies; of a device's rest, `host` is what the host is seen to hold it up with.
    """

    compute: Floats
    copy: Floats
    collective: Floats
    host: Floats
    idle: Floats


def parts_of_steps(analysis: Analysis, steps: StepTable) -> Parts:
    """Divide each step's time."""

    def mean(sets: list[Intervals]) -> Floats:
        return np.mean([one.covered(steps.start_ns, steps.end_ns) for one in sets], axis=0)

    compute = mean([use.compute for use in analysis.devices])
    collective = mean([use.exposed_collective for use in analysis.devices])
    copy = mean([use.exposed_copy for use in analysis.devices])
    host = mean([idle.of(*_HOST) for idle in analysis.idle])
    rest = np.maximum(steps.duration_ns - compute - collective - copy - host, 0.0)
    return Parts(compute, copy, collective, host, rest)


def step_summary(analysis: Analysis) -> dict[str, Any] | None:
    """Give the summary's `steps`; None where none are marked.

    No parts where no device was seen, and neither parts nor slowest steps where the markers end early.
    """
    steps = analysis.steps
    if steps is None:
        return None
    duration, device_ns = steps.duration_ns, analysis.device_ns_per_step
    low, median, high = np.percentile(duration, [25, 50, 75])
    summary: dict[str, Any] = {
        "name": steps.name,
        "count": len(steps),
        "median_ms": round(float(median) / 1e6, 6),
        "min_ms": round(float(duration.min()) / 1e6, 6),
        "max_ms": round(float(duration.max()) / 1e6, 6),
        "quartiles_ms": [round(float(low) / 1e6, 6), round(float(high) / 1e6, 6)],
        "durations_ms": [round(float(one) / 1e6, 6) for one in duration[:_MAX_DURATIONS]],
        "device_ms": None if device_ns is None else round(device_ns / 1e6, 6),
        "marks_dispatch": None if analysis.marks_unknown else analysis.marks_dispatch,
        "others": [
            {"name": other.name, "count": other.count, "median_ms": round(other.median_ns / 1e6, 6)}
            for other in analysis.other_steps
        ],
        # Of markers that end early both would tell about the dispatch as if it were the step
        "slowest": None if analysis.marks_dispatch else _slowest(analysis, steps),
        "parts": None,
    }
    if analysis.devices and not analysis.marks_dispatch:
        parts = parts_of_steps(analysis, steps)
        # The parts of the middle step, or the means of the two middle ones: these add up to the median
        order = np.argsort(duration, kind="stable")
        middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
        summary["parts"] = {
            f"{name}_ms": round(float(np.mean(getattr(parts, name)[middle])) / 1e6, 6) for name in _PARTS
        }
        # What rounding takes or gives goes to the largest part, so that the sum is exact
        missing = summary["median_ms"] - sum(summary["parts"].values())
        largest = max(summary["parts"], key=summary["parts"].__getitem__)
        summary["parts"][largest] = round(summary["parts"][largest] + missing, 6)
    return summary


def _slowest(analysis: Analysis, steps: StepTable) -> list[dict[str, Any]]:
    duration = steps.duration_ns
    median = float(np.median(duration))
    slow = [
        int(i)
        for i in np.argsort(-duration, kind="stable")[: thresholds.SLOWEST]
        if duration[i] > thresholds.SLOW_STEP * median
    ]
    if not slow:
        return []
    middle = int(np.argsort(duration, kind="stable")[(len(steps) - 1) // 2])
    return [
        {
            "number": int(steps.number[index]),
            "duration_ms": round(float(duration[index]) / 1e6, 6),
            "why": _which(analysis, steps, index) + _why(analysis, steps, index, middle),
        }
        for index in slow
    ]


def _which(analysis: Analysis, steps: StepTable, index: int) -> str:
    """Tell a step from others of its number: by the step around it, or by its place in time."""
    number = steps.number[index]
    if np.count_nonzero(steps.number == number) == 1:
        return ""
    for other in analysis.other_steps:
        place = int(np.searchsorted(other.start_ns, steps.start_ns[index], side="right")) - 1
        if other.around and place >= 0 and other.end_ns[place] >= steps.end_ns[index]:
            return f"In `{other.name}` {other.number[place]}: "
    return f"Number {index + 1} in the order of time: "


def _why(analysis: Analysis, steps: StepTable, index: int, middle: int) -> str:
    """Say what one step has more of than the middle one: the thing that differs most."""
    starts, ends = steps.start_ns[[index, middle]], steps.end_ns[[index, middle]]
    bounds = float(starts[0]), float(ends[0])
    more = _differences(analysis, starts, ends)
    what = max(more, key=lambda key: more[key])
    extra = float(ends[0] - starts[0] - (ends[1] - starts[1]))
    if more[what] < thresholds.NAMING_SHARE * extra:
        beside = analysis.host.compiling_beside.covered(*bounds)
        if float(beside) >= thresholds.NAMING_SHARE * float(ends[0] - starts[0]):
            return "Another thread compiled meanwhile; nothing else that the trace shows was much different."
        return "Nothing that the trace shows was much different."
    longer = milliseconds(more[what])
    if what == "compile":
        # All of it, as the findings tell it: not what is more of it than in the middle step
        whole = milliseconds(float(analysis.compiling.covered(starts[:1], ends[:1])[0]))
        made = [
            (one.function, rows) for one in analysis.compiled if len(rows := _within(analysis, one, *bounds))
        ]
        functions = names([name for name, _ in made if name])
        cached = bool(made) and bool(
            from_cache(analysis.timeline, np.concatenate([rows for _, rows in made])).all()
        )
        how = "of taking programs from the cache" if cached else "of compiling"
        return f"{whole} {how}" + (f": {functions}." if functions else ".")
    if not analysis.devices:
        return f"`{what}` took {longer} longer."
    texts = {
        "compute": f"The device computed {longer} longer.",
        "talk": f"Collectives held computing up {longer} longer.",
        "copy": f"Copies held computing up {longer} longer.",
    }
    named = _named(analysis, starts[0], ends[0])
    return texts.get(what) or f"The device rested {longer} longer: {what}{named}."


def _differences(analysis: Analysis, starts: Floats, ends: Floats) -> dict[str, float]:
    """How much more of each thing the first of two stretches of time has than the second, in ns."""

    def more(sets: Sequence[Intervals]) -> float:
        first, second = np.mean([one.covered(starts, ends) for one in sets], axis=0)
        return float(first - second)

    found = {"compile": more([analysis.compiling])}
    if not analysis.devices:
        return found | _annotations(analysis, starts, ends)
    found["compute"] = more([use.compute for use in analysis.devices])
    found["talk"] = more([use.exposed_collective for use in analysis.devices])
    found["copy"] = more([use.exposed_copy for use in analysis.devices])
    for cause in Cause:
        if cause is not Cause.COMPILING:
            found[cause.value] = more([idle.of(cause) for idle in analysis.idle])
    return found


def _annotations(analysis: Analysis, starts: Floats, ends: Floats) -> dict[str, float]:
    """How much longer each of the user's annotations was in the first of two stretches of time."""
    ranges, rows = analysis.timeline.ranges, analysis.host.annotations
    totals: list[Floats] = []
    for start, end in zip(starts, ends, strict=True):
        inside = rows[(ranges.start_ns[rows] >= start) & (ranges.start_ns[rows] < end)]
        length = len(analysis.timeline.texts)
        totals.append(np.bincount(ranges.name[inside], ranges.duration_ns[inside], length).astype(np.float64))
    return {
        analysis.timeline.text(int(number)): float(totals[0][number] - totals[1][number])
        for number in np.flatnonzero(totals[0] > totals[1])
    }


def _within(analysis: Analysis, one: Compiled, start_ns: float, end_ns: float) -> NDArray[np.intp]:
    """The compiles of a function that went on in some time."""
    rows, table = np.concatenate([one.first, one.again]), analysis.timeline.compiles
    done = table.start_ns[rows] + table.duration_ns[rows]
    return rows[(done > start_ns) & (table.start_ns[rows] < end_ns)]


def _named(analysis: Analysis, start_ns: float, end_ns: float) -> str:
    """The user's name for what the host did while the device rested in a step."""
    host = analysis.host
    idle = analysis.devices[0].idle.clip(start_ns, end_ns)
    found = who(analysis.timeline, host.annotations, idle)
    return f" (`{found[0][0]}`)" if found and found[0][1] > thresholds.NAMING_SHARE * idle.total_ns else ""
