"""A sweep: a body measured once for each combination of values that names are bound to."""

from __future__ import annotations

import gc
import itertools
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

from jupyterlab_jaxprof.cell import Barrier, Run
from jupyterlab_jaxprof.timing import sweep_notices
from jupyterlab_jaxprof.timing.bodies import Body, holders_of_deleted
from jupyterlab_jaxprof.timing.measurement import measure
from jupyterlab_jaxprof.timing.memory import device_memory, largest_need_bytes
from jupyterlab_jaxprof.timing.points import Ending, Peak, Point, Value, joined
from jupyterlab_jaxprof.timing.repeats import Plan
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.spans import Span, within
from jupyterlab_jaxprof.timing.swept import SweepResult

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

    def items(self, names: Mapping[str, Any]) -> float:
        """Evaluate it; raises whatever it raises, and NoItems for what is no number above 0."""
        value = eval(self.code, dict(names))
        items = float(value)
        if not 0 < items < float("inf"):
            raise NoItems("it gives no number above 0")
        return items


class NoItems(ValueError):
    """A rate's expression gives what no rate can be made of."""


class _CountedBody:
    """A body whose first run is followed, outside of its time, by a look at what it has worked on."""

    def __init__(self, body: Body, count: Callable[[], None]) -> None:
        self._body = body
        self._count: Callable[[], None] | None = count
        self.counted: Span = (0, 0)

    async def run(self, loops: int = 1) -> Run:
        run = await self._body.run(loops)
        count, self._count = self._count, None
        if count is not None and run.error is None:
            began_ns = time.perf_counter_ns()
            count()
            self.counted = (began_ns, time.perf_counter_ns())
        return run

    @property
    def filename(self) -> str | None:
        return self._body.filename

    @property
    def codes(self) -> Sequence[CodeType]:
        return self._body.codes

    def used(self) -> Mapping[str, Any]:
        return self._body.used()


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
        self._rebound: set[str] = set()
        self._unrated: dict[str, list[str]] = {}

    async def run(self, result: SweepResult) -> None:
        """Measure the points into `result`; an interrupt or an exit ends it, and stays in `result.error`.

        The names are put back at the end, also those that were not bound before.
        """
        Barrier()
        result.devices = len(device_memory())
        try:
            with _restored(self._names, [axis.name for axis in self._axes]):
                for indices in itertools.product(*(range(len(axis.values)) for axis in self._axes)):
                    await self._point(result, indices)
                    if result.error is not None:
                        break
        except BaseException as error:
            if not _ends_all(error):
                raise
            # An interrupt between two points: where it struck is nothing of the user's.
            result.error = KeyboardInterrupt() if isinstance(error, KeyboardInterrupt) else error
        if result.error is None and not result.measured and self._first_error is not None:
            result.error = self._first_error
        result.notices += self._notices(result)

    def _notices(self, result: SweepResult) -> list[str]:
        names = [axis.name for axis in self._axes]
        return [
            *sweep_notices.told_of_runs(result),
            *sweep_notices.unused(self._body, names),
            *sweep_notices.rebound([name for name in names if name in self._rebound]),
            *(sweep_notices.unrated(self._rate.text, result, self._unrated) if self._rate else []),
            *([] if self._fresh else sweep_notices.compiled_before(result.points)),
            *sweep_notices.read_from_disk(result.points),
            *sweep_notices.peaks(result.points),
        ]

    async def _point(self, result: SweepResult, indices: Sequence[int]) -> None:
        values = {axis.name: axis.described(index) for axis, index in zip(self._axes, indices, strict=True)}
        label = ", ".join(f"{name}={value.text}" for name, value in values.items())
        self._begun(len(result.points), label)
        if self._fresh:
            import jax

            jax.clear_caches()
        bound = {axis.name: axis.values[index] for axis, index in zip(self._axes, indices, strict=True)}
        self._names.update(bound)
        deleted = holders_of_deleted(self._body.used())
        before = device_memory()
        items: list[float] = []
        body = _CountedBody(self._body, lambda: self._count_items(label, bound, items))
        timed = await measure(body, label, plan=self._plan)
        point = Point(values, timed.released(), _ending(timed))
        point.peaks = Peak.of(before, device_memory())
        if timed.error is None:
            compiles = [entry for entry in timed.compiles if not within(entry.spans, body.counted)]
            used = self._body.used()
            point.need_bytes = largest_need_bytes(compiles, used)
            point.items = items[0] if items else None
            point.compiled_before = not timed.phases.total_ns and sweep_notices.uses_jax(used.values())
            self._rebound |= {name for name, value in bound.items() if self._names.get(name) is not value}
        else:
            point.hint = self._hint(timed.error, deleted, result)
        result.points.append(point)
        self._settle(result, point, timed)

    def _settle(self, result: SweepResult, point: Point, timed: TimedResult) -> None:
        """Let go of what the point made, and decide whether the sweep goes on."""
        error, timed.error, timed.value = timed.error, None, None
        repeats = timed.repeats
        if repeats is not None and repeats.error is not None:
            if _ends_all(repeats.error):
                point.ending = Ending.INTERRUPTED if repeats.interrupted else Ending.FAILED
                error = repeats.error
            elif not repeats.samples and is_out_of_memory(repeats.error):
                point.ending = Ending.OUT_OF_MEMORY
        if error is None:
            return
        if _ends_all(error):
            result.error = error
            return
        if point.ending is Ending.FAILED:
            self._failed(point.label(result.names), error)
        traceback.clear_frames(error.__traceback__)  # whose names hold arrays
        if self._first_error is None:
            self._first_error = error
        del error
        gc.collect()

    def _count_items(self, label: str, bound: Mapping[str, Any], items: list[float]) -> None:
        """Evaluate the rate's expression after a first run, with the names as they were bound for it."""
        if self._rate is None:
            return
        try:
            items.append(self._rate.items({**self._names, **bound}))
        except Exception as error:  # noqa: BLE001 - the user's expression raises anything
            told = (
                str(error)[:200]
                if isinstance(error, NoItems)
                else f"{type(error).__name__}: {str(error)[:200]}"
            )
            self._unrated.setdefault(told, []).append(label)

    def _hint(self, error: BaseException, deleted: Sequence[str], result: SweepResult) -> str:
        """Say of what was deleted before a value ran, and missed in it, where it went."""
        last = result.points[-1] if result.points else None
        missed = [name for name in holders_of_deleted(self._body.used()) if name in deleted]
        own = last is not None and last.ending is not Ending.OK and not last.hint  # it fails by itself
        if not missed or own or "deleted" not in str(error):
            return ""
        when = f"at {last.label(result.names)}" if last is not None else "before the sweep"
        first = next((point for point in result.points if point.hint), None)
        if first is not None:
            return first.hint
        were, them = ("was", "it") if len(missed) == 1 else ("were", "them")
        return (
            f"{joined(missed)} {were} donated or deleted {when}, and every value uses {them}: make {them} "
            "anew in the cell, or assign what comes back to the same name (x = step(x))."
        )


def _ends_all(error: BaseException) -> bool:
    """Tell whether an error is no fault of a value: an interrupt, an exit, a cancellation."""
    return not isinstance(error, Exception)


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
