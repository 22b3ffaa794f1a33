"""What a sweep measured: a point for each combination of values, series of points, and where they bend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.memory import DeviceMemory
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.statistics import Summary

#: From the knee on, no value brings more of the best rate than what is left to it here.
KNEE = 0.9
_FEWEST_FOR_A_KNEE = 3


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
    takes on a device, None where it isn't known. `result` keeps neither the body's value nor its error.
    """

    values: Mapping[str, Value]
    result: TimedResult
    ending: Ending
    items: float | None = None
    peaks: list[Peak] = field(default_factory=lambda: [])
    need_bytes: int | None = None

    @property
    def cached(self) -> Summary | None:
        """The runs in which nothing compiled, in ms a run; None where there are none."""
        return self.result.cached

    @property
    def rate(self) -> float | None:
        """How many items a second, by the median; None where it isn't known."""
        cached = self.cached
        if self.items is None or cached is None or cached.median <= 0:
            return None
        return self.items / cached.median * 1e3

    @property
    def steady_rate(self) -> float | None:
        """The same by the 20th percentile, which varies less: what points are compared by."""
        cached = self.cached
        if self.items is None or cached is None or cached.p20 <= 0:
            return None
        return self.items / cached.p20 * 1e3

    @property
    def compiling_ms(self) -> float:
        """The time of the first run in which programs were traced, lowered, compiled or read from disk."""
        return self.result.phases.total_ns / 1e6

    @property
    def stopped(self) -> str:
        """Why it has fewer repeats than planned; empty when it has them all."""
        return self.result.repeats.stopped if self.result.repeats is not None else ""

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
            "compiled": [entry.name for entry in result.compiles if entry.finished],
            "cached": None if self.cached is None else self.cached.to_dict(),
            "items": self.items,
            "rate": self.rate,
            "peaks": [peak.to_dict() for peak in self.peaks],
            "need_bytes": self.need_bytes,
            "stopped": self.stopped,
            "notices": result.to_dict()["notices"],
        }


@dataclass(frozen=True)
class Series:
    """The points along one name, all others fixed; `label` names those, and is empty where there are none."""

    label: str
    along: str
    points: Sequence[Point]

    def knee(self) -> Point | None:
        """Give the point from which on the rate grows no more.

        That is the smallest value that reaches 90 % of the best rate of all, by the 20th percentiles. None
        where the largest value that was measured is the only one (the rate still grows), where the values are
        no numbers, or where fewer than three have a rate.
        """
        ordered = self._ordered()
        if len(ordered) < _FEWEST_FOR_A_KNEE:
            return None
        best = max(point.steady_rate or 0.0 for point in ordered)
        found = next(point for point in ordered if (point.steady_rate or 0.0) >= KNEE * best)
        return None if found is ordered[-1] else found

    def verdict(self, unit: str) -> str:
        """Say where the rate stops growing, as a sentence's part; empty where too little is known."""
        ordered = self._ordered()
        if len(ordered) < _FEWEST_FOR_A_KNEE:
            return ""
        knee = self.knee()
        if knee is None:
            last = ordered[-1]
            return f"the rate still grows at {last.label([self.along])} ({written(last.rate, unit)})"
        told = f"{knee.label([self.along])} ({written(knee.rate, unit)})"
        if knee is ordered[0]:
            return f"the rate does not grow beyond its smallest value, {told}"
        return f"the rate stops growing at {told}"

    def _ordered(self) -> list[Point]:
        """Give the points that have a rate by their values, if those are numbers."""
        points = [point for point in self.points if point.steady_rate is not None]
        if not all(_is_number(point.values[self.along].plain) for point in self.points):
            return []
        return sorted(points, key=lambda point: point.values[self.along].plain)


def series_of(points: Sequence[Point], names: Sequence[str], by: str) -> list[Series]:
    """Part the points into series, `by` first among the names that are fixed in each.

    They run along the first of the other names.
    """
    along = next((name for name in names if name != by), names[0])
    fixed = [name for name in names if name != along]
    fixed.sort(key=lambda name: name != by)
    parted: dict[str, list[Point]] = {}
    for point in points:
        parted.setdefault(point.label(fixed), []).append(point)
    return [Series(label, along, members) for label, members in parted.items()]


def written(rate: float | None, unit: str) -> str:
    """Write a rate with its unit: '81,200 batch/s'."""
    if rate is None:
        return "–"
    number = f"{float(f'{rate:.3g}'):,.0f}" if rate >= 100 else f"{rate:.3g}"
    return f"{number} {unit}"


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
            told.append(f"{' and '.join(found)} {verb if len(found) == 1 else verb.replace('was', 'were')}")
    return told


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
