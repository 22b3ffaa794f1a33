"""The charts of a sweep: rate and time a call in sight; compiling and memory below, smaller.

Few values are bars with their names and figures. Many are columns over all of them, whatever the table shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from . import units
from .blocks import Block, Comparison, Curve, Details, Stretch
from .sweep_points import MAX_POINTS, Data, name, peak, points_of, rate

#: More columns than this are drawn as the highest of neighbours.
MAX_COLUMNS = 50
_FEWEST = 3


@dataclass(frozen=True)
class _Quantity:
    """A figure of a point: its key in the record, and how it is written."""

    title: str
    key: str
    write: Callable[[Data], str]

    def of(self, point: Data) -> float:
        """Give it as a number; 0 where it isn't known."""
        return float(point.get(self.key) or 0.0)


def blocks(series: Sequence[Data], unit: str) -> list[Block]:
    """Give the charts of the series, all of one quantity on one scale."""
    main = [
        _Quantity(f"Rate, {unit}" if unit else "Rate", "rate", lambda point: rate(point.get("rate"))),
        _Quantity("Time a call", "median_ms", lambda point: units.duration(point.get("median_ms"))),
    ]
    more = [
        _Quantity("Compiling", "compiling_ms", lambda point: units.duration(point.get("compiling_ms"))),
        _Quantity("Peak memory", "peak_bytes", peak),
        _Quantity("Largest program", "need_bytes", lambda point: units.size(point.get("need_bytes"))),
    ]
    drawn = [block for quantity in main for block in _drawn(series, quantity)]
    small = [block for quantity in more for block in _drawn(series, quantity, small=True)]
    return [*drawn, *([Details("Compiling and memory, as charts", small)] if small else [])]


def _drawn(series: Sequence[Data], quantity: _Quantity, *, small: bool = False) -> Iterator[Block]:
    """Draw one quantity, where at least two points have it, or three for a small chart."""
    values = [quantity.of(point) for one in series for point in points_of(one)]
    most = max(values, default=0.0)
    if sum(value > 0 for value in values) < (_FEWEST if small else 2):
        return
    few = [one for one in series if not small and len(points_of(one)) <= MAX_POINTS]
    rows = [
        (_row_label(one, point), quantity.write(point), value / most, "")
        for one in few
        for point in points_of(one)
        if (value := quantity.of(point)) > 0
    ]
    if rows:
        yield Comparison(quantity.title, rows)
    for one in series:
        if one not in few and any(quantity.of(point) for point in points_of(one)):
            yield _curve(one, quantity, most, with_knee=not small)


def _row_label(series: Data, point: Data) -> str:
    label = name(series, point) + (" ◂" if point.get("knee") else "")
    return f"{series.get('label')}, {label}" if series.get("label") else label


def _curve(series: Data, quantity: _Quantity, most: float, *, with_knee: bool) -> Curve:
    points = points_of(series)
    width = -(-len(points) // MAX_COLUMNS)
    groups = [points[start : start + width] for start in range(0, len(points), width)]
    highest = max(points, key=quantity.of)
    title = f"{quantity.title}, {series.get('label')}" if series.get("label") else quantity.title
    knee = next((number for number, point in enumerate(points) if point.get("knee")), None)
    stretch = () if knee is None or not with_knee else (Stretch("from the knee on", knee / len(points), 1.0),)
    return Curve(
        title,
        f"highest {quantity.write(highest)}, at {name(series, highest)}",
        [_column(series, group, quantity, most) for group in groups],
        name(series, points[0]),
        name(series, points[-1]),
        stretch,
    )


def _column(series: Data, group: Sequence[Data], quantity: _Quantity, most: float) -> tuple[float, str]:
    highest = max(group, key=quantity.of)
    value = quantity.of(highest)
    ending = str(highest.get("ending") or "ok")
    told = quantity.write(highest) if value else ending if ending != "ok" else "–"
    where = name(series, group[0])
    if len(group) > 1:
        where = f"{where} to {str(group[-1].get('value'))[:20]}, at most"
    return value / most, f"{where}: {told}"
