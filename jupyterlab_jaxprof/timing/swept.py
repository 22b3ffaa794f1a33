"""What a sweep gives: its points, what they say in a sentence, and all of them as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.frames import data_frame
from jupyterlab_jaxprof.timing.points import Ending, Point, joined, told_doubt, told_endings, written
from jupyterlab_jaxprof.timing.series import Series, series_of


@dataclass(repr=False)
class SweepResult:
    """A sweep's points, in the order in which they were measured.

    `planned` is how many there were to be, `devices` on how many devices; `error` is what is to be raised: an
    interrupt or an exit, or the first error where no point came to its end.
    """

    name: str
    names: list[str]
    by: str
    unit: str
    planned: int
    points: list[Point] = field(default_factory=lambda: [])
    devices: int = 1
    notices: list[str] = field(default_factory=lambda: [])
    error: BaseException | None = None

    @property
    def series(self) -> list[Series]:
        """The points, parted by all names but one, along which each series runs."""
        return series_of(self.points, self.names, self.by)

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before all was measured."""
        return len(self.points) < self.planned or any(
            point.ending is Ending.INTERRUPTED for point in self.points
        )

    @property
    def done(self) -> int:
        """How many points were not cut short, however they ended."""
        return sum(point.ending is not Ending.INTERRUPTED for point in self.points)

    @property
    def measured(self) -> list[Point]:
        """The points that came to their end."""
        return [point for point in self.points if point.ending is Ending.OK]

    def best(self) -> Point | None:
        """Give the point of the highest rate, else that of the shortest call; None where there is none."""
        rated = [point for point in self.points if point.rate is not None]
        if rated:
            return max(rated, key=lambda point: point.rate or 0.0)
        timed = [(point.cached.median, point) for point in self.points if point.cached is not None]
        return min(timed, key=lambda pair: pair[0])[1] if timed else None

    def sentence(self) -> str:
        """Say in a sentence what came of it."""
        of = f"{self.done} of " if self.interrupted else ""
        head = f"{of}{units.count(self.planned, 'value')} of {joined(self.names)}"
        told = told_endings(self.points, self.names)
        return f"{head}: {'; '.join([self._verdict(), *told])}."

    def _verdict(self) -> str:
        best = self.best()
        if best is None or best.cached is None:
            stopped = next((point.stopped for point in self.measured if point.stopped), "")
            return (
                f"none could be timed ({stopped.split('. ')[0].rstrip('.')})"
                if stopped
                else "none could be timed"
            )
        series = self.series
        verdict = series[0].verdict(self.unit) if len(series) == 1 else ""
        if verdict:
            return verdict
        took, where = units.duration(best.cached.median), best.label(self.names)
        doubt = told_doubt([best], self.names)
        if best.rate is not None:
            return f"the highest rate is {written(best.rate, self.unit)}, at {where}{doubt}"
        return f"the shortest call takes {took}, at {where}{doubt}"

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return f"<SweepResult {self.name!r}: {self.sentence()}>"

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values, as JSON can hold them."""
        return {
            "name": self.name,
            "sentence": self.sentence(),
            "names": self.names,
            "rate_unit": self.unit or None,
            "points": [point.to_dict() for point in self.points],
            "series": [
                {
                    "label": series.label,
                    "along": series.title,
                    "verdict": series.verdict(self.unit),
                    "knee": None if (knee := series.knee()) is None else knee.values[series.along[0]].plain,
                }
                for series in self.series
            ],
            "planned": self.planned,
            "notices": self.notices,
        }

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame: a row a point, the names' values first. Times are in ms.

        Raises ImportError with a sentence when pandas is not installed.
        """
        rows: list[dict[str, Any]] = []
        for point in self.points:
            cached = point.cached
            row = {name: value.plain for name, value in point.values.items()}
            row |= {"ending": str(point.ending), "median_ms": cached and cached.median}
            row |= {"lower_quartile_ms": cached and cached.lower_quartile}
            row |= {"upper_quartile_ms": cached and cached.upper_quartile}
            row |= {"rate": point.rate, "first_ms": point.result.first_ms}
            row |= {"compiling_ms": point.compiling_ms, "cache_read_ms": point.cache_read_ms}
            row |= {"need_bytes": point.need_bytes}
            row |= {f"peak_bytes {peak.device}": peak.peak_bytes for peak in point.peaks if peak.raised}
            rows.append(row)
        return data_frame(rows)
