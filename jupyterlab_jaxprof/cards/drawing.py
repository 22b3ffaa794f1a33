"""A timeline's drawing as a block: lanes scaled to fractions, gaps marked with their cause.

It is made of the record's `summary.timeline.drawing`, in which anything may be missing.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from . import units
from .blocks import Drawing, Lane, Mark

MAX_LANES = 16
#: Of all lanes together, so that a card stays small: spans, and marks with a tooltip.
SPANS, MARKS = 1200, 160
MAX_CAUSES = 4
#: Which of a device's figures is the time that a lane of this kind shows.
_TIMES = {"device": "busy_ms", "copies": "copy_ms", "collectives": "collective_ms"}
_FINEST = 1 / 1000  # of the width: what is closer together is drawn as one

Data = Mapping[str, Any]
Interval = tuple[float, float, str]


def block(timeline: Data) -> Drawing | None:
    """Give the drawing of a summary's `timeline`; None where there is nothing to draw."""
    drawing: Data = timeline.get("drawing") or {}
    start_ms, end_ms = drawing.get("start_ms"), drawing.get("end_ms")
    if start_ms is None or end_ms is None or not 0 < end_ms - start_ms < math.inf:
        return None
    scale = _Scale(start_ms, end_ms)
    lanes = _mappings(drawing.get("lanes"))
    gaps = [gap for gap in _mappings(drawing.get("gaps")) if scale.interval(_ends(gap)) is not None]
    tones, causes = _causes(gaps)
    devices = {str(row.get("device")): row for row in _mappings(timeline.get("devices"))}
    most = _Most(len(lanes[:MAX_LANES]))
    shown: list[Lane] = []
    for lane in lanes[:MAX_LANES]:
        shown.append(_as_part(_lane(lane, gaps, tones, devices, scale, most), shown))
    if not any(lane.spans for lane in shown):
        return None
    hidden = len(lanes) - len(shown)
    return Drawing(
        title="Timeline",
        label=f"Timeline of {units.duration(end_ms - start_ms)}: {', '.join(lane.label for lane in shown)}",
        lanes=shown,
        low=units.instant(start_ms, end_ms - start_ms),
        high=units.instant(end_ms, end_ms - start_ms),
        causes=causes,
        more=f"and {units.count(hidden, 'more lane')}" if hidden > 0 else "",
    )


