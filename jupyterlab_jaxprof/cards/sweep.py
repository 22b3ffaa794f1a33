"""The body of a card of kind `sweep`: a table for each series, its charts, and where its rate stops growing.

It is made from the record's summary, whose shapes captures/shapes.py checks: anything in it may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from . import sweep_charts, units
from .blocks import Block, Remark, Row, Table
from .sweep_points import Data, peak, points_of, rate, shown

MAX_SERIES = 6
MAX_DEVICES = 8
_LONG = 60
_EACH = "Memory is of one device: the highest peak of all, and what a program needs on each that it runs on."
_BEFORE = "Compiled before for several shapes: which program ran isn't known. --fresh compiles it again."
_NONE = "–"

Cell = Callable[[Data], str]


def blocks(summary: Data) -> list[Block]:
    """Give the blocks of a sweep's card, in order."""
    sweep: Data = summary.get("sweep") or {}
    series: Sequence[Data] = [one for one in sweep.get("series") or [] if one]
    unit, each = str(sweep.get("rate_unit") or ""), (sweep.get("devices") or 1) > 1
    drawn = _drawn(series)
    found = [block for one in drawn for block in _series(one, unit, several=len(series) > 1, each=each)]
    if each and any(point.get("need_bytes") is not None for one in drawn for point in points_of(one)):
        found.append(Remark(_EACH))
    found += sweep_charts.blocks(drawn, unit)
    hidden = len(series) - len(drawn)
    if hidden > 0:
        found.append(Remark(f"And {units.count(hidden, 'more series', 'more series')}: see capture.json."))
    return found


def _drawn(series: Sequence[Data]) -> Sequence[Data]:
    """Take the first series, and the one with the best point, which the sentence names."""
    if len(series) <= MAX_SERIES:
        return series
    key = "rate" if any(point.get("rate") for one in series for point in points_of(one)) else "median_ms"

    def best(one: Data) -> float:
        values = [float(point[key]) for point in points_of(one) if point.get(key)]
        return (max(values) if key == "rate" else -min(values)) if values else -math.inf

    leader = max(range(len(series)), key=lambda number: best(series[number]))
    return [*series[: MAX_SERIES - 1], series[max(leader, MAX_SERIES - 1)]]


def _series(series: Data, unit: str, *, several: bool, each: bool) -> Iterator[Block]:
    points = points_of(series)
    if not points:
        return
    columns = _columns(points, unit, each=each)
    rows = shown(points)
    hidden = len(points) - len(rows)
    yield Table(
        str(series.get("label") or ""),
        [str(series.get("along") or "value"), *(title for title, _ in columns)],
        _noted_once([_row(points[number], columns) for number in rows]),
        f"and {units.count(hidden, 'more value')} between these: see capture.json" if hidden else "",
    )
    verdict = str(series.get("verdict") or "")
    if verdict and several:
        yield Remark(f"{verdict[:1].upper()}{verdict[1:]}.")


def _columns(points: Sequence[Data], unit: str, *, each: bool) -> list[tuple[str, Cell]]:
    """Give the columns that have something to tell; `each` where there are several devices."""

    def any_has(key: str) -> bool:
        return any(point.get(key) is not None for point in points)

    columns: list[tuple[str, Cell]] = [
        ("a call", lambda point: units.duration(point.get("median_ms"))),
        ("quartiles", _quartiles),
    ]
    if any_has("rate"):
        columns.append((unit or "rate", lambda point: rate(point.get("rate"))))
    columns.append(("compiling", _compiling))
    if any(point.get("cache_read_ms") for point in points):
        columns.append(("read from disk", lambda point: _positive(point.get("cache_read_ms"))))
    if any_has("peak_bytes"):
        columns.append(("highest peak" if each else "peak memory", peak))
    if any_has("need_bytes"):
        columns.append(("largest program", _need))
    return columns


def _noted_once(rows: Sequence[Row]) -> list[Row]:
    """Say a long note once of rows below each other."""
    return [
        Row(row.cells, "The same.") if above and len(row.note) > _LONG and row.note == above.note else row
        for above, row in zip([None, *rows], rows, strict=False)
    ]


def _row(point: Data, columns: Sequence[tuple[str, Cell]]) -> Row:
    ending = str(point.get("ending") or "ok")
    knee = " ◂ knee" if point.get("knee") else ""
    notes = [f"{ending}: {point.get('error') or ''}".removesuffix(": ")] if ending != "ok" else []
    notes += [str(point[key]) for key in ("hint", "stopped") if point.get(key)]
    if point.get("compiled_before") and point.get("need_bytes") is None and (_need in dict(columns).values()):
        notes.append(_BEFORE)
    doubts = [str(doubt) for doubt in point.get("doubts") or [] if doubt]
    notes += [f"Doubtful: {', '.join(doubts)}."] if doubts else []
    peaks: Sequence[Data] = [one for one in point.get("peaks") or [] if one]
    if peaks:
        told = [f"{one.get('device')} {peak(one)}" for one in peaks[:MAX_DEVICES]]
        notes.append(", ".join([*told, *(["…"] if len(peaks) > MAX_DEVICES else [])]))
    return Row([f"{point.get('value')}{knee}", *(cell(point) for _, cell in columns)], " ".join(notes))


def _quartiles(point: Data) -> str:
    low, high = point.get("lower_quartile_ms"), point.get("upper_quartile_ms")
    return (
        f"{units.duration(low)} to {units.duration(high)}" if low is not None and high is not None else _NONE
    )


def _compiling(point: Data) -> str:
    """Write the time of compiling, or that JAX's programs had been compiled before."""
    return "before" if point.get("compiled_before") else _positive(point.get("compiling_ms"))


def _need(point: Data) -> str:
    return units.size(point.get("need_bytes"))


def _positive(value: float | None) -> str:
    return units.duration(value) if value else _NONE
