"""Memory over time: a thread that looks again and again, and takes less than a hundredth of a processor."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from jupyterlab_jaxprof.timing.memory import device_memory, live_bytes, process_bytes
from jupyterlab_jaxprof.timing.variables import backend_has_started

#: Samples kept; when there are so many, neighbours are merged to the larger and half as many are taken.
MAX_SAMPLES = 4096
SHORTEST_INTERVAL_S = 0.01
#: A sample's own time is at most this part of the interval: 1 % with some room.
_SHARE = 0.006
PROCESS = "process"


class MemorySampler:
    """Samples memory from `start` to `stop`: bytes by label, a device's name or 'process'.

    A device that tells what is in use is asked for that; of one that doesn't (a CPU) the live arrays are
    added up. A sampler never starts JAX. `over`, if given, is called from the thread after `seconds`.
    """

    def __init__(self, seconds: float | None = None, over: Callable[[], None] | None = None) -> None:
        self.samples: list[tuple[float, dict[str, int]]] = []
        """When, in ms from the start, and what was in use."""
        self._shortest_s = SHORTEST_INTERVAL_S
        self._costs: deque[float] = deque(maxlen=20)
        self.cost_s = 0.0
        """Processor time that the sampling took."""
        self.problem = ""
        self._seconds = seconds
        self._over = over
        self._began_ns = 0
        self._ended_ns = 0
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="jaxprof-memory", daemon=True)

    def start(self) -> None:
        """Take the first sample, and go on in a thread."""
        self._began_ns = time.perf_counter_ns()
        self.sample()
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and end; again is no harm."""
        if not self._ended_ns:
            self._end.set()
            self._thread.join()
            self.sample()
            self._ended_ns = time.perf_counter_ns()

    @property
    def now_ms(self) -> float:
        """Time since the start, in ms."""
        return (time.perf_counter_ns() - self._began_ns) / 1e6

    @property
    def duration_ms(self) -> float:
        """How long it sampled, in ms."""
        return (self._ended_ns - self._began_ns) / 1e6 if self._ended_ns else self.now_ms

    def sample(self) -> None:
        """Take one sample."""
        began_s = time.thread_time()
        at_ms, values = self.now_ms, _values()
        with self._lock:
            self.samples.append((at_ms, values))
            if len(self.samples) >= MAX_SAMPLES:
                self._thin_out()
            took_s = time.thread_time() - began_s
            self._costs.append(took_s)
            self.cost_s += took_s

    @property
    def interval_s(self) -> float:
        """How long it waits between two samples: longer where they cost more."""
        usual_s = statistics.median(self._costs) if self._costs else 0.0  # the first may import something
        return max(self._shortest_s, min(usual_s / _SHARE, 10.0))

    def _run(self) -> None:
        try:
            while not self._end.wait(self.interval_s):
                self.sample()
                if self._seconds is not None and self.now_ms > self._seconds * 1e3:
                    break
        except Exception as error:  # noqa: BLE001 - it would be printed into whatever cell runs
            self.problem = f"{type(error).__name__}: {error}"
        if self._over is not None and not self._end.is_set():
            self._over()

    def _thin_out(self) -> None:
        """Merge neighbours, each label at its larger value, and look half as often."""
        pairs = list(zip(self.samples[::2], self.samples[1::2], strict=False))
        merged = [(at_ms, _larger(one, other)) for (at_ms, one), (_, other) in pairs]
        self.samples[:] = merged + self.samples[len(merged) * 2 :]
        self._shortest_s *= 2

    def labels(self) -> list[str]:
        """Give what was sampled: devices first."""
        found = dict.fromkeys(label for _, values in self.samples for label in values)
        return sorted(found, key=lambda label: label == PROCESS)

    def columns(self, label: str, number: int) -> list[int]:
        """Give the largest value in each of `number` equal parts of the time; a part without a sample goes on
        as the one before.
        """
        width = max(self.duration_ms, 1e-6) / number
        columns: list[int | None] = [None] * number
        for at_ms, values in self.samples:
            index = min(int(at_ms / width), number - 1)
            columns[index] = max(columns[index] or 0, values.get(label, 0))
        last = 0
        for index, value in enumerate(columns):
            columns[index] = last = value if value is not None else last
        return [value or 0 for value in columns]


def _larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {label: max(one.get(label, 0), value) for label, value in other.items()}


def _values() -> dict[str, int]:
    values: dict[str, int] = {}
    if "jax" in sys.modules and backend_has_started():
        devices = device_memory()
        values = {device.device: device.in_use_bytes for device in devices if device.in_use_bytes is not None}
        if len(values) < len(devices):
            arrays = live_bytes()
            values |= {one.device: arrays.get(one.device, 0) for one in devices if not one.known}
    used = process_bytes()
    return values if used is None else values | {PROCESS: used}
