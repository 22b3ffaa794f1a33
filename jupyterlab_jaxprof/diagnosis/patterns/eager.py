"""Many small operations dispatched one by one from Python, instead of one compiled program."""

from __future__ import annotations

import numpy as np

from ..analysis import Analysis
from ..compiles import function_name
from ..finding import Finding
from ..gaps import Cause, who
from ..thresholds import EAGER_IN_WINDOW, EAGER_KINDS, EAGER_PER_STEP
from ..units import count, microseconds, milliseconds, names, percent

ID = "eager-dispatch"


def find(analysis: Analysis) -> list[Finding]:
    """Tell how many single operations Python dispatches, and what the device waits for them."""
    programs, steps = analysis.programs, analysis.step_count
    if not is_many(analysis):
        return []
    eager, runs = np.flatnonzero(programs.eager), eager_runs(analysis)
    lost_ns = analysis.idle_ns(Cause.EAGER)
    level = analysis.level(lost_ns)
    if level is None:
        return []
    often = eager[np.argsort(-programs.runs[eager], kind="stable")]
    functions = list(
        dict.fromkeys(function_name(analysis.timeline.text(int(programs.module[i]))) for i in often)
    )
    many = count(runs / steps, "operation") + " a step" if steps else count(runs, "operation")
    each = float(programs.device_ns[eager].sum()) / max(float(programs.runs[eager].sum()), 1.0)
    around, is_function = _around(analysis)
    marked = f"`{around}`" if is_function else f"what `{around}` marks"
    what = marked if around else "the function that does this"
    return [
        Finding(
            id=ID,
            title=f"{many[0].upper()}{many[1:]} are dispatched one by one from Python "
            f"({names(functions, 3)}): {percent(analysis.share(lost_ns))} of the time",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[
                f"{count(runs, 'program')} of one operation each ran, {microseconds(each)} of device time "
                f"each; between them the device waited {milliseconds(lost_ns)} "
                f"({microseconds(lost_ns / max(runs, 1))} each).",
                *([f"They are dispatched in `{around}`."] if around else []),
            ],
            ranges=analysis.longest(analysis.idle[0].of(Cause.EAGER), "waiting for the next operation"),
            meaning="Outside `jax.jit` each operation is a program of its own, and Python needs tens of "
            "microseconds to dispatch it: far longer than the device needs to run it.",
            next=[
                f"Put {what} under `jax.jit`: XLA "
                "fuses such operations into a few kernels with one dispatch.",
                "A Python loop inside becomes `jax.lax.scan` or `jax.lax.fori_loop` where it is long; an "
                "optimizer's update over many parameters belongs into the same `jax.jit` as the gradients.",
            ],
        )
    ]


def eager_runs(analysis: Analysis) -> float:
    """How many programs of a single operation ran, on one device."""
    programs = analysis.programs
    return float(programs.runs[programs.eager].sum()) / max(len(analysis.devices), 1)


def is_many(analysis: Analysis) -> bool:
    """Whether they are many; a few belong to any step, and are part of what its dispatch costs.

    Without marked steps, a larger program that runs among them stands for the step; without one there must
    be several kinds of them, since one alone may be the step itself.
    """
    programs, runs, steps = analysis.programs, eager_runs(analysis), analysis.step_count
    if steps:
        return runs / steps >= EAGER_PER_STEP
    larger = programs.runs[~programs.eager]
    if len(larger):
        return runs >= EAGER_IN_WINDOW and runs / float(larger.max()) >= EAGER_PER_STEP
    kinds = len(np.unique(programs.module[programs.eager]))
    return runs >= EAGER_IN_WINDOW and kinds >= EAGER_KINDS


def _around(analysis: Analysis) -> tuple[str, bool]:
    """The user's name for what dispatches them, and whether it is a function's.

    That is an annotation, a function of the Python tracer, or the step.
    """
    host = analysis.hosts[analysis.devices[0].process]
    pieces = analysis.idle[0].of(Cause.EAGER)
    for rows, are_functions in ((host.annotations, False), (host.frames, True)):
        found = who(analysis.timeline, rows, pieces, at_least=0.9)
        if found and found[0][1] >= 0.7 * pieces.total_ns:
            name = found[0][0].rsplit(" ", 1)[-1] if are_functions else found[0][0]
            if not name.startswith("<"):  # a cell or a module has no function to put under jit
                return name, are_functions
    return (analysis.steps.name if analysis.steps is not None else ""), False
