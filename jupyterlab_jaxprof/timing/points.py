"""What a sweep measured: a point for each combination of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jupyterlab_jaxprof.captures.samples import Summary
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.memory import DeviceMemory
from jupyterlab_jaxprof.timing.result import TimedResult


class Ending(StrEnum):
    """How the runs at one point ended."""

    OK = "ok"
    FAILED = "failed"
    OUT_OF_MEMORY = "out of memory"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Value:
    """One of the values of a name: itself where it is a number or a text, and how it is written."""

    plain: Any
    text: str


@dataclass(frozen=True)
class Peak:
    """The allocator's peak of one device at the end of a point, in bytes, and whether the point raised it."""

    device: str
    peak_bytes: int
    raised: bool

    @classmethod
    def of(cls, before: Sequence[DeviceMemory], after: Sequence[DeviceMemory]) -> list[Peak]:
        """Compare the devices before and after; those that tell nothing are left out."""
        return [
            cls(new.device, new.peak_bytes, new.peak_bytes > old.peak_bytes)
            for old, new in zip(before, after, strict=False)
            if old.peak_bytes is not None and new.peak_bytes is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {"device": self.device, "peak_bytes": self.peak_bytes, "raised": self.raised}


@dataclass(repr=False)
class Point:
    """The body at one combination of values.

    `items` is what a call works on, by the user's own expression; `need_bytes` is what the largest program
    takes on each device, None where it isn't known. `result` keeps neither the body's value nor its error.
    `compiled_before` tells that JAX's programs ran and none was compiled; `hint` says what an error has to do
    with the value before, and is empty mostly.
    """

    values: Mapping[str, Value]
    result: TimedResult
    ending: Ending
    items: float | None = None
    peaks: list[Peak] = field(default_factory=lambda: [])
    need_bytes: int | None = None
    compiled_before: bool = False
    hint: str = ""

    @property
    def cached(self) -> Summary | None:
        """The runs in which nothing compiled, in ms a run; None where there are none."""
        return self.result.cached

    @property
    def rate(self) -> float | None:
        """How many items a second, by the median; None where it isn't known."""
        return self._per_second(self.cached.median) if self.cached is not None else None

    @property
    def steady_rate(self) -> float | None:
        """The same by the 20th percentile, which varies less: what points are compared by."""
        return self._per_second(self.cached.p20) if self.cached is not None else None

    def _per_second(self, milliseconds: float) -> float | None:
        if self.items is None or milliseconds <= 0:
            return None
        rate = self.items / milliseconds * 1e3
        return rate if math.isfinite(rate) else None

    @property
    def doubts(self) -> list[str]:
        """What makes its runs doubtful, in a few words each."""
        return [] if self.cached is None else self.cached.doubts()

    @property
    def compiling_ms(self) -> float:
        """The time of the first run in which programs were traced, lowered or compiled."""
        phases = self.result.phases
        return max(phases.total_ns - phases.cached_ns, 0) / 1e6

    @property
    def cache_read_ms(self) -> float:
        """The time of the first run in which programs were read from the persistent compilation cache."""
        return self.result.phases.cached_ns / 1e6

    @property
    def stopped(self) -> str:
        """Why it has fewer repeats than planned; empty when it has them all."""
        repeats = self.result.repeats
        if repeats is None or self.ending is Ending.INTERRUPTED:
            return ""
        if not repeats.stopped and repeats.compiled and not repeats.samples:
            return self._always_compiled()
        return repeats.stopped

    def _always_compiled(self) -> str:
        """Say what was compiled in each repeat, and why."""
        found = [entry for entry in self.result.compiles if entry.again]
        if not found:
            return "In every repeat something was traced or compiled, so no run of it counts."
        ((name, cause), _), *_ = Counter((entry.name, entry.reason.cause) for entry in found).most_common(1)
        last = next(entry for entry in reversed(found) if (entry.name, entry.reason.cause) == (name, cause))
        return f"In every repeat {name} was compiled again, so no run of it counts. {last.explanation}"

    def label(self, names: Sequence[str]) -> str:
        """Write the values of some names, as `batch=8, hidden=256`."""
        return ", ".join(f"{name}={self.values[name].text}" for name in names)

    def __repr__(self) -> str:
        return f"<Point {self.label(list(self.values))}: {self.ending}>"

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values; times in ms."""
        result = self.result
        return {
            "values": {name: value.plain for name, value in self.values.items()},
            "ending": str(self.ending),
            "error": result.failure or None,
            "first_ms": result.first_ms,
            "returned_ms": result.returned_ms,
            "compiling_ms": self.compiling_ms,
            "cache_read_ms": self.cache_read_ms,
            "compiled": [entry.name for entry in result.compiles if entry.finished],
            "cached": None if self.cached is None else self.cached.to_dict(),
            "items": self.items,
            "rate": self.rate,
            "peaks": [peak.to_dict() for peak in self.peaks],
            "need_bytes": self.need_bytes,
            "compiled_before": self.compiled_before,
            "stopped": self.stopped,
            "hint": self.hint,
            "notices": result.to_dict()["notices"],
        }


def written(rate: float | None, unit: str) -> str:
    """Write a rate with its unit: '81,200 batch/s'."""
    return f"{units.rate(rate)} {unit}" if rate is not None else units.rate(rate)


def told_doubt(points: Sequence[Point], names: Sequence[str]) -> str:
    """Say behind what rests on points which of them are doubtful; empty where none is."""
    found = [point.label(names) for point in points if point.doubts]
    return f", which is doubtful, as the runs at {joined(found)} are" if found else ""


def joined(words: Sequence[str]) -> str:
    """List words as a sentence does: 'n', 'n and m', 'n, m and k'."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def told_endings(points: Sequence[Point], names: Sequence[str]) -> list[str]:
    """Say which points failed, a kind of failure each: 'batch=2048 ran out of memory'."""
    verbs = {
        Ending.OUT_OF_MEMORY: "ran out of memory",
        Ending.FAILED: "failed",
        Ending.INTERRUPTED: "was interrupted",
    }
    told: list[str] = []
    for ending, verb in verbs.items():
        found = [point.label(names) for point in points if point.ending is ending]
        if len(found) > 2:
            told.append(f"{units.count(len(found))} values {verb.replace('was', 'were')}")
        elif found:
            told.append(f"{joined(found)} {verb if len(found) == 1 else verb.replace('was', 'were')}")
    return told
