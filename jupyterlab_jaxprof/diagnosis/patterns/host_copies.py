"""Data copied between host and device in every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals, union_of
from jupyterlab_jaxprof.timeline.model import CopyKind, HostMemory, OpKind, Source

from ..analysis import Analysis, is_staged
from ..finding import Finding, Level
from ..gaps import Cause, who
from ..thresholds import DATA_BYTES_PER_STEP, HIDDEN_COPY_SHARE, IDLE_NOTE_SHARE, LEAST_NOTE_SHARE
from ..units import count, milliseconds, percent, size

TO_DEVICE = "host-to-device-copies"
TO_HOST = "device-to-host-copies"


def find(analysis: Analysis) -> list[Finding]:
    """Tell about each direction's data, if it is copied in every step and computing waits for it."""
    if not analysis.devices:
        return []
    return [
        finding
        for kind in (CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST)
        if (finding := _direction(analysis, kind)) is not None
    ]


def _direction(analysis: Analysis, kind: CopyKind) -> Finding | None:
    ops = analysis.timeline.ops
    every = np.concatenate([use.rows for use in analysis.devices])
    rows = every[(ops.kind[every] == OpKind.COPY) & (ops.copy_kind[every] == kind) & (ops.module[every] == 0)]
    steps = analysis.step_count
    total = int(ops.size_bytes[rows].sum())
    # The copies that carry the data; scalars beside them are counted with them but are not the pattern
    large = rows[ops.size_bytes[rows] >= 1024]
    if total / max(steps, 1) < DATA_BYTES_PER_STEP or not analysis.in_every_step(ops.start_ns[large]):
        return None
    copying = float(ops.duration_ns[rows].sum()) / len(analysis.devices)
    exposed = _exposed(analysis, rows)
    exposed_ns = sum(one.total_ns for one in exposed) / len(analysis.devices)
    cause = Cause.COPY if kind == CopyKind.HOST_TO_DEVICE else Cause.READ
    lost_ns = exposed_ns + analysis.idle_ns(cause)
    level = analysis.level(lost_ns)
    if level is None:
        hidden = exposed_ns < (1 - HIDDEN_COPY_SHARE) * copying
        least = analysis.share(lost_ns) < LEAST_NOTE_SHARE
        if hidden or least or 1 - analysis.busy_share < IDLE_NOTE_SHARE:
            return None
        level = Level.NOTE
    return _finding(analysis, kind, rows, lost_ns, exposed_ns, analysis.idle_ns(cause), level)


def _exposed(analysis: Analysis, rows: NDArray[np.intp]) -> list[Intervals]:
    """When each device copies these and computes nothing."""
    ops = analysis.timeline.ops
    parts: list[Intervals] = []
    for use in analysis.devices:
        window = analysis.windows[use.process]
        own = rows[ops.device[rows] == use.index]
        when = union_of(ops.start_ns[own], ops.duration_ns[own]).clip(window.start_ns, window.end_ns)
        parts.append(when - (use.compute | use.collective))
    return parts


def _finding(
    analysis: Analysis,
    kind: CopyKind,
    rows: NDArray[np.intp],
    lost_ns: float,
    exposed_ns: float,
    idle_ns: float,
    level: Level,
) -> Finding:
    ops, steps = analysis.timeline.ops, analysis.step_count
    total, time_ns = int(ops.size_bytes[rows].sum()), float(ops.duration_ns[rows].sum())
    to_device = kind == CopyKind.HOST_TO_DEVICE
    way = "from the host to the device" if to_device else "from the device to the host"
    memory, staged_ns = _memory(analysis, rows, to_device)
    each = size(total / steps) if steps else size(total)
    when = "in every step" if steps else f"in {count(len(rows), 'copy', 'copies')}"
    number = count(len(rows), "copy", "copies")
    evidence = [
        f"{size(total)} in {number}, {milliseconds(time_ns)} in all ({total / time_ns:.1f} "
        f"GB/s){', ' + memory if memory else ''}.",
        f"{milliseconds(exposed_ns)} of the copying ran while nothing was computed.",
    ]
    if idle_ns:
        evidence.append(_rested(analysis, to_device, staged_ns, idle_ns))
    return Finding(
        id=TO_DEVICE if to_device else TO_HOST,
        title=f"{each} is copied {way} {when}{' ' + memory if memory else ''}: "
        f"{percent(analysis.share(lost_ns))} of the time",
        level=level,
        lost_ms=lost_ns / 1e6,
        share=analysis.share(lost_ns),
        evidence=evidence,
        ranges=analysis.longest(_exposed(analysis, rows)[0], f"copying {way}"),
        meaning="A copy crosses PCIe at 20 to 60 GB/s from pinned memory, and far more slowly from "
        "ordinary (pageable) memory, which the host must first copy itself. While it runs, a step that "
        "needs it waits."
        if to_device
        else "Each array that the host reads must be computed first and then copied; the next step waits "
        "where the host does.",
        next=_to_device_advice() if to_device else _to_host_advice(),
    )


