"""What can be measured: the body of a cell, or a function with its arguments. Both run in the same way."""

from __future__ import annotations

import gc
import inspect
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol

from jupyterlab_jaxprof.cell import Barrier, Cell, Run
from jupyterlab_jaxprof.timing.holders import enclosed
from jupyterlab_jaxprof.timing.lines import all_codes
from jupyterlab_jaxprof.timing.spans import Span, covered_ns, within


class Body(Protocol):
    """Something that can be run, and run again."""

    async def run(self, loops: int = 1) -> Run:
        """Run it `loops` times in a row, and wait for all that it enqueued; never raises what it raises."""
        ...

    @property
    def filename(self) -> str | None:
        """The file whose lines are the user's; None when any that is not a library's is."""
        ...

    @property
    def codes(self) -> Sequence[CodeType]:
        """Its code, as far as it is Python."""
        ...

    def used(self) -> Mapping[str, Any]:
        """The values that it uses now, by the names under which its code or its caller has them."""
        ...


class CellBody:
    """The body of a cell."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    async def run(self, loops: int = 1) -> Run:
        """Run the cell's body in the user's namespace."""
        return await self._cell.run(loops)

    @property
    def filename(self) -> str | None:
        """The cell's own."""
        return self._cell.filename

    @property
    def codes(self) -> Sequence[CodeType]:
        """The body's code."""
        return self._cell.codes

    def used(self) -> Mapping[str, Any]:
        """The user's names that the body uses."""
        names = self._cell.names
        return {name: names[name] for name in names_in(self.codes) if name in names}


class FunctionBody:
    """A function and its arguments."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function.__name__} is a coroutine function: a call only creates its coroutine. Time a "
                "function that is not async, or use %%jaxtime on a cell that awaits it."
            )
        self._function = function
        self._args = args
        self._kwargs = dict(kwargs)

    async def run(self, loops: int = 1) -> Run:
        """Call the function; the last call's value is the run's."""
        clock = Clock()
        run = clock.start()
        try:
            run.value = self._call(loops)
        except BaseException as error:  # noqa: BLE001 - whatever the function raises is its own; kept for the caller
            clock.stop(run, error)
        else:
            clock.stop(run)
        return run

    def _call(self, loops: int) -> object:
        function, args, kwargs = self._function, self._args, self._kwargs
        value: object = None
        for _ in itertools.repeat(None, loops):
            value = function(*args, **kwargs)
        return value

    @property
    def filename(self) -> str | None:
        """None: the function can lie in one file, and what it calls in another."""
        return None

    @property
    def codes(self) -> Sequence[CodeType]:
        """The function's code; none when it is not a Python function."""
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        return () if code is None else (code,)

    def used(self) -> Mapping[str, Any]:
        """The function by its name, its arguments, and the names of its surroundings that its code uses."""
        function = inspect.unwrap(self._function)
        used: dict[str, Any] = {}
        if inspect.isfunction(function):
            names = function.__globals__
            used |= {name: names[name] for name in names_in(self.codes) if name in names} | enclosed(function)
        used |= {f"argument {number}": value for number, value in enumerate(self._args)}
        return used | self._kwargs | {getattr(function, "__name__", "the function"): self._function}


def names_in(codes: Sequence[CodeType]) -> set[str]:
    """Give the global names that code uses, in the functions defined in it as well."""
    return {name for code in all_codes(codes) for name in code.co_names}


def holders_of_deleted(values: Mapping[str, Any]) -> list[str]:
    """Give the names of the values in which an array lies that was deleted or donated."""
    import jax

    def holds(value: Any) -> bool:
        try:
            leaves = jax.tree.leaves(value)
        except Exception:  # noqa: BLE001 - a user's own pytree class, which need not flatten
            return False
        return any(isinstance(leaf, jax.Array) and _is_deleted(leaf) for leaf in leaves)

    return sorted(name for name, value in values.items() if holds(value))


def _is_deleted(array: Any) -> bool:
    is_deleted = getattr(array, "is_deleted", None)  # tracers have none
    return is_deleted is not None and bool(is_deleted())


class Clock:
    """Times one stretch of work on the devices: from an idle device to the end of all that was enqueued."""

    def __init__(self) -> None:
        self._barrier = Barrier()

    def start(self) -> Run:
        """Wait for what was left running, and start: the wait has warmed the path to the device."""
        notices = self._barrier.drain()
        now_ns = time.perf_counter_ns()
        return Run(None, None, now_ns, now_ns, now_ns, interrupted=False, notices=notices)

    def stop(self, run: Run, error: BaseException | None = None) -> None:
        """Take the time of return, wait for the devices, and take the time again."""
        run.returned_ns = run.done_ns = time.perf_counter_ns()
        try:
            if not isinstance(error, KeyboardInterrupt):
                run.done_ns = self._barrier.wait()
        except BaseException as late:  # noqa: BLE001 - a callback's error, or an interrupt of the wait
            run.done_ns = time.perf_counter_ns()
            error = late if error is None or isinstance(late, KeyboardInterrupt) else error
        if error is not None:
            run.error, run.value = error, None
            run.interrupted = isinstance(error, KeyboardInterrupt)


class GcPauses:
    """When Python's garbage collector stopped the work between `with` and its end.

    The collector stays on: it is what frees the device memory of arrays in reference cycles.
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._began_ns = 0

    def __enter__(self) -> GcPauses:
        gc.callbacks.append(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._on_event)

    def in_run_ns(self, run: Run) -> int:
        """Give how much of a run they took: what fell into the waits around it is no part of it."""
        return covered_ns(within(self._spans, (run.started_ns, run.done_ns)))

    def _on_event(self, phase: str, info: Mapping[str, int]) -> None:
        now_ns = time.perf_counter_ns()
        if phase == "start":
            self._began_ns = now_ns
        elif self._began_ns:
            self._spans.append((self._began_ns, now_ns))
            self._began_ns = 0
