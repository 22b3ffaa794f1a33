"""The points of a sweep as a record keeps them: which are shown, and how their figures are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import units

MAX_POINTS = 24
_MAX_NAME = 40
_NONE = "–"

Data = Mapping[str, Any]


def points_of(series: Data) -> Sequence[Data]:
    """Give a series' points."""
    return [point for point in series.get("points") or [] if point]


def shown(points: Sequence[Data]) -> list[int]:
    """Choose MAX_POINTS points at most, as numbers in their order.

    The first, the last, the knee, the best and those that failed are what the sentence names, so they are
    among them; the others are thinned out evenly.
    """
    if len(points) <= MAX_POINTS:
        return list(range(len(points)))
    named = {0, len(points) - 1}
    named |= set([number for number, point in enumerate(points) if point.get("knee")][:1])
    rated = [number for number, point in enumerate(points) if point.get("rate")]
    timed = [number for number, point in enumerate(points) if point.get("median_ms")]
    if rated:
        named.add(max(rated, key=lambda number: points[number]["rate"]))
    elif timed:
        named.add(min(timed, key=lambda number: points[number]["median_ms"]))
    odd = [number for number, point in enumerate(points) if point.get("ending") not in (None, "ok")]
    named |= set(_thinned([number for number in odd if number not in named], MAX_POINTS - len(named)))
    rest = [number for number in range(len(points)) if number not in named]
    return sorted(named | set(_thinned(rest, MAX_POINTS - len(named))))


def _thinned(numbers: Sequence[int], most: int) -> Sequence[int]:
    """Take `most` of them, evenly."""
    if len(numbers) <= most:
        return numbers
    return [numbers[(2 * place + 1) * len(numbers) // (2 * most)] for place in range(most)]


def name(series: Data, point: Data) -> str:
    """Write where a point stands in its series: 'batch=8'."""
    text = str(point.get("label") or f"{series.get('along')}={point.get('value')}")
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"


def rate(value: float | None) -> str:
    """Write a rate."""
    return units.rate(value)


def peak(point: Data) -> str:
    """Write a peak, with ≤ where it had been reached before."""
    size = point.get("peak_bytes")
    if size is None:
        return _NONE
    raised = point.get("raised", point.get("peak_raised"))
    return units.size(size) if raised else f"≤ {units.size(size)}"
