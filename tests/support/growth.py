"""A process's memory, descriptors, threads and speed while it does the same thing again and again."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import psutil

TICK_S = 0.01


def per_action(values: Sequence[float]) -> float:
    """By how much a value grows with each action once it is warm: the median slope of the last half's pairs.

    A heap grows in steps, and early ones are no leak: two samples, or a fitted line, would tell of those.
    """
    warm = values[len(values) // 2 :]
    step = max(1, len(warm) // 100)
    points = list(enumerate(warm))[::step]
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(points, 2))


def slowing(seconds: Sequence[float]) -> float:
    """What the last quarter of the actions took over what the first one did, in processor time.

    Linux counts that in hundredths of a second: of the two sums one may be off by as much.
    """
    quarter = max(1, len(seconds) // 4)
    return (sum(seconds[-quarter:]) + TICK_S) / (sum(seconds[:quarter]) + TICK_S)


class Growth:
    """One process, looked at after each action. Its speed is its processor time: other work doesn't count."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.memory_bytes: list[float] = []
        self.descriptors: list[int] = []
        self.threads: list[int] = []
        self.processor_s: list[float] = []
        self._used_s = self._processor_s()

    def _processor_s(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def look(self) -> None:
        """An action has ended."""
        used_s = self._processor_s()
        self.processor_s.append(used_s - self._used_s)
        self._used_s = used_s
        memory = self._process.memory_info()
        self.memory_bytes.append(memory.rss - memory.shared)
        self.descriptors.append(self._process.num_fds())
        self.threads.append(self._process.num_threads())

    @property
    def bytes_per_action(self) -> float:
        """See `per_action`."""
        return per_action(self.memory_bytes)

    @property
    def more_descriptors(self) -> int:
        """How many more are open at the end than at most in the second quarter."""
        return self._more(self.descriptors)

    @property
    def more_threads(self) -> int:
        """How many more there are at the end than at most in the second quarter."""
        return self._more(self.threads)

    @staticmethod
    def _more(counts: Sequence[int]) -> int:
        quarter = max(1, len(counts) // 4)
        return min(counts[-quarter:]) - max(counts[quarter : 2 * quarter])

    def __str__(self) -> str:
        begun, end = self.memory_bytes[len(self.memory_bytes) // 2], self.memory_bytes[-1]
        return (
            f"{len(self.memory_bytes)} actions: {self.bytes_per_action / 1e3:+.2f} kB each "
            f"({begun / 1e6:.0f} MB halfway, {end / 1e6:.0f} MB at the end), "
            f"{self.more_descriptors:+d} descriptors, {self.more_threads:+d} threads, "
            f"{slowing(self.processor_s):.2f} times the processor time"
        )