class _Most:
    """How many spans and marks one of so many lanes may have."""

    def __init__(self, lanes: int) -> None:
        self.spans = min(SPANS // max(lanes, 1), 150)
        self.marks = min(MARKS // max(2 * lanes, 1), 20)


class _Scale:
    """From milliseconds to fractions of the drawing's width."""

    def __init__(self, start_ms: float, end_ms: float) -> None:
        self.start_ms, self.width_ms = start_ms, end_ms - start_ms

    def interval(self, ends: Sequence[Any]) -> tuple[float, float] | None:
        """Give what of an interval is in sight; None for none of it, and for what is no interval."""
        if len(ends) < 2 or any(
            isinstance(end, bool) or not isinstance(end, (int, float)) for end in ends[:2]
        ):
            return None
        start, end = ((value - self.start_ms) / self.width_ms for value in ends[:2])
        return (max(start, 0.0), min(end, 1.0)) if end >= 0 and start <= 1 and start <= end else None


def _lane(
    lane: Data,
    gaps: Sequence[Data],
    tones: Mapping[str, int],
    devices: Mapping[str, Data],
    scale: _Scale,
    most: _Most,
) -> Lane:
    label, kind = str(lane.get("label") or ""), str(lane.get("kind") or "")
    intervals = list(_intervals(lane, scale))
    own = [gap for gap in gaps if gap.get("device") == label] if kind == "device" else []
    own = sorted(own, key=_length, reverse=True)[: most.marks]
    named = sorted((one for one in intervals if one[2]), key=lambda one: one[0] - one[1])[: most.marks]
    spans = _merged(intervals, most.spans, keep_apart=kind == "steps")
    device = devices.get(label.removesuffix(f" {kind}"), {})
    share = device.get("busy_share") if kind == "device" else None
    return Lane(
        label=label,
        kind=kind,
        value=units.share(share) if share is not None else "",
        spans=spans,
        density=_density(spans, device.get(_TIMES.get(kind, "")), scale),
        named=[Mark(*one) for one in sorted(named)],
        gaps=[mark for gap in sorted(own, key=_ends) if (mark := _gap(gap, tones, scale)) is not None],
    )


def _as_part(lane: Lane, above: Sequence[Lane]) -> Lane:
    """Leave a device's name out of the lanes of its copies and collectives, which stand below its own."""
    device = next((one.label for one in reversed(above) if one.kind == "device"), "")
    if lane.kind not in ("copies", "collectives") or not device or not lane.label.startswith(f"{device} "):
        return lane
    return replace(lane, label=lane.label.removeprefix(f"{device} "), is_part=True)


def _density(spans: Iterable[tuple[float, float]], taken_ms: float | None, scale: _Scale) -> float:
    """Give how much of the drawn time the device was really at it, as far as its own figures tell."""
    drawn_ms = sum(end - start for start, end in spans) * scale.width_ms
    return min(taken_ms / drawn_ms, 1.0) if taken_ms is not None and drawn_ms > 0 else 1.0


def _intervals(lane: Data, scale: _Scale) -> Iterable[Interval]:
    for item in cast("Sequence[Any]", lane.get("intervals") or ()):
        ends = scale.interval(item or ())
        if ends is None:
            continue
        label = str(item[2] or "") if len(item) > 2 else ""
        if label and lane.get("kind") == "steps":  # a step's label is its number
            label = f"{lane.get('label') or 'step'} {label}"
        told = f"{label}: {units.duration(item[1] - item[0])}" if label else ""
        yield (*ends, told)


def _merged(intervals: Iterable[Interval], most: int, *, keep_apart: bool) -> list[tuple[float, float]]:
    """Join what the eye can't tell apart, and ever coarser until no more than `most` are left."""
    spans = sorted((start, end) for start, end, _ in intervals)
    distance = 0.0 if keep_apart and len(spans) <= most else _FINEST
    while True:
        joined: list[tuple[float, float]] = []
        for start, end in spans:
            if joined and distance and start - joined[-1][1] < distance:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        if len(joined) <= most:
            return joined
        distance = max(distance, _FINEST) * 2


def _gap(gap: Data, tones: Mapping[str, int], scale: _Scale) -> Mark | None:
    ends = scale.interval(_ends(gap))
    if ends is None:
        return None
    cause = _cause(gap)
    return Mark(*ends, f"idle {units.duration(_length(gap))}: {cause}", tones.get(cause, MAX_CAUSES))


def _causes(gaps: Iterable[Data]) -> tuple[dict[str, int], list[tuple[str, str, int]]]:
    """Give each cause its tone, and what to say of each, the costliest first; the last is of the rest.

    A cause has one tone in every drawing, unless a costlier one of this drawing has that.
    """
    lengths: dict[str, list[float]] = defaultdict(list)
    for gap in gaps:
        lengths[_cause(gap)].append(_length(gap))
    order = sorted(lengths, key=lambda cause: -sum(lengths[cause]))
    tones = dict.fromkeys(order, MAX_CAUSES)
    free = list(range(MAX_CAUSES))
    for cause in order[:MAX_CAUSES]:
        own = zlib.crc32(cause.encode("utf-8", "replace")) % MAX_CAUSES
        tones[cause] = min(free, key=lambda tone, own=own: (tone - own) % MAX_CAUSES)
        free.remove(tones[cause])
    told = [(cause, _total(lengths[cause]), tones[cause]) for cause in order[:MAX_CAUSES]]
    rest = [length for cause in order[MAX_CAUSES:] for length in lengths[cause]]
    return tones, [*told, *([("other causes", _total(rest), MAX_CAUSES)] if rest else [])]


def _total(lengths: Sequence[float]) -> str:
    total = units.duration(sum(lengths))
    return total if len(lengths) == 1 else f"{total} in {units.count(len(lengths), 'gap')}"


def _cause(gap: Data) -> str:
    return str(gap.get("cause") or "cause not known")


def _length(gap: Data) -> float:
    start, end = _ends(gap)
    return max(end - start, 0.0)


def _ends(gap: Data) -> tuple[Any, Any]:
    return gap.get("start_ms"), gap.get("end_ms")


def _mappings(value: Any) -> list[Data]:
    return [item for item in cast("Sequence[Any]", value or ()) if isinstance(item, Mapping)]
