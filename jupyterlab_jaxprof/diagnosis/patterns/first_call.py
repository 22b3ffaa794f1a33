"""Compilation in the first step: paid once, and not to be mistaken for a slow step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import united

from ..analysis import Analysis
from ..compiles import Compiled, from_cache
from ..finding import Finding, Level
from ..thresholds import NOTE_SHARE, PROBLEM_SHARE
from ..units import count, milliseconds, names, percent

ID = "first-call-compile"


def find(analysis: Analysis) -> list[Finding]:
    """Tell what compiling took that was for the first time."""
    compiled = analysis.compiled
    first = [one for one in compiled if len(one.first)]
    time = analysis.compiling - united([one.again_time for one in compiled])
    share = analysis.share(time.total_ns)
    if not first or share < NOTE_SHARE:
        return []
    functions = _longest_first(analysis, first)
    cached = from_cache(analysis.timeline, np.concatenate([one.first for one in first]))
    several = len(functions) > 1
    calls, were = ("first calls", "were") if several else ("first call", "was")
    how = "took programs from the persistent cache" if cached.all() else f"{were} compiled"
    return [
        Finding(
            id=ID,
            title=f"The {calls} of {names(functions, 2)} {how} in {_where(analysis, first)}: "
            f"{milliseconds(time.total_ns)}, {percent(share)} of the time",
            level=Level.PROBLEM if share >= PROBLEM_SHARE else Level.NOTE,
            lost_ms=time.total_ns / 1e6,
            share=share,
            evidence=[
                *_what(first, cached, steps=analysis.steps is not None),
                *_step_evidence(analysis, all_cached=bool(cached.all())),
            ],
            ranges=analysis.longest(time, "taking programs from the cache" if cached.all() else "compiling"),
            meaning="JAX traces, lowers and compiles a function when it is first called with some shapes "
            "and types. It is paid once a process; later calls reuse the program. Times of this capture "
            "that include it say little about a long run."
            if not cached.all()
            else "The persistent cache did its part: nothing was compiled. Tracing and lowering a function "
            "and reading its program are still paid once a process, and times of this capture include "
            "them.",
            next=[
                f"Call {names(functions, len(functions) if several and len(functions) <= 3 else 2)} once "
                "before the part that you trace, and wait for the result with `jax.block_until_ready`.",
                *_cache_advice(cached),
            ],
        )
    ]


def _cache_advice(cached: NDArray[np.bool_]) -> list[str]:
    if not cached.any():
        return [
            "Keep compiled programs between processes: "
            '`jax.config.update("jax_compilation_cache_dir", "/path/to/cache")`.'
        ]
    if cached.all():
        return []
    return [
        "The persistent cache is on, and these programs were not in it: they are new, were compiled "
        "faster than `jax_persistent_cache_min_compile_time_secs`, or differ in shapes, flags or versions."
    ]


def _what(first: list[Compiled], cached: NDArray[np.bool_], *, steps: bool) -> list[str]:
    """What was made, and how it is known to be for the first time."""
    besides = [one for one in first if len(one.besides)]
    new = sum(len(one.first) - len(one.besides) for one in first)
    made = "read from the persistent cache" if cached.all() else "compiled for the first time"
    lines: list[str] = []
    if new:
        few = (
            "this function had"
            if sum(len(one.first) > len(one.besides) for one in first) == 1
            else ("none of these functions had")
        )
        not_run = "not run before in this trace" if few.startswith("this") else "run before in this trace"
        kind = (
            "so it is a first call, no recompilation"
            if new == 1
            else ("so they are first calls, not recompilations")
        )
        lines.append(f"{count(new, 'program')} {made}; {few} {not_run}, {kind}.")
    if cached.any() and not cached.all():
        lines.append(f"{np.count_nonzero(cached)} of them came from the persistent cache.")
    return lines + [_besides(one, steps=steps) for one in besides[:3]]


def _besides(one: Compiled, *, steps: bool) -> str:
    function = f"`{one.function or 'a function'}`"
    if not steps:
        more = "once" if len(one.besides) == 1 else count(len(one.besides), "time")
        return (
            f"{function} was compiled {more} more: for other shapes or types, or "
            "as other functions of that name (`%%jaxtime` tells which)."
        )
    return (
        f"{function} had run before by that name, but this call came besides its usual ones: it is another "
        "function of that name, or the same one called with other shapes as well (`%%jaxtime` tells which)."
    )


def _longest_first(analysis: Analysis, first: list[Compiled]) -> list[str]:
    table = analysis.timeline.compiles
    longest = sorted(first, key=lambda one: -float(table.duration_ns[one.first].sum()))
    return [one.function or "a function" for one in longest]


def _where(analysis: Analysis, first: list[Compiled]) -> str:
    if analysis.steps is None:
        return "this trace"
    table = analysis.timeline.compiles
    starts = np.concatenate([table.start_ns[one.first] for one in first])
    steps = np.unique(np.searchsorted(analysis.steps.start_ns, starts, side="right") - 1)
    if len(steps) == 1:
        return "the first step" if steps[0] <= 0 else f"step {analysis.steps.number[steps[0]]}"
    return f"{len(steps)} of the steps"


def _step_evidence(analysis: Analysis, *, all_cached: bool) -> list[str]:
    """The step with the most of it, by all that it compiled: the same number as its row among the slowest."""
    steps = analysis.steps
    if steps is None or len(steps) < 2:
        return []
    inside = analysis.compiling.covered(steps.start_ns, steps.end_ns)
    made = np.concatenate([one.first for one in analysis.compiled])
    first = np.searchsorted(steps.start_ns, analysis.timeline.compiles.start_ns[made], side="right") - 1
    index = max(np.unique(first).tolist(), key=lambda step: inside[step])
    if index < 0 or not inside[index]:
        return []
    clean = inside == 0
    what = "tracing, lowering and reading" if all_cached else "compiling"
    typical = (
        f"; a step without compiling takes {milliseconds(float(np.median(steps.duration_ns[clean])))}"
        if clean.any()
        else ""
    )
    return [
        f"Step {steps.number[index]} took {milliseconds(float(steps.duration_ns[index]))}, of which "
        f"{milliseconds(float(inside[index]))} {what}{typical}."
    ]
