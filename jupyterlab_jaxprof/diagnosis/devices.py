"""What each device did in the window: computing, copying, talking to other devices, or resting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals, union_of
from jupyterlab_jaxprof.timeline.model import DeviceOps, OpKind, Timeline

from .window import Window


@dataclass(frozen=True)
class DeviceUse:
    """One device's time in the window. `rows` are its operations there, in the order of their start.

    `busy` is the union of all that ran; `compute`, `collective` and `copy` are unions of their own kinds and
    may overlap each other. Memory sets count as computing: XLA's programs clear their workspaces with them.
    """

    index: int
    name: str
    process: int
    rows: NDArray[np.intp]
    busy: Intervals
    compute: Intervals
    collective: Intervals
    copy: Intervals
    idle: Intervals

    @property
    def exposed_collective(self) -> Intervals:
        """Talking to other devices while nothing is computed."""
        return self.collective - self.compute

    @property
    def exposed_copy(self) -> Intervals:
        """Copying while nothing is computed or talked."""
        return self.copy - (self.compute | self.collective)


def use_of_devices(timeline: Timeline, windows: Mapping[int, Window]) -> list[DeviceUse]:
    """Give the use of each device that did anything in its process's window.

    A device without any operation is not taken for idle: it may belong to another process.
    """
    ops = timeline.ops
    end_ns = ops.start_ns + ops.duration_ns
    is_collective = np.zeros(len(ops), dtype=np.bool_)
    is_collective[timeline.collectives.op] = True
    uses: list[DeviceUse] = []
    several = len({device.process for device in timeline.devices}) > 1
    for index, device in enumerate(timeline.devices):
        window = windows[device.process]
        inside = (ops.start_ns < window.end_ns) & (end_ns > window.start_ns)
        rows = np.flatnonzero(inside & (ops.device == index))
        if not len(rows):
            continue
        name = f"{device.name} of process {device.process}" if several else device.name
        uses.append(_use(ops, rows, is_collective, window, index, name, device.process))
    return uses


def _use(
    ops: DeviceOps,
    rows: NDArray[np.intp],
    is_collective: NDArray[np.bool_],
    window: Window,
    index: int,
    name: str,
    process: int,
) -> DeviceUse:
    starts, durations, kinds = ops.start_ns[rows], ops.duration_ns[rows], ops.kind[rows]
    talking = is_collective[rows]
    copying = (kinds == OpKind.COPY) & ~talking

    def united(chosen: NDArray[np.bool_]) -> Intervals:
        return union_of(starts[chosen], durations[chosen]).clip(window.start_ns, window.end_ns)

    copy, collective, compute = united(copying), united(talking), united(~copying & ~talking)
    busy = compute | collective | copy if len(copy) or len(collective) else compute
    return DeviceUse(
        index=index,
        name=name,
        process=process,
        rows=rows,
        busy=busy,
        compute=compute,
        collective=collective,
        copy=copy,
        idle=busy.gaps(window.start_ns, window.end_ns),
    )