def _rested(analysis: Analysis, to_device: bool, staged_ns: float, idle_ns: float) -> str:
    """Say for what the device rested around such copies, with the user's name for it."""
    host = analysis.hosts[analysis.devices[0].process]
    cause = Cause.COPY if to_device else Cause.READ
    pieces = analysis.idle[0].of(cause)
    around = who(analysis.timeline, host.annotations, pieces)
    inside = f", most of it in `{around[0][0]}`" if around and around[0][1] >= 0.5 * pieces.total_ns else ""
    if not to_device:
        return (
            f"For {milliseconds(idle_ns)} the device rested while the host read{inside}: beyond the "
            "copying itself the host finds memory for each array and moves it there, which the trace does "
            "not show apart."
        )
    if staged_ns:
        return (
            f"The host needed {milliseconds(staged_ns)} to bring the arrays into the buffer that the device "
            f"copies from; for {milliseconds(idle_ns)} the device rested until a copy was ready{inside}."
        )
    return (
        f"For {milliseconds(idle_ns)} the device rested right before these copies{inside}, about as "
        "long as JAX needs to bring such arrays into the pinned buffer that the device copies from; "
        "this recording doesn't show it."
    )


def _unseen(analysis: Analysis) -> bool:
    """Whether the recording can't show how arrays come into the pinned buffer."""
    return analysis.timeline.source is Source.NSIGHT or "host" in analysis.timeline.blind


def _memory(analysis: Analysis, rows: NDArray[np.intp], to_device: bool) -> tuple[str, float]:
    """Which memory of the host the copies use, in words, and how long the host prepared them (ns).

    JAX copies a numpy array into a pinned buffer first: the device then copies from pinned memory, yet the
    array is in pageable memory, and filling the buffer is what takes the time.
    """
    memory = analysis.timeline.ops.host_memory[rows]
    host = analysis.hosts[analysis.devices[0].process]
    staged_ns = host.staging.total_ns if to_device else 0.0
    word = "from" if to_device else "to"
    if np.mean(memory == HostMemory.PAGEABLE) > 0.5:
        return f"{word} pageable memory", staged_ns
    if np.mean(memory == HostMemory.PINNED) > 0.5:
        if to_device and is_staged(analysis, rows):
            return "from pageable memory, through a pinned buffer", staged_ns
        if to_device and not staged_ns and _unseen(analysis):
            return "", staged_ns
        return f"{word} pinned memory", staged_ns
    return "", staged_ns


def _to_device_advice() -> list[str]:
    return [
        "Copy the next batch while this one is computed: call `jax.device_put(batch)` one step ahead (it "
        "returns at once), from a background thread or with a queue of two batches.",
        "Send less: bfloat16 or uint8 instead of float32, converted on the device inside `jax.jit`; keep "
        "data that is used again on the device.",
    ]


def _to_host_advice() -> list[str]:
    return [
        "Read less often (a checkpoint every some hundred steps), and only what is needed: reduce on the "
        "device inside `jax.jit` first.",
        "Start the copy early with `x.copy_to_host_async()` and read it some steps later; write "
        "checkpoints asynchronously (orbax).",
    ]
