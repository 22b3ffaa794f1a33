"""Many tiny kernels inside one compiled program, and programs whose kernels can't be launched fast enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..analysis import Analysis
from ..compiles import function_name
from ..finding import Finding, Level, Range
from ..gaps import Cause
from ..programs import place_of
from ..thresholds import LOOP_REPEATS, MANY_OPS, TINY_KERNEL_NS
from ..units import count, microseconds, milliseconds, percent

TINY = "tiny-kernels"
LAUNCH = "launch-bound"


def find(analysis: Analysis) -> list[Finding]:
    """Tell which program's kernels the device waits for, told apart by how many and how small they are."""
    lost_ns = analysis.idle_ns(Cause.LAUNCH, Cause.KERNELS)
    level = analysis.level(lost_ns)
    if level is not Level.PROBLEM or not len(analysis.programs):
        return []
    worst = int(np.argmax(_lost_by_program(analysis)))
    programs = analysis.programs
    per_run = float(programs.ops_per_run[worst])
    each_ns = float(programs.device_ns[worst]) / max(int(programs.ops[worst]), 1)
    module = analysis.timeline.text(int(programs.module[worst]))
    function = function_name(module)
    evidence = [
        f"One run of `{module}` has {count(per_run, 'kernel')} (and copies) of {microseconds(each_ns)} on "
        f"average; it ran {count(int(programs.runs[worst]), 'time')}.",
        f"Between the kernels of one program the device rested {milliseconds(lost_ns)}: "
        f"{milliseconds(analysis.idle_ns(Cause.LAUNCH))} while the host launched the next, "
        f"{milliseconds(analysis.idle_ns(Cause.KERNELS))} in pauses of the device's own.",
        *_busiest(analysis, worst),
    ]
    ranges = analysis.longest(analysis.idle[0].of(Cause.LAUNCH, Cause.KERNELS), "between kernels")
    if per_run >= MANY_OPS and each_ns <= TINY_KERNEL_NS:
        return [_tiny(analysis, worst, function, per_run, each_ns, lost_ns, level, evidence, ranges)]
    return [
        Finding(
            id=LAUNCH,
            title=f"`{function}` is bound by launching: the device waits between its kernels "
            f"{percent(analysis.share(lost_ns))} of the time",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=evidence,
            ranges=ranges,
            meaning="The host launches the kernels of a compiled program one after the other, or in "
            "several CUDA graphs, and does so more slowly than the device runs them.",
            next=[
                "Give each kernel more to do: a larger batch or wider layers.",
                "Let XLA capture more of the program in CUDA graphs: "
                "`XLA_FLAGS=--xla_gpu_enable_command_buffer="
                "FUSION,CUBLAS,CUBLASLT,CUDNN,COLLECTIVES,CUSTOM_CALL` (before JAX starts); callbacks and "
                "dynamic shapes break graphs up.",
                "Run several steps in one program with `jax.lax.scan`.",
            ],
        )
    ]


def _tiny(
    analysis: Analysis,
    worst: int,
    function: str,
    per_run: float,
    each_ns: float,
    lost_ns: float,
    level: Level,
    evidence: list[str],
    ranges: list[Range],
) -> Finding:
    repeats = int(analysis.programs.repeats[worst])
    loop = repeats >= LOOP_REPEATS
    body = f", most of them {count(repeats, 'time')} over in a loop" if loop else ""
    return Finding(
        id=TINY,
        title=f"`{function}` is {count(per_run, 'tiny kernel')} in one compiled program{body}: the device "
        f"rests between them {percent(analysis.share(lost_ns))} of the time",
        level=level,
        lost_ms=lost_ns / 1e6,
        share=analysis.share(lost_ns),
        evidence=evidence,
        ranges=ranges,
        meaning=f"It is compiled already, so `jax.jit` won't help: kernels of {microseconds(each_ns)} take "
        "less time than starting them. "
        + (
            "Each pass of a `lax.scan`, `fori_loop` or `while_loop` launches its kernels anew."
            if loop
            else "XLA could not fuse the program into fewer, larger kernels."
        ),
        next=[
            *(
                [
                    "Do more in each pass: `jax.lax.scan(..., unroll=8)` makes one kernel of several "
                    "passes, and what doesn't depend on the pass before belongs outside of the loop, as "
                    "one large operation.",
                    "Loop over something shorter, or use `jax.lax.associative_scan` where the operation "
                    "allows it.",
                ]
                if loop
                else [
                    "Merge small operations: stack parameters of equal shape and use one operation for all "
                    "(`jax.vmap`), rather than a Python loop over them inside `jax.jit`."
                ]
            ),
            "Batch: run many independent sequences or examples at once with `jax.vmap`; the kernels stay "
            "as many and each does more.",
        ],
    )


def _lost_by_program(analysis: Analysis) -> NDArray[np.float64]:
    """How long devices rested before operations of each program, for these causes."""
    programs, ops = analysis.programs, analysis.timeline.ops
    lost = np.zeros(len(programs))
    for idle in analysis.idle:
        pieces = idle.of(Cause.LAUNCH, Cause.KERNELS)
        rows = idle.device.rows
        if not len(pieces):
            continue
        after = np.minimum(np.searchsorted(ops.start_ns[rows], pieces.end_ns, side="left"), len(rows) - 1)
        program = programs.of_op[rows[after]]
        known = program >= 0
        lost += np.bincount(program[known], weights=pieces.lengths_ns[known], minlength=len(programs))
    return lost


def _busiest(analysis: Analysis, program: int) -> list[str]:
    """The operations that come most often, with the user's own names for them."""
    timeline, ops = analysis.timeline, analysis.timeline.ops
    rows = np.flatnonzero(analysis.programs.of_op == program)
    counts = np.bincount(ops.hlo_op[rows])
    counts[0] = 0
    most = [int(number) for number in np.argsort(-counts, kind="stable")[:3] if counts[number]]
    if not most:
        return []
    parts: list[str] = []
    for number in most:
        row = rows[np.flatnonzero(ops.hlo_op[rows] == number)[0]]
        known = place_of(timeline, int(row))
        parts.append(f"`{timeline.text(number)}` x {counts[number]:,}" + (f" ({known})" if known else ""))
    return [f"Most often: {'; '.join(parts)}."]
