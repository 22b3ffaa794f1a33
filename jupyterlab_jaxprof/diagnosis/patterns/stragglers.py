"""Uneven devices: one computes longer, or arrives later at the collectives, and the others wait for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..analysis import Analysis
from ..finding import Finding
from ..thresholds import LAST_SHARE, UNEVEN_SHARE
from ..units import milliseconds, percent

ID = "straggler"


def find(analysis: Analysis) -> list[Finding]:
    """Tell which device holds the others up, where one does so again and again."""
    if len(analysis.devices) < 2 or not _same_programs(analysis):
        return []
    return _longer(analysis) or _later(analysis)


def _same_programs(analysis: Analysis) -> bool:
    """Whether the devices run the same programs: only then should they take equally long."""
    programs = analysis.programs
    modules = [frozenset(programs.module[programs.device == use.index].tolist()) for use in analysis.devices]
    return len(set(modules)) == 1 and bool(modules[0])


def _longer(analysis: Analysis) -> list[Finding]:
    computing = np.array([use.compute.total_ns for use in analysis.devices])
    slow, mean = int(np.argmax(computing)), float(computing.mean())
    others = float(np.delete(computing, slow).mean())
    lost_ns = float(computing[slow]) - mean
    level = analysis.level(lost_ns)
    if level is None or computing[slow] < (1 + UNEVEN_SHARE) * others:
        return []
    evidence = [
        f"{use.name}: {milliseconds(float(own))} of computing"
        for use, own in zip(analysis.devices[:8], computing, strict=False)
    ]
    name = analysis.devices[slow].name
    return [
        Finding(
            id=ID,
            title=f"{name} computes {percent(computing[slow] / others - 1)} longer than the others, which "
            + ("wait for it" if len(analysis.timeline.collectives) else "have nothing to do meanwhile"),
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[f"{'; '.join(evidence)}."],
            ranges=analysis.longest(analysis.devices[slow].compute, f"{name} computes"),
            meaning="The devices run the same program, so the one that takes longest sets the pace.",
            next=[
                "See whether it has more work (uneven shards, padding, longer sequences) and balance the "
                "batch.",
                "If the work is equal, look at the device: temperature, clocks and other processes on it "
                "(`nvidia-smi -q -d PERFORMANCE`).",
            ],
        )
    ]


def _later(analysis: Analysis) -> list[Finding]:
    """A device that comes last talks shortest: the others' collectives last until it is there.

    Durations, not times, since the clocks of two hosts may differ by more than a collective takes.
    """
    durations = _matched_durations(analysis)
    if durations is None:
        return []
    waits = durations - durations.min(axis=1, keepdims=True)
    mean_wait = waits.mean(axis=1)
    # Not the longest: at the first one, processes that were started apart wait for each other
    mean_wait[np.argmax(mean_wait)] = 0.0
    lost_ns = float(mean_wait.sum())
    last = np.bincount(np.argmin(durations, axis=1), mean_wait, durations.shape[1]) / max(lost_ns, 1.0)
    slow = int(np.argmax(last))
    level = analysis.level(lost_ns)
    if level != "problem" or last[slow] < LAST_SHARE:
        return []
    name = analysis.devices[slow].name
    return [
        Finding(
            id=ID,
            title=f"{name} comes late to the collectives, and the other devices wait for it: "
            f"{percent(analysis.share(lost_ns))} of the time",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[
                f"{percent(float(last[slow]))} of the waits at {len(durations)} collectives were for {name}.",
                f"The others waited {milliseconds(float(np.delete(waits.sum(axis=0), slow).mean()))} each.",
            ],
            meaning="All devices meet at a collective. One that arrives late, since its host or its own "
            "work takes longer, lets all others wait.",
            next=[
                f"Look at what the host of {name} does before its steps: its data loading, other load on "
                "its machine, a callback or logging that only one process does.",
            ],
        )
    ]


def _matched_durations(analysis: Analysis) -> NDArray[np.float64] | None:
    """The durations of the collectives, one row each, one column a device; None where they don't match."""
    table, ops = analysis.timeline.collectives, analysis.timeline.ops
    columns: list[NDArray[np.float64]] = []
    kinds: list[tuple[int, ...]] = []
    for use in analysis.devices:
        own = np.isin(table.op, use.rows)
        columns.append(ops.duration_ns[table.op[own]])
        kinds.append(tuple(table.kind[own].tolist()))
    if not kinds[0] or len(set(kinds)) > 1:
        return None
    return np.stack(columns, axis=1)
