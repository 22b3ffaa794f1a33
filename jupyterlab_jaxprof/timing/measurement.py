"""One measurement: a first run, with all that happened in it, then the repeats that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from jupyterlab_jaxprof.cell import Barrier
from jupyterlab_jaxprof.timing.bodies import Body, GcPauses
from jupyterlab_jaxprof.timing.compiles import Recorder, phases
from jupyterlab_jaxprof.timing.memory import MemoryWatch
from jupyterlab_jaxprof.timing.places import Places
from jupyterlab_jaxprof.timing.repeats import Plan, repeat
from jupyterlab_jaxprof.timing.result import TimedResult
from jupyterlab_jaxprof.timing.transfers import TransferRecorder

ONCE = Plan()


async def measure(
    body: Body,
    name: str,
    *,
    plan: Plan = ONCE,
    transfers: bool = False,
    memory: bool = False,
    names: Mapping[str, Any] | None = None,
) -> TimedResult:
    """Run a body once, and again as planned. What the body raises is the result's `error`.

    `transfers` follows reads and writes in the first run, `memory` compares the devices' memory before and
    after it; `names` is the namespace in which the holders of arrays are looked for.
    """
    Barrier()  # its fences are compiled before anything is recorded
    places = Places(body.filename)
    watch = MemoryWatch() if memory else None
    moved = TransferRecorder(places, body.codes) if transfers else None
    with Recorder(places) as recorder:
        with ExitStack() as stack:
            if moved is not None:
                stack.enter_context(moved)
            pauses = stack.enter_context(GcPauses())
            run = await body.run()
        compiled = recorder.between(run.started_ns, run.done_ns)
        spent = phases(compiled, run.started_ns, run.done_ns)
        result = TimedResult.of(name, run, pauses.in_run_ns(run), compiled, spent)
        if moved is not None:
            result.transfers = moved.transfers
            result.notices += moved.notices
        if watch is not None:
            result.memory = watch.report(names or {}, compiled, body.used())
        if plan.asked and run.error is None:
            result.repeats = await repeat(body, plan, recorder)
            result.compiles = recorder.compiles
        result.notices += recorder.notices()
    return result
