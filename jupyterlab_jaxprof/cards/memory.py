"""The body of a card of kind `memory`: devices, memory over time, the largest arrays, and the variables.

It is made from the record's summary, whose shapes captures/shapes.py checks: anything in it may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import timed, units
from .blocks import Block, Curve, Remark, Row, Stretch, Table

MAX_DEVICES = 16
MAX_CURVES = 8
MAX_CELLS = 16
MAX_ARRAYS = 12
PROCESS = "process"  # as the sampler of the timing room calls it

Data = Mapping[str, Any]


def blocks(summary: Data) -> list[Block]:
    """Give the blocks of a memory card, in order."""
    parts: tuple[Callable[[Data], Iterator[Block]], ...] = (_watch, _devices, _reserved, _arrays, _variables)
    return [block for part in parts for block in part(summary)]


def _watch(summary: Data) -> Iterator[Block]:
    watch: Data = summary.get("watch") or {}
    duration_ms = watch.get("duration_ms") or 0.0
    series: Sequence[Data] = [one for one in watch.get("series") or [] if one and one.get("columns")]
    if duration_ms <= 0 or not series:
        return
    cells = [cell for cell in watch.get("cells") or [] if cell]
    stretches = _stretches(cells[:MAX_CELLS], duration_ms)
    devices = [one for one in series if one.get("device") != PROCESS]
    most = max((_most(one) for one in devices), default=0.0)
    for one in series[:MAX_CURVES]:
        yield _curve(one, duration_ms, stretches, _most(one) if one.get("device") == PROCESS else most)
    if len(series) > MAX_CURVES:
        yield Remark(f"And {units.count(len(series) - MAX_CURVES, 'more curve')}: see capture.json.")
    told = [f"The devices are drawn to one scale, up to {units.size(most)}."] if len(devices) > 1 else []
    if watch.get("samples"):
        each = units.duration(duration_ms / watch["samples"])
        told.append(f"{units.count(watch['samples'], 'sample')}, one every {each} on average.")
    if told:
        yield Remark(" ".join(told))
    yield from _cells(cells, watch)


def _most(series: Data) -> float:
    return max(value or 0.0 for value in series["columns"])


def _curve(series: Data, duration_ms: float, stretches: Sequence[Stretch], most: float) -> Curve:
    """Draw one curve, as high as `most` is."""
    values = [value or 0.0 for value in series["columns"]]
    label, peak = str(series.get("label") or ""), units.size(series.get("most_bytes"))
    limit = f" of {units.size(series['limit_bytes'])}" if series.get("limit_bytes") else ""
    each_ms = duration_ms / len(values)
    bars = [
        (value / (most or 1.0), f"{units.duration(number * each_ms)}: {units.size(value)}")
        for number, value in enumerate(values)
    ]
    return Curve(label, f"most {peak}{limit}", bars, "0 s", units.duration(duration_ms), stretches)


def _stretches(cells: Sequence[Data], duration_ms: float) -> list[Stretch]:
    """Give the cells' stretches as fractions of the watch, one after another."""
    found: list[Stretch] = []
    reached = 0.0
    for cell in cells:
        start = max((cell.get("start_ms") or 0.0) / duration_ms, reached)
        end = min(max((cell.get("end_ms") or 0.0) / duration_ms, start), 1.0)
        if start < 1:
            found.append(Stretch(str(cell.get("label") or ""), start, end))
            reached = end
    return found


def _cells(cells: Sequence[Data], watch: Data) -> Iterator[Block]:
    if not cells:
        return
    more = max(len(cells) - MAX_CELLS, 0) + int(watch.get("cells_left_out") or 0)
    yield Table(
        "The cells that ran meanwhile",
        ["cell", "began after", "took"],
        [_cell(cell) for cell in cells[:MAX_CELLS]],
        f"and {units.count(more, 'more cell')}" if more else "",
    )


def _cell(cell: Data) -> Row:
    start_ms, end_ms = cell.get("start_ms") or 0.0, cell.get("end_ms") or 0.0
    code = str(cell.get("code") or "")
    name = f"{cell.get('label')}  {code}" if code else str(cell.get("label"))
    return Row([name, units.duration(start_ms), units.duration(end_ms - start_ms)])


def _devices(summary: Data) -> Iterator[Block]:
    memory: Data = summary.get("memory") or {}
    devices = [one for one in memory.get("after") or [] if one and one.get("in_use_bytes") is not None]
    if devices:
        yield Table(
            "Devices",
            ["device", "in use", "process's peak", "limit", "reserved", "largest free block"],
            [_device(one) for one in devices[:MAX_DEVICES]],
            timed.more(len(devices) - MAX_DEVICES, "device"),
        )


def _device(device: Data) -> Row:
    keys = ("in_use_bytes", "peak_bytes", "limit_bytes", "pool_bytes", "largest_free_block_bytes")
    return Row([str(device.get("device")), *(units.size(device.get(key)) for key in keys)])


def _reserved(summary: Data) -> Iterator[Block]:
    for text in summary.get("remarks") or []:
        yield Remark(str(text))


def _arrays(summary: Data) -> Iterator[Block]:
    memory: Data = summary.get("memory") or {}
    arrays = [array for array in memory.get("arrays") or [] if array]
    count = memory.get("arrays_count")
    if count is None:
        return
    of_all = f"{units.count(count, 'array')} alive, {units.size(memory.get('arrays_bytes'))} in all"
    if not arrays:
        yield Remark(f"No array of JAX's is alive ({of_all}).")
        return
    yield Table(
        f"Largest arrays ({of_all})",
        ["held by", "type", "size"],
        [timed.array_row(array) for array in arrays[:MAX_ARRAYS]],
        timed.more(int(count) - min(len(arrays), MAX_ARRAYS), "array"),
    )


def _variables(summary: Data) -> Iterator[Block]:
    variables: Sequence[Data] = [one for one in summary.get("variables") or [] if one]
    if variables:
        yield Table(
            "Variables that decide how JAX takes memory",
            ["variable", "now"],
            [_variable(one) for one in variables],
        )


def _variable(variable: Data) -> Row:
    late = ""
    if variable.get("late"):
        late = f"Too late: JAX read {variable.get('read') or 'it unset'} when it started, and goes by that."
    return Row([str(variable.get("name")), str(variable.get("value") or "not set")], late)
