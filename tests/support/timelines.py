"""Timelines written by hand, in microseconds: what a program did on its host and devices."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from jupyterlab_jaxprof.timeline.build import Texts, columns
from jupyterlab_jaxprof.timeline.model import (
    AllocatorSamples,
    ApiCalls,
    Collectives,
    Compiles,
    CopyKind,
    Device,
    DeviceOps,
    File,
    HostMemory,
    HostRanges,
    OpKind,
    Phase,
    RangeKind,
    Source,
    Steps,
    Thread,
    Timeline,
)

MAIN, WORKER = 0, 1


class Scene:
    """Put things into it in any order; `timeline()` gives them as a reader would. Thread 0 leads."""

    def __init__(self, devices: int = 1, source: Source = Source.XPLANE, hosts: int = 1) -> None:
        self._texts = Texts()
        self._rows: dict[type, list[dict[str, Any]]] = defaultdict(list)
        self._devices = tuple(
            Device(f"host{index % hosts}", index % hosts, index, f"GPU {index}") for index in range(devices)
        )
        self._threads = tuple(
            Thread(f"host{host}", host, 2 * host + number, name)
            for host in range(hosts)
            for number, name in enumerate(("python3", "pjrt_async_work_runner"))
        )
        self._source = source
        self._end_us = 0.0
        self.blind: frozenset[str] = frozenset()
        self.dropped_events = 0

    def _add(self, table: type, start_us: float, duration_us: float, **values: Any) -> None:
        texts = {
            key: self._texts.number(value) if isinstance(value, str) else value
            for key, value in values.items()
        }
        self._rows[table].append({"start_ns": start_us * 1e3, "duration_ns": duration_us * 1e3, **texts})
        self._end_us = max(self._end_us, start_us + duration_us)

    def kernel(
        self,
        start_us: float,
        duration_us: float,
        name: str = "gemm",
        module: str = "jit_train_step",
        device: int = 0,
        *,
        program: int = 1,
        stream: int = 1,
        kind: OpKind = OpKind.KERNEL,
    ) -> None:
        self._add(
            DeviceOps,
            start_us,
            duration_us,
            device=device,
            stream=stream,
            kind=kind,
            name=name,
            module=module,
            program=program,
            hlo_op=name,
        )

    def copy(
        self,
        start_us: float,
        duration_us: float,
        kind: CopyKind,
        size_bytes: int,
        memory: HostMemory = HostMemory.PINNED,
        device: int = 0,
        module: str = "",
    ) -> None:
        self._add(
            DeviceOps,
            start_us,
            duration_us,
            device=device,
            stream=2,
            kind=OpKind.COPY,
            name=f"Memcpy {kind.name}",
            size_bytes=size_bytes,
            copy_kind=kind,
            host_memory=memory,
            module=module,
        )

    def collective(self, start_us: float, duration_us: float, device: int = 0, size_bytes: int = 0) -> None:
        self.kernel(start_us, duration_us, "ncclDevKernel_AllReduce", device=device, stream=3)
        self._rows[Collectives].append(
            {"device": device, "start_ns": start_us * 1e3, "size_bytes": size_bytes}
        )

    def range(
        self,
        start_us: float,
        duration_us: float,
        name: str,
        kind: RangeKind = RangeKind.RUNTIME,
        thread: int = MAIN,
        detail: str = "",
    ) -> None:
        self._add(HostRanges, start_us, duration_us, thread=thread, kind=kind, name=name, detail=detail)

    def dispatch(
        self, start_us: float, duration_us: float, function: str = "train_step", thread: int = MAIN
    ) -> None:
        self.range(start_us, duration_us, f"PjitFunction({function})", thread=thread)

    def annotation(self, start_us: float, duration_us: float, name: str, thread: int = MAIN) -> None:
        self.range(start_us, duration_us, name, RangeKind.ANNOTATION, thread)

    def python(self, start_us: float, duration_us: float, name: str) -> None:
        self.range(start_us, duration_us, name, RangeKind.PYTHON)

    def step(
        self, start_us: float, duration_us: float, number: int, name: str = "train", thread: int = MAIN
    ) -> None:
        self._add(Steps, start_us, duration_us, thread=thread, name=name, number=number)

    def compile(
        self,
        start_us: float,
        duration_us: float,
        function: str,
        phase: Phase = Phase.COMPILE,
        thread: int = MAIN,
    ) -> None:
        self._add(Compiles, start_us, duration_us, thread=thread, phase=phase, function=function)

    def memory(
        self, time_us: float, in_use_bytes: int, limit_bytes: int = 100_000_000_000, peak_bytes: int = 0
    ) -> None:
        self._rows[AllocatorSamples].append(
            {
                "time_ns": time_us * 1e3,
                "device": 0,
                "in_use_bytes": in_use_bytes,
                "peak_bytes": max(peak_bytes, in_use_bytes),
                "limit_bytes": limit_bytes,
            }
        )

    def _table(self, table: type) -> Any:
        rows = self._rows[table]
        if not rows:
            return columns(table)
        keys = dict.fromkeys(key for row in rows for key in row)
        missing = {"program": -1}
        return columns(
            table, **{key: np.array([row.get(key, missing.get(key, 0)) for row in rows]) for key in keys}
        )

    def timeline(self) -> Timeline:
        ops = self._table(DeviceOps)
        collectives = sorted(
            (
                int(
                    np.flatnonzero(
                        (ops.device == row["device"]) & (ops.start_ns == row["start_ns"]) & (ops.stream == 3)
                    )[0]
                ),
                row["size_bytes"],
            )
            for row in self._rows[Collectives]
        )
        kind = self._texts.number("all-reduce")
        tables: dict[str, Any] = {
            name: self._table(table)
            for name, table in (
                ("ranges", HostRanges),
                ("calls", ApiCalls),
                ("steps", Steps),
                ("compiles", Compiles),
                ("allocator", AllocatorSamples),
            )
        }
        return Timeline(
            source=self._source,
            files=(File("made.xplane.pb", self._source, 1, "host0"),),
            origin_ns=0,
            texts=self._texts.all(),
            devices=self._devices,
            threads=self._threads,
            ops=ops,
            collectives=columns(
                Collectives,
                op=np.array([row for row, _ in collectives], dtype=np.int64),
                kind=np.full(len(collectives), kind),
                size_bytes=np.array([size for _, size in collectives], dtype=np.int64),
            ),
            recorded_ns=(0.0, self._end_us * 1e3),
            blind=self.blind,
            dropped_events=self.dropped_events,
            **tables,
        )


def loop(
    scene: Scene,
    steps: int = 6,
    *,
    host_us: float = 0.0,
    dispatch_us: float = 100.0,
    device_us: float = 5000.0,
    wake_us: float = 200.0,
    work: str = "",
    marked: bool = True,
) -> list[float]:
    """A training loop that waits for each step: the host's work, the dispatch, the device, the waking up.

    Gives the times at which the dispatches begin. `work` annotates the host's work; the device begins as the
    dispatch ends.
    """
    dispatches: list[float] = []
    time = 1000.0
    for number in range(steps):
        start = time
        if host_us and work:
            scene.annotation(time, host_us, work)
        time += host_us
        dispatches.append(time)
        scene.dispatch(time, dispatch_us)
        time += dispatch_us
        for part in range(4):
            scene.kernel(time + part * device_us / 4, device_us / 4, f"gemm.{part}")
        time += device_us + wake_us
        if marked:
            scene.step(start, time - start - 5.0, number)
    return dispatches
