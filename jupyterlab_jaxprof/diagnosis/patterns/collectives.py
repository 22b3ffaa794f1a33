"""Collectives that no computing hides: devices that only talk to each other."""

from __future__ import annotations

import numpy as np

from ..analysis import Analysis
from ..finding import Finding, Level
from ..thresholds import TINY_COLLECTIVE_BYTES
from ..units import milliseconds, percent, size

ID = "exposed-collectives"


def find(analysis: Analysis) -> list[Finding]:
    """Tell how long the devices talk to each other while they compute nothing."""
    total_ns = analysis.mean(lambda use: use.collective.total_ns)
    lost_ns = analysis.mean(lambda use: use.exposed_collective.total_ns)
    level = analysis.level(lost_ns)
    if level is None:
        return []
    if _is_waiting(analysis):
        return [_waiting(analysis, lost_ns, level)]
    steps = max(analysis.step_count, 1)
    worst = max(analysis.devices, key=lambda use: use.exposed_collective.total_ns)
    small = analysis.mean(lambda use: use.compute.total_ns) < total_ns
    return [
        Finding(
            id=ID,
            title=f"Collectives are not hidden by computing: {percent(lost_ns / total_ns)} of their time "
            f"is exposed, {percent(analysis.share(lost_ns))} of the time",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[
                f"Each device talks {milliseconds(total_ns)} to others, {milliseconds(lost_ns)} of it while "
                f"it computes nothing ({milliseconds(lost_ns / steps)} a step, mean)."
                if analysis.step_count
                else f"Each device talks {milliseconds(total_ns)} to others, {milliseconds(lost_ns)} of it "
                "while it computes nothing.",
                *_by_kind(analysis),
                *(
                    ["The devices talk longer than they compute: the batch on each device is too small."]
                    if small
                    else []
                ),
            ],
            ranges=analysis.longest(worst.exposed_collective, f"{worst.name} talks and computes nothing"),
            meaning="Gradients or parameters are exchanged between the devices, and nothing is left to "
            "compute meanwhile. It also holds the time in which a device waits for the others to arrive.",
            next=[
                "Give each device more to compute for the same exchange: a larger batch on each device, "
                "or gradient accumulation over several small batches.",
                "Let XLA overlap them: `XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true` (before "
                "JAX starts).",
                "Exchange less: gradients in bfloat16, or parameters sharded "
                "(`jax.sharding.NamedSharding`) so that each layer's exchange runs beside the next "
                "layer's computing.",
            ],
        )
    ]


def _is_waiting(analysis: Analysis) -> bool:
    """Whether most of the exposed time is of collectives too small to take it for the exchange itself."""
    table, ops = analysis.timeline.collectives, analysis.timeline.ops
    tiny_ns = exposed_ns = 0.0
    for use in analysis.devices:
        own = np.isin(table.op, use.rows)
        rows, sizes = table.op[own], table.size_bytes[own]
        alone = use.exposed_collective.covered(ops.start_ns[rows], ops.start_ns[rows] + ops.duration_ns[rows])
        tiny_ns += float(alone[(sizes > 0) & (sizes <= TINY_COLLECTIVE_BYTES)].sum())
        exposed_ns += float(alone.sum())
    return tiny_ns > 0.5 * exposed_ns


def _waiting(analysis: Analysis, lost_ns: float, level: Level) -> Finding:
    steps = analysis.step_count
    worst = max(analysis.devices, key=lambda use: use.exposed_collective.total_ns)
    longest = analysis.longest(worst.exposed_collective, f"{worst.name} waits for the others")
    most = max(longest, key=lambda one: one.end_ns - one.start_ns)
    each = [f"{use.name} {milliseconds(use.exposed_collective.total_ns)}" for use in analysis.devices[:8]]
    return Finding(
        id=ID,
        title=f"The devices wait for each other at small collectives: {percent(analysis.share(lost_ns))} of "
        "the time",
        level=level,
        lost_ms=lost_ns / 1e6,
        share=analysis.share(lost_ns),
        evidence=[
            *_by_kind(analysis),
            "So few bytes take microseconds: the rest is waiting until the last device has arrived.",
            f"Waited: {', '.join(each)}"
            + (f"; {milliseconds(lost_ns / steps)} a step (mean)." if steps else "."),
            f"The longest wait was {worst.name}'s, {milliseconds(most.end_ns - most.start_ns)} from "
            f"{most.start_ns / 1e6:.3f} ms on.",
        ],
        ranges=longest,
        meaning="All devices meet at a collective, and one that comes early waits. What it waits for is "
        "in the process that comes late: its host's work, a slower start, other load on its machine.",
        next=[
            "Look at what the process that waits least does before its steps: loading, logging, evaluation, "
            "compiling. Read the files of all processes together to see who waits for whom.",
            "Meet less often: sum metrics on each device and reduce them every some steps, and don't wait "
            "for each step's result on the host.",
        ],
    )


def _by_kind(analysis: Analysis) -> list[str]:
    """The kinds of collectives with their counts, sizes and times on all devices."""
    timeline, table = analysis.timeline, analysis.timeline.collectives
    rows = np.concatenate([use.rows for use in analysis.devices])
    inside = np.isin(table.op, rows)
    kinds, durations = table.kind[inside], timeline.ops.duration_ns[table.op[inside]]
    sizes = table.size_bytes[inside]
    parts: list[str] = []
    for kind in np.unique(kinds):
        own = kinds == kind
        moved = int(sizes[own].sum())
        name = timeline.text(int(kind)) or "collective"
        parts.append(
            f"{np.count_nonzero(own)} x `{name}`"
            + (f" of {size(moved / np.count_nonzero(own))}" if moved else "")
            + f", {milliseconds(float(durations[own].sum()))}"
        )
    return [f"On all devices together: {'; '.join(parts)}."] if parts else []
