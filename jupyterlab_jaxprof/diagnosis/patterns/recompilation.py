"""Recompilation between steps: a function compiled again, since something about its arguments changed."""

from __future__ import annotations

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import NONE

from ..analysis import Analysis
from ..compiles import Compiled
from ..finding import Finding, Level
from ..thresholds import FEWEST_STEPS, LEAST_NOTE_SHARE, PROBLEM_SHARE, RECOMPILING_SPREAD_SHARE
from ..units import count, milliseconds, names, percent

ID = "recompilation"


def find(analysis: Analysis) -> list[Finding]:
    """Tell which functions were compiled again, how often, and what it cost."""
    again = [one for one in analysis.compiled if len(one.again) and _certain(analysis, one)]
    if not again:
        return []
    time = NONE
    for one in again:
        time = time | one.again_time
    lost_ns = time.total_ns
    share = analysis.share(lost_ns)
    if share < LEAST_NOTE_SHARE:
        return []
    again.sort(key=lambda one: -one.again_time.total_ns)
    total = sum(len(one.again) for one in again)
    functions = [one.function or "a function" for one in again]
    return [
        Finding(
            id=ID,
            title=f"{names(functions, 2)} {'was' if len(functions) == 1 else 'were'} compiled again "
            f"{count(total, 'time')} between steps: {milliseconds(lost_ns)}, {percent(share)} of the time",
            level=Level.PROBLEM if share >= PROBLEM_SHARE else Level.NOTE,
            lost_ms=lost_ns / 1e6,
            share=share,
            evidence=[_evidence(analysis, one) for one in again[:5]],
            ranges=analysis.longest(time, "compiling again"),
            meaning="A compiled program is for one set of shapes, types and static arguments. Each new "
            "set is traced and compiled anew, and the device waits meanwhile.",
            next=_advice(functions[0], again[0], analysis),
        )
    ]


def _certain(analysis: Analysis, one: Compiled) -> bool:
    """Without steps, a function that is compiled for several shapes as a program starts is no recompilation:
    it must go on, over much of the window."""
    if analysis.steps is not None:
        return True
    starts = analysis.timeline.compiles.start_ns[one.again]
    spread = float(starts.max() - starts.min())
    return len(one.again) >= FEWEST_STEPS and spread >= RECOMPILING_SPREAD_SHARE * analysis.length_ns


def _evidence(analysis: Analysis, one: Compiled) -> str:
    each = one.again_time.total_ns / len(one.again)
    text = (
        f"`{one.function or 'a function'}`: {count(len(one.again), 'compile')} after it had been compiled "
        f"or had run, {milliseconds(each)} each"
    )
    if analysis.steps is None:
        return text + "."
    numbers = [str(analysis.steps.number[step]) for step in np.unique(one.steps)]
    listed = ", ".join(numbers[:8]) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"{text}, in step{'s' if len(numbers) > 1 else ''} {listed}."


def _advice(function: str, one: Compiled, analysis: Analysis) -> list[str]:
    advice = [
        "See what changes: `jax.config.update('jax_log_compiles', True)` logs the shapes of each compile "
        f"of `{function}`; `%%jaxtime` compares them.",
        "Pad or bucket inputs to a few fixed shapes, and drop or pad the last, smaller batch.",
        "Don't pass a Python number that changes as a static argument (`static_argnums`), and don't make "
        "`jax.jit(...)` or a `lambda` inside the loop: each new function object is compiled anew.",
    ]
    if analysis.steps is not None and len(one.again) == 1 and int(one.steps[0]) == 1:
        advice.insert(
            0,
            "It happened once, in the second step: the first step's results often differ from the first "
            "arguments in type (weak types), sharding or placement. Make the first arguments like them.",
        )
    return advice
