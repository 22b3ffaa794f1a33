"""The body of a card of kind `sweep`: a table and bars for each series, and where its rate stops growing.

It is made from the record's summary, whose shapes captures/shapes.py checks: anything in it may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import units
from .blocks import Block, Comparison, Remark, Row, Table

MAX_SERIES = 6
MAX_POINTS = 24
MAX_DEVICES = 8
_NONE = "–"

Data = Mapping[str, Any]
Cell = Callable[[Data], str]


def blocks(summary: Data) -> list[Block]:
    """Give the blocks of a sweep's card, in order."""
    sweep: Data = summary.get("sweep") or {}
    series: Sequence[Data] = [one for one in sweep.get("series") or [] if one]
    unit = str(sweep.get("rate_unit") or "")
    found = [block for one in series[:MAX_SERIES] for block in _series(one, unit, len(series) > 1)]
    found += _bars(series[:MAX_SERIES], unit)
    hidden = len(series) - MAX_SERIES
    if hidden > 0:
        found.append(Remark(f"And {units.count(hidden, 'more series', 'more series')}: see capture.json."))
    return found


def _series(series: Data, unit: str, several: bool) -> Iterator[Block]:
    points = _points(series)
    if not points:
        return
    columns = _columns(points, unit)
    label, along = str(series.get("label") or ""), str(series.get("along") or "value")
    yield Table(
        label,
        [along, *(title for title, _ in columns)],
        [_row(point, [cell for _, cell in columns]) for point in points[:MAX_POINTS]],
        f"and {units.count(len(points) - MAX_POINTS, 'more value')}" if len(points) > MAX_POINTS else "",
    )
    verdict = str(series.get("verdict") or "")
    if verdict and several:
        yield Remark(f"{verdict[:1].upper()}{verdict[1:]}.")


def _points(series: Data) -> Sequence[Data]:
    return [point for point in series.get("points") or [] if point]


def _columns(points: Sequence[Data], unit: str) -> list[tuple[str, Cell]]:
    """Give the columns that have something to tell."""
    columns: list[tuple[str, Cell]] = [
        ("a call", lambda point: units.duration(point.get("median_ms"))),
        ("quartiles", _quartiles),
    ]
    if any(point.get("rate") is not None for point in points):
        columns.append((unit or "rate", _rate))
    columns.append(("compiling", lambda point: _positive(point.get("compiling_ms"), units.duration)))
    if any(point.get("peak_bytes") is not None for point in points):
        columns.append(("peak memory", _peak))
    if any(point.get("need_bytes") is not None for point in points):
        columns.append(("largest program", lambda point: units.size(point.get("need_bytes"))))
    return columns


def _row(point: Data, cells: Sequence[Cell]) -> Row:
    ending = str(point.get("ending") or "ok")
    knee = " ◂ knee" if point.get("knee") else ""
    notes = [f"{ending}: {point.get('error') or ''}".removesuffix(": ")] if ending != "ok" else []
    notes += [str(point["stopped"])] if point.get("stopped") else []
    doubts = [str(doubt) for doubt in point.get("doubts") or [] if doubt]
    notes += [f"Doubtful: {', '.join(doubts)}."] if doubts else []
    peaks: Sequence[Data] = [peak for peak in point.get("peaks") or [] if peak]
    if peaks:
        told = [f"{peak.get('device')} {_peak(peak)}" for peak in peaks[:MAX_DEVICES]]
        notes.append(", ".join([*told, *(["…"] if len(peaks) > MAX_DEVICES else [])]))
    return Row([f"{point.get('value')}{knee}", *(cell(point) for cell in cells)], " ".join(notes))


def _quartiles(point: Data) -> str:
    low, high = point.get("lower_quartile_ms"), point.get("upper_quartile_ms")
    return (
        f"{units.duration(low)} to {units.duration(high)}" if low is not None and high is not None else _NONE
    )


def _rate(point: Data) -> str:
    rate = point.get("rate")
    return _NONE if rate is None else units.count(float(f"{rate:.3g}"))


def _peak(point: Data) -> str:
    size = point.get("peak_bytes")
    if size is None:
        return _NONE
    raised = point.get("raised", point.get("peak_raised"))
    return units.size(size) if raised else f"≤ {units.size(size)}"


def _positive(value: float | None, write: Callable[[float | None], str]) -> str:
    return write(value) if value else _NONE


def _bars(series: Sequence[Data], unit: str) -> Iterator[Block]:
    """Draw the rates, or the times where there are none, all series on one scale."""
    rated = any(point.get("rate") is not None for one in series for point in _points(one))
    key = "rate" if rated else "median_ms"
    values = [point.get(key) or 0.0 for one in series for point in _points(one)]
    most = max(values, default=0.0)
    if most <= 0 or len(values) < 2:
        return
    rows = [
        (_label(one, point), _rate(point) if rated else units.duration(point.get(key)), value / most, "")
        for one in series
        for point in _points(one)[:MAX_POINTS]
        if (value := point.get(key) or 0.0) > 0
    ]
    yield Comparison(f"Rate, {unit}" if rated else "Time a call", rows)


def _label(series: Data, point: Data) -> str:
    label = f"{series.get('along')}={point.get('value')}"
    return f"{series.get('label')}, {label}" if series.get("label") else label
