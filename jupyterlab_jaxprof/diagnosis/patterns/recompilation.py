"""Recompilation between steps: a function compiled again, since something about its arguments changed."""

from __future__ import annotations

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import united

from ..analysis import Analysis
from ..compiles import LAMBDA, Compiled
from ..finding import Finding, Level
from ..thresholds import LEAST_NOTE_SHARE, PROBLEM_SHARE
from ..units import count, milliseconds, names, percent

ID = "recompilation"


def find(analysis: Analysis) -> list[Finding]:
    """Tell which functions were compiled again, how often, and what it cost.

    Where that is told by a name alone, it is a note that says so.
    """
    again = [one for one in analysis.compiled if len(one.again)]
    certain = [one for one in again if one.certain]
    return _found(analysis, certain) or _possible(analysis, [one for one in again if not one.certain])


def _found(analysis: Analysis, again: list[Compiled]) -> list[Finding]:
    time = united([one.again_time for one in again])
    share = analysis.share(time.total_ns)
    if not again or share < LEAST_NOTE_SHARE:
        return []
    again.sort(key=lambda one: -one.again_time.total_ns)
    total = sum(len(one.again) for one in again)
    functions = [one.function or "a function" for one in again]
    between = " between steps" if analysis.steps is not None else ""
    return [
        Finding(
            id=ID,
            title=f"{names(functions, 2)} {'was' if len(functions) == 1 else 'were'} compiled again "
            f"{'once' if total == 1 else count(total, 'time')}{between}: {milliseconds(time.total_ns)}, "
            f"{percent(share)} of the time",
            level=Level.PROBLEM if share >= PROBLEM_SHARE else Level.NOTE,
            lost_ms=time.total_ns / 1e6,
            share=share,
            evidence=[_evidence(analysis, one) for one in again[:5]],
            ranges=analysis.longest(time, "compiling again"),
            meaning="A compiled program is for one function object and one set of shapes, types and static "
            "arguments. Each new one is traced and compiled anew, and the step waits meanwhile.",
            next=_advice(functions[0], again[0], analysis),
        )
    ]


def _possible(analysis: Analysis, again: list[Compiled]) -> list[Finding]:
    """What the trace tells by a name alone: it may as well be another function's first call."""
    time = united([one.again_time for one in again])
    share = analysis.share(time.total_ns)
    if not again or share < LEAST_NOTE_SHARE:
        return []
    functions = [one.function or "a function" for one in again]
    return [
        Finding(
            id=ID,
            title=f"{names(functions, 2)} {'was' if len(functions) == 1 else 'were'} compiled in a later "
            "step: again, or for the first time as another function of that name "
            f"({milliseconds(time.total_ns)}, {percent(share)} of the time)",
            level=Level.NOTE,
            lost_ms=time.total_ns / 1e6,
            share=share,
            evidence=[_evidence(analysis, one) for one in again[:5]],
            ranges=analysis.longest(time, "compiling in a later step"),
            meaning="The trace tells functions by their names only, and a function of this name had run "
            "before. If it is the same one, something about its arguments changed; if it is another one, "
            "this is its first call, which is paid once.",
            next=[
                "`%%jaxtime` tells which of the two it is, and what changed.",
                "Give functions that are jitted names of their own (`def` rather than `lambda`): then traces "
                "tell them apart.",
            ],
        )
    ]


def _evidence(analysis: Analysis, one: Compiled) -> str:
    function = f"`{one.function or 'a function'}`"
    each = milliseconds(one.again_time.total_ns / len(one.again))
    if len(one.again) == 1:
        text = f"{function} was compiled once after it had been compiled or had run, {each}"
    else:
        text = f"{function}: {len(one.again)} compiles after it had been compiled or had run, {each} each"
    if analysis.steps is None:
        return text + "."
    numbers = [str(analysis.steps.number[step]) for step in np.unique(one.steps)]
    listed = ", ".join(numbers[:8]) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    text = f"{text}, in step{'s' if len(numbers) > 1 else ''} {listed}."
    if one.every_call:
        return text + " Every call of that name compiled: its arguments differ each time, or each is a new "
        "function."
    if len(one.again) == 1 and one.certain:
        return text + " That call took the place of a usual one, so it is hardly another function's first "
        "call."
    return text


def _advice(function: str, one: Compiled, analysis: Analysis) -> list[str]:
    changes = [
        f"See what changes: `%%jaxtime` tells for each compile of `{function}` what about its arguments is "
        "new; `jax.config.update('jax_log_compiles', True)` logs their shapes.",
    ]
    advice = [
        "Pad or bucket inputs to a few fixed shapes, and drop or pad the last, smaller batch.",
        "Don't pass a Python number that changes as a static argument (`static_argnums`), and don't make "
        "`jax.jit(...)` or a `lambda` inside the loop: each new function object is compiled anew.",
    ]
    if len(one.again) == 1:
        second = analysis.steps is not None and int(one.steps[0]) == 1
        advice = [
            ("It happened once, in the second step: " if second else "It happened once: ")
            + "the first results often differ from the first arguments in type (weak types: a Python number "
            "where an array comes back), sharding or placement. Make the first arguments like them, for "
            "instance `jnp.asarray(x, dtype)` and `jax.device_put(x, sharding)`.",
            advice[0],
        ]
    elif one.function == LAMBDA:
        advice.reverse()
    return changes + advice
