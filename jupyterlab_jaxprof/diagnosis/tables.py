"""The top tables: kernels, HLO operations, copies, calls, annotations and programs by their time.

`share_wall` is of the window's wall time: of a kernel its own device's; of HLO operations, copies and
modules, which are summed over the devices, that of all of them; of what runs on the host the host's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.model import ApiCalls, CopyKind, HostMemory, HostRanges, OpKind, RangeKind

from . import thresholds
from .analysis import Analysis, is_staged
from .grouping import dense, largest
from .host import Work
from .launched import Launches
from .programs import scope_of

Row = dict[str, Any]
_NAMELESS = "(no name)"
_SET = "memset"
_COPY_KINDS = {
    CopyKind.NONE: "not known",
    CopyKind.HOST_TO_DEVICE: "host to device",
    CopyKind.DEVICE_TO_HOST: "device to host",
    CopyKind.DEVICE_TO_DEVICE: "device to device",
    CopyKind.PEER_TO_PEER: "to another device",
    CopyKind.OTHER: "other",
}
_MEMORIES = {
    HostMemory.UNKNOWN: "",
    HostMemory.PAGEABLE: "pageable",
    HostMemory.PINNED: "pinned",
    HostMemory.MANAGED: "managed",
}


def top_tables(analysis: Analysis) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Give the tables, longest total first, and how many rows of each are left out."""
    make: dict[str, Callable[[Analysis], tuple[list[Row], int]]] = {
        "kernels": _kernels,
        "hlo_ops": _hlo_ops,
        "copies": _copies,
        "calls": _calls,
        "system_calls": _system_calls,
        "annotations": _annotations,
        "modules": _modules,
        "counters": _counters,
    }
    made = {name: table(analysis) for name, table in make.items()}
    return {name: rows for name, (rows, _) in made.items()}, {name: out for name, (_, out) in made.items()}


class _Groups:
    """Rows of a table grouped by columns: the largest groups by total time."""

    def __init__(self, duration_ns: NDArray[np.float64], *columns: NDArray[np.integer]) -> None:
        self.duration_ns = duration_ns
        self.key = dense(*columns) if len(duration_ns) else np.zeros(0, dtype=np.int64)
        self.counts = np.bincount(self.key)
        self.totals_ns = np.bincount(self.key, weights=duration_ns).astype(np.float64)
        self.top = largest(self.totals_ns, thresholds.ROWS).tolist()
        self.left_out = len(self.counts) - len(self.top)
        self.firsts = np.zeros(len(self.counts), dtype=np.intp)
        self.firsts[self.key[::-1]] = np.arange(len(self.key))[::-1]

    def durations(self, group: int) -> NDArray[np.float64]:
        return self.duration_ns[self.key == group]


def _ms(time_ns: float) -> float:
    return round(time_ns / 1e6, 6)


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole > 0 else 0.0


def _rows_in_window(analysis: Analysis) -> NDArray[np.intp]:
    rows = [use.rows for use in analysis.devices]
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)


def _worked_ns(analysis: Analysis) -> dict[int, float]:
    """The operations of each device together: what shares of a device are of, so that they add up to 1.

    It is more than its busy time where streams overlap.
    """
    durations = analysis.timeline.ops.duration_ns
    return {use.index: float(durations[use.rows].sum()) for use in analysis.devices}


def _wall_ns(analysis: Analysis) -> float:
    return analysis.length_ns * max(len(analysis.devices), 1)


