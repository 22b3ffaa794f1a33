"""Copies on the device and changes of layout: work that computes nothing."""

from __future__ import annotations

import re

import numpy as np

from jupyterlab_jaxprof.timeline.model import CopyKind, OpKind

from ..analysis import Analysis
from ..finding import Finding, Level
from ..thresholds import PROBLEM_SHARE
from ..units import count, milliseconds, percent

ID = "device-copies"
# XLA names a fusion after its root, and a kernel of one operation `wrapped_`
_MOVES = re.compile(
    r"^(wrapped_|loop_|input_)?(transpose|copy|concatenate|pad|reverse|slice|dynamic_(update_)?slice)(_fusion)?"
    r"([._]\d+)*$|^memcpy(32|128)"
)


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
            meaning="Transposes and copies read and write memory and compute nothing. XLA inserts them "
            "where an operation wants another layout than the one before gives, and where an argument "
            "can't be reused.",
            next=[
                "Keep one order of dimensions from end to end: the contracted and the feature dimension "
                "last (`NHWC` for convolutions), and let `einsum` or `dot_general` contract without a "
                "`transpose` before it.",
                "Donate arguments that are replaced: `jax.jit(step, donate_argnums=0)` updates them in "
                "place.",
                "Inside `jax.lax.scan`, carry only what changes: the whole carry may be copied in each pass.",
            ],
        )
    ]


def _worst(analysis: Analysis, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[str]:
    timeline, ops = analysis.timeline, analysis.timeline.ops
    totals = np.bincount(ops.name[rows], weights=ops.duration_ns[rows])
    lines: list[str] = []
    for number in np.argsort(-totals, kind="stable")[:3]:
        if totals[number] <= 0:
            break
        row = rows[np.flatnonzero(ops.name[rows] == number)[0]]
        where = ", ".join(
            text for text in (timeline.text(int(column[row])) for column in (ops.scope, ops.source)) if text
        )
        lines.append(
            f"`{timeline.text(int(number))}`: {milliseconds(float(totals[number]))}"
            + (f" ({where})" if where else "")
        )
    return lines
