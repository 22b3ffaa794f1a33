"""The body of a card of what has a timeline: findings, where the time goes, devices, top tables.

It is made from the record alone, whose shapes captures/shapes.py checks: anything in it may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from . import drawing, findings, units
from .blocks import Block, Details, Remark, Row, Share, Shares, Table

MAX_ROWS = 12
MAX_DEVICES = 16
_NONE = "–"
#: A share of the time above this one is no mere rounding.
_WHOLE = 1.0005
_AT_ONCE = "Several ran at a time (on several threads, say), so together they took longer than the window."

Data = Mapping[str, Any]

_PARTS = (
    ("device computing", "compute_ms", 0),
    ("copies", "copy_ms", 1),
    ("collectives", "collective_ms", 3),
    ("host", "host_ms", 2),
    ("idle", "idle_ms", 5),
)
#: What each name of `summary.timeline.blind` stands for.
BLIND = {
    "devices": "the devices",
    "compiles": "compiling",
    "host": "the host's threads",
    "allocator": "the allocator's memory",
    "graphs": "the kernels inside CUDA graphs",
    "sizes": "the sizes of copies",
    "python": "Python's calls",
}


def lead(record_findings: Sequence[Data]) -> list[Block]:
    """Give what a card says first: the findings."""
    found = findings.block(record_findings)
    return [found] if found is not None else []


def blocks(summary: Data) -> list[Block]:
    """Give the blocks below the card's figures, in order."""
    parts: tuple[Callable[[Data], Iterator[Block]], ...] = (
        _timeline,
        _steps,
        _parts,
        _devices,
        _slowest,
        _tables,
    )
    return [block for part in parts for block in part(summary)]


def _timeline(summary: Data) -> Iterator[Block]:
    timeline: Data = summary.get("timeline") or {}
    drawn = drawing.block(timeline)
    if drawn is not None:
        yield drawn
    if timeline.get("window"):
        yield Remark(str(timeline["window"]))
    unseen = [BLIND.get(str(name), str(name)) for name in timeline.get("blind") or ()]
    if unseen:
        yield Remark(f"Not seen by the recorder, so nothing is concluded about it: {', '.join(unseen)}.")


def _steps(summary: Data) -> Iterator[Block]:
    """Say what the steps' own times leave out: those of other names, and work that goes on after a marker."""
    steps: Data = summary.get("steps") or {}
    others = [
        f"{units.count(step.get('count'))} × `{_text(step, 'name')}`, "
        f"median {units.duration(step.get('median_ms'))}"
        for step in _rows(steps, "others")
    ]
    if others:
        yield Remark(f"Other steps, which the times above are not of: {'; '.join(others[:MAX_ROWS])}.")
    if "marks_dispatch" in steps and steps["marks_dispatch"] is None:
        yield Remark(
            "No device is in this trace, so whether the step markers wait for their work can't be told. "
            "Where they don't, the steps' times are of their dispatch alone: `--steps N` waits."
        )
    if steps.get("marks_dispatch"):
        device_ms = steps.get("device_ms")
        works = f": they work {units.duration(device_ms)} a step" if device_ms is not None else ""
        yield Remark(
            f"The step markers end before the devices' work{works}. The steps' times are of their dispatch "
            "alone, so neither slow steps nor the parts of a step can be told."
        )


def _parts(summary: Data) -> Iterator[Block]:
    steps: Data = summary.get("steps") or {}
    parts: Data = steps.get("parts") or {}
    spent = [(label, parts.get(key) or 0.0, tone) for label, key, tone in _PARTS]
    total_ms = sum(value for _, value, _ in spent)
    if total_ms <= 0:
        return
    yield Shares(
        f"Where the time of the median step goes ({units.duration(total_ms)})",
        [
            Share(label, f"{units.duration(value)}, {units.share(value / total_ms)}", value / total_ms, tone)
            for label, value, tone in spent
            if value > 0
        ],
    )


def _slowest(summary: Data) -> Iterator[Block]:
    steps: Data = summary.get("steps") or {}
    slowest = _rows(steps, "slowest")
    if not slowest:
        return
    rows = [
        Row(
            [f"step {_number(step.get('number'))}", units.duration(step.get("duration_ms"))],
            _text(step, "why"),
        )
        for step in slowest[:MAX_ROWS]
    ]
    yield Details("Slowest steps", [Table("", ["step", "duration"], rows)])


def _devices(summary: Data) -> Iterator[Block]:
    devices = _rows(summary.get("timeline") or {}, "devices")
    if not devices:
        return
    kinds = [
        (label, key)
        for label, key in (("compute", "compute_ms"), ("copies", "copy_ms"), ("collectives", "collective_ms"))
        if any(device.get(key) for device in devices)
    ]
    rows = [
        Row(
            [
                _text(device, "device"),
                units.share(device.get("busy_share")),
                units.duration(device.get("busy_ms")),
                *(units.duration(device.get(key)) for _, key in kinds),
                units.duration(device.get("idle_ms")),
                units.count(device.get("ops")),
            ]
        )
        for device in devices[:MAX_DEVICES]
    ]
    columns = ["device", "busy", "busy for", *(label for label, _ in kinds), "idle", "operations"]
    yield Table("Devices", columns, rows, _more(len(devices) - MAX_DEVICES))


