"""Copies on the device and changes of layout: work that computes nothing."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.model import CopyKind, OpKind

from ..analysis import Analysis
from ..finding import Finding, Level
from ..programs import place_of
from ..thresholds import LOOP_REPEATS, PROBLEM_SHARE, SMALL_PART
from ..units import count, milliseconds, percent

ID = "device-copies"
# XLA names a fusion after its root, and a kernel of one operation `wrapped_`
_MOVES = re.compile(
    r"^(wrapped_|loop_|input_)?(transpose|copy|concatenate|pad|reverse|slice|dynamic_(update_)?slice)(_fusion)?"
    r"([._]\d+)*$|^memcpy(32|128)"
)


_BY_THEMSELVES = {"jit_copy", "jit_transpose", "jit_concatenate", "jit_swapaxes", "jit_moveaxis", "jit__pad"}
_WRITE = (
    "A buffer that grows or rolls by `jnp.concatenate` or `jnp.roll` is copied whole each time: keep one "
    "of fixed size and write into it, `x.at[i].set(row)` with an index that wraps around, inside "
    "`jax.jit(push, donate_argnums=0)`."
)
_TRANSPOSE = (
    "Keep one order of dimensions from end to end: the contracted and the feature dimension last (`NHWC` for "
    "convolutions), and let `einsum` or `dot_general` contract without a `transpose` before it."
)
_DONATE = "Donate arguments that are replaced: `jax.jit(step, donate_argnums=0)` updates them in place."
Rows = NDArray[np.intp]


def find(analysis: Analysis) -> list[Finding]:
    """Tell what share of the time devices only move data within their own memory."""
    timeline, ops = analysis.timeline, analysis.timeline.ops
    if not analysis.devices:
        return []
    rows = np.concatenate([use.rows for use in analysis.devices])
    moving = np.zeros(len(timeline.texts), dtype=np.bool_)
    for number in np.flatnonzero(np.bincount(ops.name[rows])).tolist():
        moving[number] = _MOVES.search(timeline.texts[number]) is not None
    rows = rows[
        moving[ops.name[rows]]
        | ((ops.kind[rows] == OpKind.COPY) & (ops.copy_kind[rows] == CopyKind.DEVICE_TO_DEVICE))
    ]
    lost_ns = float(ops.duration_ns[rows].sum()) / len(analysis.devices)
    share = analysis.share(lost_ns)
    if share < PROBLEM_SHARE:
        return []
    return [
        Finding(
            id=ID,
            title=f"Copies and changes of layout on the device take {percent(share)} of the time",
            level=Level.PROBLEM,
            lost_ms=lost_ns / 1e6,
            share=share,
            evidence=[
                f"{count(len(rows), 'operation')} that only move data, {milliseconds(lost_ns)} on each "
                "device.",
                *_worst(analysis, rows),
            ],
            meaning="Transposes, copies and concatenations read and write memory and compute nothing. "
            "Some stand in the program itself; others XLA inserts, where an operation wants another "
            "layout than the one before gives, and where an argument can't be reused.",
            next=_advice(analysis, rows),
        )
    ]


def _advice(analysis: Analysis, rows: Rows) -> list[str]:
    """What to do about the kinds of moving that take the time."""
    timeline, ops = analysis.timeline, analysis.timeline.ops
    totals = np.bincount(ops.name[rows], weights=ops.duration_ns[rows])
    by_kind: dict[str, float] = {}
    for number in np.flatnonzero(totals).tolist():
        found = _MOVES.search(timeline.texts[number])
        moves = (found[2] if found else None) or "copy"
        kind = moves if moves in ("transpose", "copy") else "write"
        by_kind[kind] = by_kind.get(kind, 0.0) + float(totals[number])
    modules = {timeline.text(int(number)) for number in np.unique(ops.module[rows])}
    copied = (
        "`jnp.copy(x)` and `jnp.array(x)` copy what is on the device already: JAX arrays can't be "
        "changed, so two names may share one."
    )
    advice = {"write": [_WRITE], "transpose": [_TRANSPOSE], "copy": [_DONATE]}
    if "jit_copy" in modules:
        advice["copy"].insert(0, copied)
    kinds = sorted(by_kind, key=lambda kind: -by_kind[kind])
    least = SMALL_PART * sum(by_kind.values())
    lines = [line for kind in kinds if by_kind[kind] >= least for line in advice[kind]]
    programs = analysis.programs.of_op[rows]
    if (analysis.programs.repeats[np.unique(programs[programs >= 0])] >= LOOP_REPEATS).any():
        lines.append(
            "Inside `jax.lax.scan`, carry only what changes: the whole carry may be copied in each pass."
        )
    if modules & _BY_THEMSELVES:
        lines.append(
            "Outside `jax.jit` each of these is a program of its own; inside, XLA can often do without it."
        )
    return lines


def _worst(analysis: Analysis, rows: Rows) -> list[str]:
    timeline, ops = analysis.timeline, analysis.timeline.ops
    totals = np.bincount(ops.name[rows], weights=ops.duration_ns[rows])
    lines: list[str] = []
    for number in np.argsort(-totals, kind="stable")[:3]:
        if totals[number] <= 0:
            break
        row = rows[np.flatnonzero(ops.name[rows] == number)[0]]
        where = place_of(timeline, int(row))
        lines.append(
            f"`{timeline.text(int(number))}`: {milliseconds(float(totals[number]))}"
            + (f" ({where})" if where else "")
        )
    return lines
