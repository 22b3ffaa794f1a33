"""Timing without a notebook: a function and a context manager, with the numbers of the magics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from jupyterlab_jaxprof.cell import drive
from jupyterlab_jaxprof.timing.bodies import Clock, FunctionBody, GcPauses
from jupyterlab_jaxprof.timing.compiles import Recorder, phases
from jupyterlab_jaxprof.timing.measurement import ONCE, measure
from jupyterlab_jaxprof.timing.memory import MemoryWatch
from jupyterlab_jaxprof.timing.places import Places
from jupyterlab_jaxprof.timing.repeats import Plan
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.transfers import TransferRecorder


def time(
    function: Callable[..., Any],
    /,
    *args: Any,
    plan: Plan = ONCE,
    transfers: bool = False,
    memory: bool = False,
    **kwargs: Any,
) -> TimedResult:
    """Call `function(*args, **kwargs)` and tell what it took: tracing, compiling, running, all waited for.

    `plan` asks for repeats: `Plan(repeats=20)`, `Plan(seconds=1)`. Raises what the function raises. A
    function that has parameters called `plan`, `transfers` or `memory` is given them by `functools.partial`.
    """
    body = FunctionBody(function, args, kwargs)
    names = sys._getframe(1).f_globals  # pyright: ignore[reportPrivateUsage]
    result = drive(
        measure(
            body,
            str(getattr(function, "__name__", type(function).__name__)),
            plan=plan,
            transfers=transfers,
            memory=memory,
            names=names,
        )
    )
    assert isinstance(result, TimedResult)
    result.result()
    return result


class timer:
    """Times the statements in a `with` block, once; `with timer() as timed` gives it, `timed.result` tells.

    `result` is None until the block has ended. Where the block raises, the result tells so.
    """

    def __init__(self, name: str = "", *, transfers: bool = False, memory: bool = False) -> None:
        self.result: TimedResult | None = None
        self._name = name
        self._clock = Clock()
        places = Places()
        self._recorder = Recorder(places)
        self._transfers = TransferRecorder(places, ()) if transfers else None
        self._memory = memory
        self._watch: MemoryWatch | None = None
        self._stack = ExitStack()

    def __enter__(self) -> timer:
        self.result = None
        self._pauses = GcPauses()
        self._watch = MemoryWatch() if self._memory else None
        with ExitStack() as stack:
            stack.enter_context(self._recorder)
            if self._transfers is not None:
                stack.enter_context(self._transfers)
            stack.enter_context(self._pauses)
            self._run = self._clock.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        run = self._run
        self._clock.stop(run, error)
        self._stack.close()
        compiled = self._recorder.between(run.started_ns, run.done_ns)
        spent = phases(compiled, run.started_ns, run.done_ns)
        self.result = TimedResult.of(self._name, run, self._pauses.in_run_ns(run), compiled, spent)
        if self._transfers is not None:
            self.result.transfers = self._transfers.transfers
            self.result.notices += self._transfers.notices
        if self._watch is not None:
            names = sys._getframe(1).f_globals  # pyright: ignore[reportPrivateUsage]
            self.result.memory = self._watch.report(names, compiled, {})
        self.result.notices += self._recorder.notices()
        if run.error is not None and run.error is not error:
            raise run.error  # a callback's, which came to light when all was waited for
