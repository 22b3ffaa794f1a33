"""Memory pressure: the allocator has given away most of what it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.model import AllocatorSamples, Integers

from ..analysis import Analysis
from ..finding import Finding, Level, Range
from ..thresholds import MEMORY_SHARE
from ..units import percent

ID = "memory-pressure"
_MEANING = (
    "It costs no time by itself, but a slightly larger batch, a second program or fragmentation ends in "
    "RESOURCE_EXHAUSTED. `nvidia-smi` can't show it: JAX reserves its share of the memory at once."
)
_ADVICE = (
    "See what holds it: `%jaxmem` or `jax.live_arrays()`; delete what isn't needed, and donate parameters "
    "and optimizer state: `jax.jit(step, donate_argnums=(0, 1))`.",
    "Recompute activations instead of keeping them (`jax.checkpoint`), use bfloat16, or a smaller batch "
    "with gradient accumulation.",
    "The limit is 75 % of the device unless `XLA_PYTHON_CLIENT_MEM_FRACTION` is set before JAX starts.",
)


def find(analysis: Analysis) -> list[Finding]:
    """Tell the device with the highest use of its allocator's limit in the window, if that is high.

    The allocator's own peak is that of the process so far: it may be of something that ran before.
    """
    samples, (start_ns, end_ns) = analysis.timeline.allocator, analysis.extent
    held: tuple[float, int] | None = None
    peaked: tuple[float, int] | None = None
    for device in np.unique(samples.device):
        rows = np.flatnonzero((samples.device == device) & (samples.time_ns <= end_ns))
        # The last sample before the window tells what was held as it began
        before = np.flatnonzero(samples.time_ns[rows] <= start_ns)
        rows = rows[before[-1] if len(before) else 0 :]
        rows = rows[samples.limit_bytes[rows] > 0]
        if len(rows):
            held = max(held or (0.0, 0), _highest(samples.in_use_bytes, samples, rows))
            peaked = max(peaked or (0.0, 0), _highest(samples.peak_bytes, samples, rows))
    if held is not None and held[0] >= MEMORY_SHARE:
        return [_held(analysis, *held)]
    if held is not None and peaked is not None and peaked[0] >= MEMORY_SHARE:
        return [_peaked(analysis, *peaked, held[1])]
    return []


def _highest(column: Integers, samples: AllocatorSamples, rows: NDArray[np.intp]) -> tuple[float, int]:
    """The highest share of the limit, and its row."""
    shares = column[rows] / samples.limit_bytes[rows]
    return float(shares.max()), int(rows[int(np.argmax(shares))])


def _held(analysis: Analysis, share: float, row: int) -> Finding:
    samples = analysis.timeline.allocator
    in_use, limit = int(samples.in_use_bytes[row]), int(samples.limit_bytes[row])
    peak, fragmentation = int(samples.peak_bytes[row]), float(samples.fragmentation[row])
    device = analysis.timeline.devices[int(samples.device[row])].name
    evidence = [
        f"{device}: {in_use / 1e9:.1f} GB of the allocator's {limit / 1e9:.1f} GB in use at "
        f"{samples.time_ns[row] / 1e6:.3f} ms; {(limit - in_use) / 1e9:.1f} GB were free."
    ]
    if peak > in_use:
        evidence.append(f"The process's peak up to then was {peak / 1e9:.1f} GB.")
    if np.isfinite(fragmentation) and fragmentation >= 0.2:
        evidence.append(f"Of the free memory {percent(fragmentation)} is in pieces (fragmentation).")
    time = float(samples.time_ns[row])
    return Finding(
        id=ID,
        title=f"Memory is nearly full: {in_use / 1e9:.1f} of {limit / 1e9:.1f} GB ({percent(share)}) in "
        f"use on {device}",
        level=Level.PROBLEM,
        evidence=evidence,
        ranges=[Range(time, time, "the most memory in use")],
        meaning=_MEANING,
        next=_ADVICE,
    )


def _peaked(analysis: Analysis, share: float, row: int, held_row: int) -> Finding:
    samples = analysis.timeline.allocator
    peak, limit = int(samples.peak_bytes[row]), int(samples.limit_bytes[row])
    in_use = int(samples.in_use_bytes[held_row])
    device = analysis.timeline.devices[int(samples.device[row])].name
    return Finding(
        id=ID,
        title=f"The process's memory peak is {peak / 1e9:.1f} of {limit / 1e9:.1f} GB ({percent(share)}) "
        f"on {device}",
        level=Level.NOTE,
        evidence=[
            f"The allocator's samples in this part of the trace show at most {in_use / 1e9:.1f} GB in use: "
            "the peak was reached before it, or by something that the samples don't show.",
        ],
        meaning=_MEANING,
        next=_ADVICE,
    )