def _tables(summary: Data) -> Iterator[Block]:
    tables: Data = summary.get("tables") or {}
    left_out: Data = summary.get("tables_left_out") or {}
    devices = len(_rows(summary.get("timeline") or {}, "devices"))
    for key, title, make in _TABLES:
        rows = _rows(tables, key)
        if not rows:
            continue
        columns, shown = make(rows)
        total = len(rows) + int(left_out.get(key) or 0)
        table = Table("", columns, shown[:MAX_ROWS], _more(total - min(len(rows), MAX_ROWS)))
        yield Details(f"{title} ({units.count(total)}){_whose(key, devices)}", [table])


def _whose(table: str, devices: int) -> str:
    """Say of a table, where there are several devices, whether its figures are of one or of all."""
    if devices < 2:
        return ""
    if table == "kernels":
        return ", shares of each one's own device"
    return f", of all {devices} devices" if table in _OF_ALL_DEVICES else ""


def _kernels(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    several = len({row.get("device") for row in rows}) > 1
    columns = [
        "kernel", *(["device"] if several else []), "count", "total", "median", "longest", "of device",
        "of wall",
    ]  # fmt: skip
    return columns, [
        _named(
            row,
            [
                *([_text(row, "device")] if several else []),
                units.count(row.get("count")),
                units.duration(row.get("total_ms")),
                units.quantity(row.get("median_us"), "us"),
                units.quantity(row.get("max_us"), "us"),
                units.share(row.get("share_device")),
                _of_wall(row),
            ],
        )
        for row in rows
    ]


def _hlo_ops(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    columns = ["HLO operation", "count", "total", "of device", "of wall"]
    shown: list[Row] = []
    for row in rows:
        where = [_text(row, key) for key in ("scope", "source")]
        shown.append(_named(row, _spent(row, "share_device"), " · ".join(filter(None, where))))
    return columns, shown


def _copies(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    columns = ["copies", "count", "size", "total", "rate", "of wall"]
    return columns, [
        Row(
            [
                ", ".join(filter(None, [_text(row, "kind"), _text(row, "memory")])),
                units.count(row.get("count")),
                units.size(row.get("bytes")),
                units.duration(row.get("total_ms")),
                units.quantity(row.get("gb_per_s"), "GB/s"),
                _of_wall(row),
            ]
        )
        for row in rows
    ]


def _calls(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    return ["call", "count", "total", "of wall"], [_named(row, _spent(row)) for row in rows]


def _annotations(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    columns = ["annotation", "count", "total", "of wall", "device time"]
    return columns, [_named(row, [*_spent(row), units.duration(row.get("device_ms"))]) for row in rows]


def _counters(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    several = len({row.get("device") for row in rows}) > 1
    columns = ["counter", *(["device"] if several else []), "mean", "highest", "samples"]
    return columns, [
        Row(
            [
                _text(row, "name"),
                *([_text(row, "device")] if several else []),
                *(units.quantity(row.get(key), _text(row, "unit")) for key in ("mean", "max")),
                units.count(row.get("count")),
            ]
        )
        for row in rows
    ]


def _modules(rows: Sequence[Data]) -> tuple[list[str], list[Row]]:
    columns = ["module", "count", "total", "of device", "of wall"]
    return columns, [_named(row, _spent(row, "share_device")) for row in rows]


#: The columns whose meaning depends on the number of devices.
_OF_ALL_DEVICES = ("hlo_ops", "copies", "modules")

_Maker = Callable[[Sequence[Data]], tuple[list[str], list[Row]]]

_TABLES: tuple[tuple[str, str, _Maker], ...] = (
    ("kernels", "Kernels", _kernels),
    ("hlo_ops", "HLO operations, with JAX's scopes", _hlo_ops),
    ("copies", "Copies and memsets", _copies),
    ("annotations", "Annotations on the host", _annotations),
    ("calls", "API calls", _calls),
    ("system_calls", "Calls of the operating system's library", _calls),
    ("modules", "Modules", _modules),
    ("counters", "GPU metrics", _counters),
)


def _spent(row: Data, *shares: str) -> list[str]:
    told = [units.count(row.get("count")), units.duration(row.get("total_ms"))]
    return [*told, *(units.share(row.get(key)) for key in shares), _of_wall(row)]


def _exceeds(row: Data) -> bool:
    """Tell whether something took more than all the time: several of it ran at once."""
    return (row.get("share_wall") or 0.0) > _WHOLE


def _of_wall(row: Data) -> str:
    return _NONE if _exceeds(row) else units.share(row.get("share_wall"))


def _named(row: Data, cells: Sequence[str], note: str = "") -> Row:
    """Make a table's row of what has a name, which may be empty."""
    return Row(
        [_text(row, "name") or "(no name)", *cells], f"{note} {_AT_ONCE if _exceeds(row) else ''}".strip()
    )


def _rows(data: Data, key: str) -> list[Data]:
    return [item for item in cast("Sequence[Any]", data.get(key) or ()) if isinstance(item, Mapping)]


def _text(row: Data, key: str) -> str:
    return str(row.get(key) or "")


def _number(value: float | None) -> str:
    return f"{value:.0f}" if value is not None else "–"


def _more(number: int) -> str:
    return f"and {units.count(number)} more" if number > 0 else ""
