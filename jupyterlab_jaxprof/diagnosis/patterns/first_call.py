"""Compilation in the first step: paid once, and not to be mistaken for a slow step."""

from __future__ import annotations

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import Intervals
from jupyterlab_jaxprof.timeline.model import Phase

from ..analysis import Analysis
from ..compiles import Compiled
from ..finding import Finding, Level
from ..thresholds import NOTE_SHARE, PROBLEM_SHARE
from ..units import count, milliseconds, names, percent

ID = "first-call-compile"


def find(analysis: Analysis) -> list[Finding]:
    """Tell what compiling took that was for the first time."""
    compiled = analysis.compiled
    again = Intervals(np.zeros(0), np.zeros(0))
    for one in compiled:
        again = again | one.again_time
    first = [one for one in compiled if len(one.first)]
    time = analysis.compiling - again
    lost_ns = time.total_ns
    share = analysis.share(lost_ns)
    if not first or share < NOTE_SHARE:
        return []
    programs = sum(len(one.first) for one in first)
    functions = _longest_first(analysis, first)
    where = _where(analysis, first)
    cached = _from_cache(analysis, first)
    several = len(functions) > 1
    calls, were = ("first calls", "were") if several else ("first call", "was")
    how = "took programs from the cache" if cached else f"{were} compiled"
    title = (
        f"The {calls} of {names(functions, 2)} {how} in {where}: {milliseconds(lost_ns)}, {percent(share)} "
        "of the time"
    )
    made = "read from the persistent cache" if cached else "compiled for the first time"
    evidence = [
        f"{count(programs, 'program')} {made}; none of these functions had run before in this trace, so "
        "they are first calls, not recompilations.",
        *_step_evidence(analysis, time),
    ]
    return [
        Finding(
            id=ID,
            title=title,
            level=Level.PROBLEM if share >= PROBLEM_SHARE else Level.NOTE,
            lost_ms=lost_ns / 1e6,
            share=share,
            evidence=evidence,
            ranges=analysis.longest(time, "compiling"),
            meaning="JAX traces, lowers and compiles a function when it is first called with some shapes "
            "and types. It is paid once a process; later calls reuse the program. Times of this capture "
            "that include it say little about a long run.",
            next=[
                f"Call {names(functions, 1)} once before the part that you trace, and wait for its result "
                "with `jax.block_until_ready`.",
                "Keep compiled programs between processes: "
                '`jax.config.update("jax_compilation_cache_dir", "/path/to/cache")`.',
            ],
        )
    ]


def _from_cache(analysis: Analysis, first: list[Compiled]) -> bool:
    """Whether all these programs were read from the persistent cache."""
    table = analysis.timeline.compiles
    read = table.take(table.phase == Phase.CACHE_READ)
    rows = np.concatenate([one.first for one in first])
    starts, ends = table.start_ns[rows], table.start_ns[rows] + table.duration_ns[rows]
    inside = np.searchsorted(read.start_ns, ends) - np.searchsorted(read.start_ns, starts)
    return bool(np.all((inside > 0) | (table.phase[rows] == Phase.CACHE_READ)))


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


def _step_evidence(analysis: Analysis, time: Intervals) -> list[str]:
    steps = analysis.steps
    if steps is None or len(steps) < 2:
        return []
    inside = time.covered(steps.start_ns, steps.end_ns)
    index = int(np.argmax(inside))
    clean = analysis.compiling.covered(steps.start_ns, steps.end_ns) == 0
    typical = (
        f"; a step without compiling takes {milliseconds(float(np.median(steps.duration_ns[clean])))}"
        if clean.any()
        else ""
    )
    return [
        f"Step {steps.number[index]} took {milliseconds(float(steps.duration_ns[index]))}, of which "
        f"{milliseconds(float(inside[index]))} compiling{typical}."
    ]
