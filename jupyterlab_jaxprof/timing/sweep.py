"""A sweep: a body measured once for each combination of values that names are bound to."""

from __future__ import annotations

import gc
import itertools
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cell import Barrier
from jupyterlab_jaxprof.timing.bodies import Body, names_in
from jupyterlab_jaxprof.timing.frames import data_frame
from jupyterlab_jaxprof.timing.measurement import measure
from jupyterlab_jaxprof.timing.memory import device_memory, largest_need_bytes
from jupyterlab_jaxprof.timing.points import (
    Ending,
    Peak,
    Point,
    Series,
    Value,
    series_of,
    told_endings,
    written,
)
from jupyterlab_jaxprof.timing.repeats import Plan
from jupyterlab_jaxprof.timing.result import TimedResult

_MISSING = object()


@dataclass(frozen=True)
class Axis:
    """A name, and the values that it is bound to, one after another; `texts` is how they are written."""

    name: str
    values: Sequence[Any]
    texts: Sequence[str]

    def described(self, index: int) -> Value:
        """Give one of the values without keeping what is not a number or a text."""
        value = self.values[index]
        is_plain = value is None or isinstance(value, bool | int | float | str)
        return Value(value if is_plain else self.texts[index], self.texts[index])


@dataclass
class Rate:
    """What a call works on, by an expression of the user's that gives a number: `batch`, `batch * length`."""

    text: str
    code: CodeType

    @property
    def unit(self) -> str:
        """The rate's unit."""
        return f"{self.text}/s" if self.text.isidentifier() else f"({self.text})/s"

    def items(self, names: dict[str, Any]) -> float:
        """Evaluate it; raises whatever it raises, and ValueError for what is no number above 0."""
        value = eval(self.code, names)
        items = float(value)
        if not 0 < items < float("inf"):
            raise ValueError(f"it gives {items}, which is no number above 0")
        return items


@dataclass(repr=False)
class SweepResult:
    """A sweep's points, in the order in which they were measured.

    `planned` is how many there were to be; `error` is what is to be raised: an interrupt, or the first error
    where no point came to its end.
    """

    name: str
    names: list[str]
    by: str
    unit: str
    planned: int
    points: list[Point] = field(default_factory=lambda: [])
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
        swept = " and ".join(self.names)
        if len(self.points) < self.planned:
            head = f"{len(self.points)} of {units.count(self.planned, 'value')} of {swept}"
        else:
            head = f"{units.count(self.planned, 'value')} of {swept}"
        told = told_endings(self.points, self.names)
        return f"{head}: {'; '.join([self._verdict(), *told])}."

    def _verdict(self) -> str:
        best = self.best()
        if best is None or best.cached is None:
            return "none could be timed"
        series = self.series
        verdict = series[0].verdict(self.unit) if len(series) == 1 else ""
        if verdict:
            return verdict
        took, where = units.duration(best.cached.median), best.label(self.names)
        if best.rate is not None:
            return f"the highest rate is {written(best.rate, self.unit)}, at {where}"
        return f"the shortest call takes {took}, at {where}"

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
                    "along": series.along,
                    "verdict": series.verdict(self.unit),
                    "knee": None if (knee := series.knee()) is None else knee.values[series.along].plain,
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
            row |= {"compiling_ms": point.compiling_ms, "need_bytes": point.need_bytes}
            row |= {f"peak_bytes {peak.device}": peak.peak_bytes for peak in point.peaks if peak.raised}
            rows.append(row)
        return data_frame(rows)


