"""Points of a sweep in series, and where the rate of a series stops growing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from jupyterlab_jaxprof.timing.points import Point, told_doubt, written

#: From the knee on, no value brings more of the best rate than what is left to it here.
KNEE = 0.9
#: How far the values must go on beyond the knee, as a factor: where they end sooner, a rate that grows in
#: step with them is still within what is left of the best one.
BEYOND = 2.0
#: Below this power of the values, a rate counts as growing clearly less than they do.
_IN_STEP = 0.5
_FEWEST_FOR_A_KNEE = 3


@dataclass(frozen=True)
class Series:
    """The points along one name or several, all others fixed; `label` names those, and may be empty."""

    label: str
    along: Sequence[str]
    points: Sequence[Point]

    @property
    def title(self) -> str:
        """The names along which it runs."""
        return ", ".join(self.along)

    def value(self, point: Point) -> str:
        """Write where one of its points stands in it."""
        return ", ".join(point.values[name].text for name in self.along)

    def knee(self) -> Point | None:
        """Give the point from which on the rate grows no more.

        That is the smallest value that reaches 90 % of the best rate of all, by the 20th percentiles, where
        values of twice as much and more have been measured too. None where there are none: the rate may
        grow in step with the values there. None, too, where the values are no numbers above 0, or where fewer
        than three have a rate.
        """
        ordered = self._ordered()
        if not ordered:
            return None
        found = self._near_best(ordered)
        return found if self._number(ordered[-1]) >= BEYOND * self._number(found) else None

    def verdict(self, unit: str) -> str:
        """Say where the rate stops growing, as a sentence's part; empty where too little is known.

        It says so where that rests on doubtful runs: those of the value that it names, of the one before,
        which would be named if it were faster, of the best one, and of the last one where no knee is known.
        """
        ordered = self._ordered()
        if not ordered:
            return ""
        knee = self.knee()
        near = self._near_best(ordered)
        best = max(ordered, key=lambda point: point.steady_rate or 0.0)
        rests_on = [near, best, *ordered[max(ordered.index(near) - 1, 0) :][:1]]
        rests_on += [ordered[-1]] if knee is None else []
        return self._told(ordered, knee, unit) + told_doubt(
            [point for point in ordered if point in rests_on], self.along
        )

    def _told(self, ordered: Sequence[Point], knee: Point | None, unit: str) -> str:
        if knee is None:
            return self._open_end(ordered, unit)
        told = f"{knee.label(self.along)} ({written(knee.rate, unit)})"
        if knee is ordered[0]:
            return f"the rate does not grow beyond its smallest value, {told}"
        return f"the rate stops growing at {told}"

    def _open_end(self, ordered: Sequence[Point], unit: str) -> str:
        """Say what can be said where no value far enough beyond the best rates was measured."""
        last, near = ordered[-1], self._near_best(ordered)
        told = f"{last.label(self.along)} ({written(last.rate, unit)})"
        if near is last:
            return f"the rate still grows at {told}"
        grown = math.log((last.steady_rate or 0.0) / (near.steady_rate or 1.0))
        if grown >= _IN_STEP * math.log(self._number(last) / self._number(near)):
            return f"the rate still grows at {told}"
        return (
            f"it reaches {written(near.rate, unit)} at {near.label(self.along)}, and the values beyond lie "
            "too close to it to tell whether the rate still grows"
        )

    @staticmethod
    def _near_best(ordered: Sequence[Point]) -> Point:
        best = max(point.steady_rate or 0.0 for point in ordered)
        return next(point for point in ordered if (point.steady_rate or 0.0) >= KNEE * best)

    def _number(self, point: Point) -> float:
        return float(point.values[self.along[0]].plain)

    def _ordered(self) -> list[Point]:
        """Give the points that have a rate by their values, if those are numbers above 0, and enough."""
        points = [point for point in self.points if point.steady_rate is not None]
        if len(self.along) > 1 or len(points) < _FEWEST_FOR_A_KNEE:
            return []
        if not all(_is_number(point.values[self.along[0]].plain) for point in points):
            return []
        return sorted(points, key=self._number)


def series_of(points: Sequence[Point], names: Sequence[str], by: str) -> list[Series]:
    """Part the points into series.

    Without `by` they run along the first name, with one series for each combination of the others. With it
    there is one for each of its values, which runs along all others that have more than one value.
    """
    others = [name for name in names if name != by] or list(names)
    along = others[:1]
    if by:
        along = [name for name in others if len({point.values[name].text for point in points}) > 1] or along
    fixed = [name for name in names if name not in along]
    fixed.sort(key=lambda name: name != by)
    parted: dict[str, list[Point]] = {}
    for point in points:
        parted.setdefault(point.label(fixed), []).append(point)
    return [Series(label, along, members) for label, members in parted.items()]


def _is_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:  # an int beyond all floats
        return False
