"""The small drawing of a timeline: some lanes of a few hundred intervals at most, and the largest gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import Intervals
from jupyterlab_jaxprof.timeline.model import Floats

from . import thresholds
from .analysis import Analysis
from .compiles import function_name
from .gaps import SHORT, Cause, IdleTime, who
from .grouping import largest

Lane = dict[str, Any]
#: A gap that is shorter than this share of the window can't be seen in the drawing.
_VISIBLE_SHARE = 0.002
_OTHER_STEPS = 3


def drawing(analysis: Analysis) -> dict[str, Any]:
    """Give the summary's `drawing`, in the file's own milliseconds."""
    start_ns, end_ns = analysis.extent
    return {
        "start_ms": _ms(start_ns),
        "end_ms": _ms(end_ns),
        "lanes": [lane for lane in _lanes(analysis) if lane["intervals"]],
        "gaps": _gaps(analysis),
    }


def _ms(time_ns: float) -> float:
    return round(float(time_ns) / 1e6, 6)


def _lanes(analysis: Analysis) -> list[Lane]:
    timeline, steps = analysis.timeline, analysis.steps
    start_ns, end_ns = analysis.extent
    lanes: list[Lane] = []
    if steps is not None:
        labels = [str(number) for number in steps.number]
        lanes.append(_labelled("steps", steps.name, steps.start_ns, steps.end_ns, labels))
        for one in analysis.other_steps[:_OTHER_STEPS]:
            if one.name != steps.name:
                labels = [str(number) for number in one.number]
                lanes.append(_labelled("steps", one.name, one.start_ns, one.end_ns, labels))
    compiles = timeline.compiles
    inside = (compiles.start_ns < end_ns) & (compiles.start_ns + compiles.duration_ns > start_ns)
    compiles = compiles.take(inside)
    lanes.append(
        _labelled(
            "compiles",
            "compiling",
            compiles.start_ns,
            compiles.start_ns + compiles.duration_ns,
            [function_name(timeline.text(int(number))) for number in compiles.function],
        )
    )
    for use in analysis.devices:
        lanes.append(_merged("device", use.name, use.busy))
        lanes.append(_merged("copies", f"{use.name} copies", use.copy))
        lanes.append(_merged("collectives", f"{use.name} collectives", use.collective))
    rows = analysis.host.annotations
    ranges = timeline.ranges
    lanes.append(
        _labelled(
            "host",
            "host",
            ranges.start_ns[rows],
            ranges.start_ns[rows] + ranges.duration_ns[rows],
            [timeline.text(int(number)) for number in ranges.name[rows]],
        )
    )
    return lanes


def _labelled(kind: str, label: str, starts: Floats, ends: Floats, labels: Sequence[str]) -> Lane:
    """A lane of named intervals; the longest ones where there are too many."""
    longest = np.sort(largest(ends - starts, thresholds.LANE_INTERVALS))
    return {
        "label": label,
        "kind": kind,
        "intervals": [[_ms(float(starts[i])), _ms(float(ends[i])), labels[i]] for i in longest],
    }


def _merged(kind: str, label: str, intervals: Intervals) -> Lane:
    """A lane of intervals; across the shortest pauses they become one where there are too many."""
    starts, ends = intervals.start_ns, intervals.end_ns
    if len(intervals) > thresholds.LANE_INTERVALS:
        pauses = starts[1:] - ends[:-1]
        kept = np.sort(largest(pauses, thresholds.LANE_INTERVALS - 1))
        starts, ends = starts[np.append(0, kept + 1)], ends[np.append(kept, len(ends) - 1)]
    return {
        "label": label,
        "kind": kind,
        "intervals": [
            [_ms(start), _ms(end)] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
    }


def _gaps(analysis: Analysis) -> list[dict[str, Any]]:
    """The largest gaps of all devices, each with its main cause."""
    found: list[tuple[float, float, IdleTime]] = []
    for idle in analysis.idle:
        gaps = idle.device.idle
        chosen = largest(gaps.lengths_ns, thresholds.DRAWN_GAPS)
        found += [(float(gaps.start_ns[i]), float(gaps.end_ns[i]), idle) for i in chosen]
    visible = _VISIBLE_SHARE * analysis.length_ns
    drawn = sorted(found, key=lambda gap: gap[0] - gap[1])[: thresholds.DRAWN_GAPS]
    return [
        {"start_ms": _ms(start), "end_ms": _ms(end), "device": idle.device.name, "cause": cause}
        for start, end, idle in sorted(drawn, key=lambda gap: gap[0])
        if end - start >= visible and (cause := cause_of_gap(analysis, idle, start, end))
    ]


def cause_of_gap(analysis: Analysis, idle: IdleTime, start_ns: float, end_ns: float) -> str:
    """Name the cause that takes most of a gap, with the user's own name for it where there is one.

    Empty where it has none: this project's own fence took it all.
    """
    covered = {
        cause: taken_ns
        for cause, when in idle.by_cause.items()
        if len(when) and (taken_ns := float(when.covered(start_ns, end_ns))) > 0
    }
    if not covered:
        return ""
    cause = max(covered, key=lambda one: covered[one])
    host = analysis.hosts[idle.device.process]
    pieces = idle.by_cause[cause].clip(start_ns, end_ns)
    if cause is Cause.ANNOTATED:
        found = who(analysis.timeline, host.annotations, pieces)
        return found[0][0] if found else SHORT[cause]
    named = who(analysis.timeline, host.annotations, pieces) or (
        who(analysis.timeline, host.working_frames, pieces) if cause in (Cause.PYTHON, Cause.SLEEP) else []
    )
    return f"{SHORT[cause]} ({named[0][0]})" if named else SHORT[cause]