class Sweep:
    """Measures a body at every combination of values, with the names bound in the user's namespace.

    `begun` is called before each point with how many are done and the values; `failed` with the error of a
    point that the sweep survives.
    """

    def __init__(
        self,
        body: Body,
        names: dict[str, Any],
        axes: Sequence[Axis],
        plan: Plan,
        *,
        rate: Rate | None = None,
        fresh: bool = False,
        begun: Callable[[int, str], None],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._body = body
        self._names = names
        self._axes = axes
        self._plan = plan
        self._rate = rate
        self._fresh = fresh
        self._begun = begun
        self._failed = failed
        self._first_error: BaseException | None = None

    async def run(self, result: SweepResult) -> None:
        """Measure the points into `result`; an interrupt ends it, and stays in `result.error`.

        The names are put back at the end, also those that were not bound before.
        """
        Barrier()
        result.notices += self._unused()
        try:
            with _restored(self._names, [axis.name for axis in self._axes]):
                for indices in itertools.product(*(range(len(axis.values)) for axis in self._axes)):
                    await self._point(result, indices)
                    if result.error is not None:
                        break
        except KeyboardInterrupt as error:  # between two points
            result.error = error
        if result.error is None and not result.measured and self._first_error is not None:
            result.error = self._first_error
        result.notices += _compiled_before(result.points, fresh=self._fresh)
        result.notices += _peak_notices(result.points)

    async def _point(self, result: SweepResult, indices: Sequence[int]) -> None:
        values = {axis.name: axis.described(index) for axis, index in zip(self._axes, indices, strict=True)}
        label = ", ".join(f"{name}={value.text}" for name, value in values.items())
        self._begun(len(result.points), label)
        if self._fresh:
            import jax

            jax.clear_caches()
        bound = {axis.name: axis.values[index] for axis, index in zip(self._axes, indices, strict=True)}
        self._names.update(bound)
        before = device_memory()
        timed = await measure(self._body, label, plan=self._plan)
        point = Point(values, timed.released(), _ending(timed))
        point.peaks = Peak.of(before, device_memory())
        if timed.error is None:
            point.need_bytes = largest_need_bytes(timed.compiles, self._body.used())
            self._count_items(result, point)
            self._tell_rebound(result, bound)
        result.points.append(point)
        self._settle(result, point, timed)

    def _settle(self, result: SweepResult, point: Point, timed: TimedResult) -> None:
        """Let go of what the point made, and decide whether the sweep goes on."""
        error, timed.error, timed.value = timed.error, None, None
        repeats = timed.repeats
        if repeats is not None and repeats.error is not None:
            if repeats.interrupted:
                point.ending, error = Ending.INTERRUPTED, repeats.error
            elif not repeats.samples and is_out_of_memory(repeats.error):
                point.ending = Ending.OUT_OF_MEMORY
        if error is None:
            return
        if point.ending is Ending.INTERRUPTED:
            result.error = error
            return
        if point.ending is Ending.FAILED:
            self._failed(point.label(result.names), error)
        traceback.clear_frames(error.__traceback__)  # whose names hold arrays
        if self._first_error is None:
            self._first_error = error
        del error
        gc.collect()

    def _count_items(self, result: SweepResult, point: Point) -> None:
        if self._rate is None:
            return
        try:
            point.items = self._rate.items(self._names)
        except Exception as error:  # noqa: BLE001 - the user's expression raises anything
            told = f"--rate {self._rate.text} can't be used: {type(error).__name__}: {str(error)[:200]}."
            if told not in result.notices:
                result.notices.append(told)

    def _tell_rebound(self, result: SweepResult, bound: Mapping[str, Any]) -> None:
        for name, value in bound.items():
            told = f"The cell itself assigns to {name}: its repeats ran with what it assigned."
            if self._names.get(name, _MISSING) is not value and told not in result.notices:
                result.notices.append(told)

    def _unused(self) -> list[str]:
        used = names_in(self._body.codes)
        unused = [axis.name for axis in self._axes if axis.name not in used]
        return [
            f"The cell's own lines do not use {name}. A function that reads it as a global sees each value, "
            "but inside jax.jit it stays what it was when the function was traced."
            for name in unused
        ]


@contextmanager
def _restored(names: dict[str, Any], bound: Sequence[str]) -> Generator[None]:
    before = {name: names.get(name, _MISSING) for name in bound}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                names.pop(name, None)
            else:
                names[name] = value


def _ending(timed: TimedResult) -> Ending:
    if timed.error is None:
        return Ending.OK
    if timed.interrupted:
        return Ending.INTERRUPTED
    return Ending.OUT_OF_MEMORY if is_out_of_memory(timed.error) else Ending.FAILED


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory, a device's or the host's, did not suffice."""
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower()
    )


def _compiled_before(points: Sequence[Point], *, fresh: bool) -> list[str]:
    cached = [point for point in points if point.ending is Ending.OK and not point.compiling_ms]
    if not cached or fresh:
        return []
    number = "Nothing" if len(cached) == len(points) else f"At {len(cached)} of {len(points)} values nothing"
    return [
        f"{number} was compiled: it had been before, so no compiling is told, and no program's memory where "
        "several shapes were compiled. --fresh empties JAX's caches before each value."
    ]


def _peak_notices(points: Sequence[Point]) -> list[str]:
    notices: list[str] = []
    raised = [point for point in points if any(peak.raised for peak in point.peaks)]
    if any(point.compiling_ms for point in raised):
        notices.append(
            "A peak counts all that the process had in memory, and what XLA took while it compiled and "
            "autotuned: the largest program's need is the cell's own."
        )
    if len(raised) < sum(bool(point.peaks) for point in points):
        notices.append(
            "A peak behind ≤ was reached before that value ran: it is the whole process's, and can't be "
            "reset. In a fresh kernel, with the smallest values first, each value shows its own."
        )
    return notices