def _kernels(analysis: Analysis) -> tuple[list[Row], int]:
    timeline, ops = analysis.timeline, analysis.timeline.ops
    rows = _rows_in_window(analysis)
    rows = rows[(ops.kind[rows] == OpKind.KERNEL) | (ops.kind[rows] == OpKind.GRAPH)]
    groups = _Groups(ops.duration_ns[rows], ops.device[rows], ops.name[rows])
    worked = _worked_ns(analysis)
    device_names = {use.index: use.name for use in analysis.devices}
    table: list[Row] = []
    for group in groups.top:
        row, durations = rows[groups.firsts[group]], groups.durations(group)
        total, device = float(groups.totals_ns[group]), int(ops.device[row])
        table.append(
            {
                "name": timeline.text(int(ops.name[row])),
                "device": device_names[device],
                "count": int(groups.counts[group]),
                "total_ms": _ms(total),
                "median_us": round(float(np.median(durations)) / 1e3, 3),
                "max_us": round(float(durations.max()) / 1e3, 3),
                "share_device": _share(total, worked[device]),
                "share_wall": _share(total, analysis.length_ns),
            }
        )
    return table, groups.left_out


def _hlo_ops(analysis: Analysis) -> tuple[list[Row], int]:
    timeline, ops = analysis.timeline, analysis.timeline.ops
    rows = _rows_in_window(analysis)
    # A library clears memory before some of its kernels: that is among the copies
    rows = rows[(ops.hlo_op[rows] != 0) & (ops.kind[rows] != OpKind.SET)]
    groups = _Groups(ops.duration_ns[rows], ops.module[rows], ops.hlo_op[rows])
    table: list[Row] = []
    for group in groups.top:
        row, total = rows[groups.firsts[group]], float(groups.totals_ns[group])
        table.append(
            {
                "name": timeline.text(int(ops.hlo_op[row])),
                "module": timeline.text(int(ops.module[row])),
                "scope": scope_of(timeline.text(int(ops.scope[row]))),
                "source": timeline.text(int(ops.source[row])),
                "count": int(groups.counts[group]),
                "total_ms": _ms(total),
                "share_device": _share(total, sum(_worked_ns(analysis).values())),
                "share_wall": _share(total, _wall_ns(analysis)),
            }
        )
    return table, groups.left_out


def _copies(analysis: Analysis) -> tuple[list[Row], int]:
    ops = analysis.timeline.ops
    rows = _rows_in_window(analysis)
    # With the clearing of memory the kernels and these are all that a device does, as in `nsys stats`
    rows = rows[(ops.kind[rows] == OpKind.COPY) | (ops.kind[rows] == OpKind.SET)]
    groups = _Groups(ops.duration_ns[rows], ops.kind[rows], ops.copy_kind[rows], ops.host_memory[rows])
    sizes = np.bincount(groups.key, weights=ops.size_bytes[rows].astype(np.float64))
    table: list[Row] = []
    for group in groups.top:
        row, total = rows[groups.firsts[group]], float(groups.totals_ns[group])
        is_set = ops.kind[row] == OpKind.SET
        table.append(
            {
                "kind": _SET if is_set else _COPY_KINDS[CopyKind(int(ops.copy_kind[row]))],
                "memory": "" if is_set else _memory(analysis, rows[groups.key == group]),
                "count": int(groups.counts[group]),
                "bytes": int(sizes[group]),
                "total_ms": _ms(total),
                "gb_per_s": round(float(sizes[group]) / total, 3) if total > 0 else None,
                "share_wall": _share(total, _wall_ns(analysis)),
            }
        )
    return table, groups.left_out


def _memory(analysis: Analysis, rows: NDArray[np.intp]) -> str:
    """The host's memory of these copies: where JAX fills a pinned buffer first, that of the arrays."""
    if is_staged(analysis, rows):
        return "pageable, staged"
    return _MEMORIES[HostMemory(int(analysis.timeline.ops.host_memory[rows[0]]))]


def _calls(analysis: Analysis) -> tuple[list[Row], int]:
    calls = analysis.timeline.calls
    return _called(analysis, calls, np.ones(len(calls), dtype=np.bool_))


def _system_calls(analysis: Analysis) -> tuple[list[Row], int]:
    """Calls of the operating system's runtime, where they were recorded."""
    ranges = analysis.timeline.ranges
    return _called(analysis, ranges, ranges.kind == RangeKind.SYSTEM)


