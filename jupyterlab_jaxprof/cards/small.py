"""A record made small enough for a notebook's file: of what is shown, the finest goes first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

from jupyterlab_jaxprof.captures.shapes import is_number

#: Steps of more than this are told by their median and their ends alone.
MAX_DURATIONS = 1000
#: Rows of a table that the HTML form shows.
FEW_ROWS = 12
MAX_CELL = 4_000
#: How deep a form's lines stand in a notebook's file.
_INDENT = 7
_NAMED = ("steps", "compiles", "host")

Data = dict[str, Any]


def shrunk(data: Data, most_bytes: int) -> Data:
    """Give a record's JSON in `most_bytes` at most, as far as that costs no figures and no findings.

    `data` is changed in place.
    """
    _without_durations(data)
    for shrink in _SHRINKERS:
        if size(data) <= most_bytes:
            break
        shrink(data)
    return data


def size(data: Any) -> int:
    """Give how many bytes a notebook's file takes for it: there each value has its own line, far indented."""
    written = json.dumps(data, ensure_ascii=False, indent=1)
    return len(written.encode("utf-8", "replace")) + written.count("\n") * _INDENT


def _without_durations(data: Data) -> None:
    steps = data["summary"].get("steps")
    if isinstance(steps, dict) and len(cast("Data", steps).get("durations_ms") or ()) > MAX_DURATIONS:
        del steps["durations_ms"]


def _thin_lanes(most: int, data: Data) -> None:
    """Leave so many intervals in each lane: the longest of those with names; of others the nearest join."""
    for lane in _drawing(data).get("lanes") or ():
        intervals = [one for one in (lane or {}).get("intervals") or () if _is_interval(one)]
        if len(intervals) > most:
            kept = _longest if lane.get("kind") in _NAMED else _joined
            lane["intervals"] = kept(intervals, most)


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_number, cast("list[Any]", value)[:2])) and len(value) > 1


def _longest(intervals: Sequence[Any], most: int) -> list[Any]:
    longest = sorted(intervals, key=lambda one: one[0] - one[1])[:most]
    return sorted(longest, key=lambda one: one[0])


def _joined(intervals: Sequence[Any], most: int) -> list[Any]:
    pauses = [later[0] - one[1] for one, later in pairwise(intervals)]
    kept = sorted(sorted(range(len(pauses)), key=lambda number: -pauses[number])[: most - 1])
    firsts, lasts = [0, *(number + 1 for number in kept)], [*kept, len(intervals) - 1]
    return [[intervals[first][0], intervals[last][1]] for first, last in zip(firsts, lasts, strict=True)]


def _fewer_lanes(most: int, data: Data) -> None:
    drawing = _drawing(data)
    if drawing.get("lanes"):
        drawing["lanes"] = drawing["lanes"][:most]


def _fewer_rows(most: int, data: Data) -> None:
    summary = data["summary"]
    tables = cast("Mapping[str, Any]", summary.get("tables") or {})
    left_out = dict(cast("Mapping[str, Any]", summary.get("tables_left_out") or {}))
    for name, rows in tables.items():
        if isinstance(rows, list) and len(cast("list[Any]", rows)) > most:
            left_out[name] = (left_out.get(name) or 0) + len(cast("list[Any]", rows)) - most
            del rows[most:]
            summary["tables_left_out"] = left_out


def _short_cell(data: Data) -> None:
    cell = str(data.get("cell") or "")
    if len(cell) > MAX_CELL:
        data["cell"] = cell[:MAX_CELL] + "\n…"


def _without_drawing(data: Data) -> None:
    (data["summary"].get("timeline") or {}).pop("drawing", None)


def _drawing(data: Data) -> Data:
    timeline = data["summary"].get("timeline")
    drawing = cast("Data", timeline).get("drawing") if isinstance(timeline, dict) else None
    return cast("Data", drawing) if isinstance(drawing, dict) else {}


_SHRINKERS: Sequence[Callable[[Data], None]] = (
    _short_cell,
    *(partial(_thin_lanes, most) for most in (150, 75, 40)),
    partial(_fewer_lanes, 32),
    partial(_fewer_rows, FEW_ROWS),
    partial(_thin_lanes, 15),
    partial(_fewer_lanes, 16),
    partial(_fewer_rows, 5),
    _without_drawing,
)
