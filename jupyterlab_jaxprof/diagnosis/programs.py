"""The compiled programs that ran: how often each, with how many operations, and how long they took."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.model import CopyKind, RangeKind, Timeline

from . import thresholds
from .devices import DeviceUse
from .grouping import dense

# XLA's own ranges: `CommonPjRtLoadedExecutable::Execute (jit_f)` in a trace; in a report `XlaModule`, with
# `hlo_module=jit_f,program_id=7` as its detail
_RUN = re.compile(r"\w+::Execute \(([^)]+)\)$")
_DETAIL = re.compile(r"hlo_module=([^,#]+)")


@dataclass(frozen=True)
class Programs:
    """One row for each program of each device. `of_op` gives a device operation's program, or -1.

    A program is an HLO module in one compilation. How often it ran is how often its rarest operation did: one
    outside every loop.
    """

    device: NDArray[np.int64]
    module: NDArray[np.int64]
    runs: NDArray[np.int64]
    ops: NDArray[np.int64]
    device_ns: NDArray[np.float64]
    repeats: NDArray[np.int64]  # of its most frequent operation, in one run
    of_op: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.module)

    @property
    def ops_per_run(self) -> NDArray[np.float64]:
        """How many operations one run has."""
        return self.ops / np.maximum(self.runs, 1)

    @property
    def device_ns_per_run(self) -> NDArray[np.float64]:
        """How long the operations of one run take together."""
        return self.device_ns / np.maximum(self.runs, 1)

    @property
    def eager(self) -> NDArray[np.bool_]:
        """Whether a program is a single operation of Python's, dispatched by itself."""
        return (self.ops_per_run <= thresholds.EAGER_OPS) & (
            self.device_ns_per_run <= thresholds.EAGER_DEVICE_NS
        )


def place_of(timeline: Timeline, row: int) -> str:
    """Give the scope and the source line of an operation, as far as known: `jit(f)/mul, model.py:12`."""
    scope, source = (timeline.text(int(column[row])) for column in (timeline.ops.scope, timeline.ops.source))
    return ", ".join(text for text in (scope_of(scope), source) if text)


def scope_of(text: str) -> str:
    """Give a name stack as it is; nothing for an argument's name, which is all that some operations have."""
    return text if "(" in text or "/" in text else ""


def find_programs(timeline: Timeline, devices: list[DeviceUse]) -> Programs:
    """Group the operations in the window by device, module and program id."""
    ops = timeline.ops
    of_op = np.full(len(ops), -1, dtype=np.int64)
    rows = np.concatenate([use.rows for use in devices]) if devices else np.zeros(0, dtype=np.intp)
    rows = rows[ops.module[rows] != 0]
    if not len(rows):
        nothing = np.zeros(0, dtype=np.int64)
        return Programs(nothing, nothing, nothing, nothing, np.zeros(0), nothing, of_op)
    key = dense(ops.program[rows], ops.module[rows], ops.device[rows])
    firsts = np.zeros(int(key.max()) + 1, dtype=np.intp)
    firsts[key[::-1]] = rows[::-1]
    of_op[rows] = key
    for use in devices:
        _join_scalars(timeline, use, of_op)
    count = np.bincount(key)
    module = ops.module[firsts].astype(np.int64)
    runs, repeats = _runs(timeline, rows, key, module)
    return Programs(
        device=ops.device[firsts].astype(np.int64),
        module=module,
        runs=runs,
        ops=count.astype(np.int64),
        device_ns=np.bincount(key, weights=ops.duration_ns[rows]).astype(np.float64),
        repeats=repeats,
        of_op=of_op,
    )


def _join_scalars(timeline: Timeline, use: DeviceUse, of_op: NDArray[np.int64]) -> None:
    """Let the copy of a Python number belong to the program that it is an argument of: the next to run."""
    ops, rows = timeline.ops, use.rows
    scalar = (
        (ops.copy_kind[rows] == CopyKind.HOST_TO_DEVICE)
        & (ops.module[rows] == 0)
        & (ops.size_bytes[rows] <= thresholds.SCALAR_BYTES)
    )
    ran = np.flatnonzero(ops.module[rows] != 0)
    following = np.searchsorted(ran, np.flatnonzero(scalar))
    known = following < len(ran)
    of_op[rows[scalar][known]] = of_op[rows[ran[following[known]]]]


def _runs(
    timeline: Timeline, rows: NDArray[np.intp], program: NDArray[np.int64], module: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each program ran, and how often its most frequent operation came in one run."""
    ops = timeline.ops
    # One HLO operation may make several kernels (a matrix product and the clearing of its workspace)
    kind = dense(program, ops.hlo_op[rows], ops.name[rows])
    of_kind = np.bincount(kind)
    program_of_kind = np.zeros(len(of_kind), dtype=np.int64)
    program_of_kind[kind] = program
    runs = np.full(len(module), np.iinfo(np.int64).max)
    np.minimum.at(runs, program_of_kind, of_kind)
    most = np.zeros(len(module), dtype=np.int64)
    np.maximum.at(most, program_of_kind, of_kind)
    # An operation in a branch seldom taken is rarer than the program: there the host's count is the better
    counted = _host_runs(timeline)
    for index, text in enumerate(module):
        alone = np.count_nonzero(module == text) == 1
        if alone and counted.get(timeline.text(int(text)), 0) > runs[index]:
            runs[index] = min(counted[timeline.text(int(text))], int(most[index]))
    return runs, most // np.maximum(runs, 1)


def _host_runs(timeline: Timeline) -> dict[str, int]:
    """How often the host ran each HLO module, where the recorder names it."""
    ranges = timeline.ranges
    modules = np.isin(ranges.name, timeline.find("XlaModule"))
    runs: dict[str, int] = {}
    for column, pattern in (
        (ranges.name[ranges.kind == RangeKind.RUNTIME], _RUN),
        (ranges.detail[modules], _DETAIL),
    ):
        counts = np.bincount(column)
        for number in np.flatnonzero(counts).tolist():
            found = pattern.search(timeline.texts[number])
            if found:
                runs[found.group(1)] = runs.get(found.group(1), 0) + int(counts[number])
    return runs