def _called(
    analysis: Analysis, calls: ApiCalls | HostRanges, chosen: NDArray[np.bool_]
) -> tuple[list[Row], int]:
    start_ns, end_ns = analysis.extent
    rows = np.flatnonzero(chosen & (calls.start_ns >= start_ns) & (calls.start_ns < end_ns))
    groups = _Groups(calls.duration_ns[rows], calls.name[rows])
    return [
        {
            "name": analysis.timeline.text(int(calls.name[rows[groups.firsts[group]]])),
            "count": int(groups.counts[group]),
            "total_ms": _ms(float(groups.totals_ns[group])),
            "share_wall": _share(float(groups.totals_ns[group]), analysis.length_ns),
        }
        for group in groups.top
    ], groups.left_out


def _annotations(analysis: Analysis) -> tuple[list[Row], int]:
    timeline, ranges, (start_ns, end_ns) = analysis.timeline, analysis.timeline.ranges, analysis.extent
    rows = np.flatnonzero(
        (ranges.kind == RangeKind.ANNOTATION)
        & (analysis.work == Work.OTHER)
        & (ranges.start_ns >= start_ns)
        & (ranges.start_ns < end_ns)
    )
    groups = _Groups(ranges.duration_ns[rows], ranges.name[rows])
    launches = Launches(analysis)
    table: list[Row] = []
    for group in groups.top:
        own = rows[groups.key == group]
        starts, ends = ranges.start_ns[own], ranges.start_ns[own] + ranges.duration_ns[own]
        if launches.all_known:
            device_ns = launches.within_ns(ranges.thread[own], starts, ends) / max(len(analysis.devices), 1)
        else:
            device_ns = analysis.mean(
                lambda use, starts=starts, ends=ends: float(use.busy.covered(starts, ends).sum())
            )
        total = float(groups.totals_ns[group])
        table.append(
            {
                "name": timeline.text(int(ranges.name[own[0]])) or _NAMELESS,
                "count": len(own),
                "total_ms": _ms(total),
                "share_wall": _share(total, analysis.length_ns),
                "device_ms": _ms(device_ns) if analysis.devices else None,
            }
        )
    return table, groups.left_out


def _counters(analysis: Analysis) -> tuple[list[Row], int]:
    """Hardware counters over the window, in the recorder's order; those that stayed at 0 are left out."""
    counters, (start_ns, end_ns) = analysis.timeline.counters, analysis.extent
    if counters is None:
        return [], 0
    within = counters.take((counters.time_ns >= start_ns) & (counters.time_ns <= end_ns))
    table: list[Row] = []
    for gpu, name, unit in dict.fromkeys(
        zip(within.gpu.tolist(), within.name.tolist(), within.unit.tolist(), strict=True)
    ):
        values = within.value[(within.gpu == gpu) & (within.name == name)]
        if not values.any():
            continue
        table.append(
            {
                "name": analysis.timeline.text(name),
                "device": f"GPU {gpu}",
                "unit": analysis.timeline.text(unit),
                "count": len(values),
                "mean": round(float(values.mean()), 3),
                "max": round(float(values.max()), 3),
            }
        )
    return table, 0


def _modules(analysis: Analysis) -> tuple[list[Row], int]:
    programs = analysis.programs
    groups = _Groups(programs.device_ns, programs.module)
    table: list[Row] = []
    for group in groups.top:
        own = groups.key == group
        total = float(groups.totals_ns[group])
        devices = len(np.unique(programs.device[own]))
        table.append(
            {
                "name": analysis.timeline.text(int(programs.module[own][0])),
                "count": round(float(programs.runs[own].sum()) / max(devices, 1)),
                "ops": int(programs.ops[own].sum()),
                "total_ms": _ms(total),
                "share_device": _share(total, sum(_worked_ns(analysis).values())),
                "share_wall": _share(total, _wall_ns(analysis)),
            }
        )
    return table, groups.left_out
