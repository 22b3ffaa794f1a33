"""Waiting for the device in every step: reading a value (`float(loss)`, `print`), or `block_until_ready`.

What it costs is what running ahead would win. The host could dispatch the next step while the device works,
so a step would take as long as the longer of the two, not as both and the waking up between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals

from ..analysis import Analysis
from ..finding import Finding, Level
from ..gaps import Cause, is_scalar_read
from ..units import count, milliseconds, percent, size

READ = "device-to-host-read"
SYNC = "sync-every-step"

_READERS = {
    "__float__": "float(x)",
    "__int__": "int(x)",
    "__bool__": "if x",
    "item": "x.item()",
    "tolist": "x.tolist()",
    "__repr__": "print(x)",
    "__str__": "print(x)",
    "__format__": "print(f'{x}')",
    "__array__": "np.asarray(x)",
}


def find(analysis: Analysis) -> list[Finding]:
    """Tell whether each step waits for the device, by what, and what that costs."""
    if not analysis.devices:
        return []
    rows = scalar_reads(analysis)
    waits = analysis.waits[analysis.devices[0].process]
    if analysis.in_every_step(analysis.timeline.ops.start_ns[rows]):
        # What ends with the reads can't win more than they take
        lost_ns = min(lost_by(analysis, waits.waited).lost_ns, _reading(analysis).total_ns)
        return [_reads(analysis, rows, lost_ns)] if analysis.level(lost_ns) else []
    # Without a read it is mostly told by the host's silence: only where it matters, where the device is what
    # takes longer, and not where the fence of this project's own steps is what waits
    waited = waits.waited - analysis.host.read - waits.read
    if analysis.waited_by_us or not analysis.in_every_step(waited.start_ns):
        return []
    loss = lost_by(analysis, waited)
    if loss.host_bound or analysis.level(loss.lost_ns) is not Level.PROBLEM:
        return []
    return [_syncs(analysis, loss.lost_ns)]


@dataclass(frozen=True)
class _Loss:
    lost_ns: float
    host_bound: bool


def lost_by(analysis: Analysis, waited: Intervals) -> _Loss:
    """How much shorter the window were if the host ran ahead of the devices instead of waiting.

    By the median step where steps are marked: what each step loses, and not what a single one does.
    """
    process = analysis.devices[0].process
    if analysis.steps is None:
        window = analysis.windows[process]
        starts, ends = np.array([window.start_ns]), np.array([window.end_ns])
    else:
        starts, ends = analysis.periods()
    compiling = analysis.hosts[process].compiling.covered(starts, ends)
    length = ends - starts - compiling
    host = length - (waited - analysis.hosts[process].compiling).covered(starts, ends)
    # What holds a program up from inside does so however far the host is ahead
    inside = [idle.of(Cause.CALLBACK, Cause.LAUNCH, Cause.KERNELS) for idle in analysis.idle]
    device = np.mean(
        [
            use.busy.covered(starts, ends) + held.covered(starts, ends)
            for use, held in zip(analysis.devices, inside, strict=True)
        ],
        axis=0,
    )
    lost = np.maximum(length - np.maximum(host, device), 0.0)
    clean = compiling == 0 if np.any(compiling == 0) else np.ones(len(lost), dtype=np.bool_)
    return _Loss(
        lost_ns=float(np.median(lost[clean])) * len(lost),
        host_bound=bool(np.median(host[clean]) > np.median(device[clean])),
    )


def scalar_reads(analysis: Analysis) -> NDArray[np.intp]:
    """The copies of a few values to the host that no compiled program makes itself."""
    rows = np.concatenate([use.rows for use in analysis.devices])
    return rows[is_scalar_read(analysis.timeline.ops, rows)]


def _reads(analysis: Analysis, rows: NDArray[np.intp], lost_ns: float) -> Finding:
    level = analysis.level(lost_ns)
    assert level is not None
    ops = analysis.timeline.ops
    host = analysis.hosts[analysis.devices[0].process]
    steps = analysis.step_count
    how = _readers(analysis)
    often = "in every step" if steps else count(len(rows), "time")
    sizes = np.unique(ops.size_bytes[rows])
    evidence = [
        f"{count(len(rows), 'copy', 'copies')} of {size(float(sizes.max()))} from the device to the host"
        + (f", {len(rows) / steps:.1f} a step." if steps else "."),
        f"Running ahead instead would win up to {milliseconds(lost_ns)} "
        f"({percent(analysis.share(lost_ns))} of the time).",
    ]
    if how:
        evidence.insert(1, f"They come from {' and '.join(f'`{one}`' for one in how)}.")
    if len(host.read):
        evidence.append(f"The host spent {milliseconds(_reading(analysis).total_ns)} in these reads.")
    return Finding(
        id=READ,
        title=f"A value is read back from the device {often} "
        f"({how[0] if how else 'float(loss), print, ...'}), and the host waits for it",
        level=level,
        lost_ms=lost_ns / 1e6,
        share=analysis.share(lost_ns),
        evidence=evidence,
        ranges=analysis.longest(analysis.idle[0].of(Cause.READ, Cause.WAIT), "reading a value back"),
        meaning="`float(loss)`, `.item()`, `print(loss)`, `if loss > ...` and `np.asarray` wait until the "
        "device has computed the value. The device then has nothing to do until the host has dispatched "
        "the next step.",
        next=[
            *(
                [
                    "Where the value decides whether a loop goes on, put the loop on the device: "
                    "`jax.lax.while_loop` (or `jax.lax.cond` for a branch) inside `jax.jit`.",
                ]
                if not steps or "if x" in how
                else []
            ),
            "Keep the values on the device (`losses.append(loss)`) and read them every 100 steps, or at "
            "the end with one `jax.device_get(losses)`.",
            "Where a value is needed in each step, read that of the step before: by then it is there.",
            '`jax.transfer_guard("disallow")` around the loop shows where such reads are.',
        ],
    )


def _reading(analysis: Analysis) -> Intervals:
    """When the host read values: seen, or told by the copy alone."""
    process = analysis.devices[0].process
    return analysis.hosts[process].read | analysis.waits[process].read


def _readers(analysis: Analysis) -> list[str]:
    """How the user's code reads values, where the Python tracer saw it."""
    timeline = analysis.timeline
    rows = analysis.hosts[analysis.devices[0].process].frames
    names = np.flatnonzero(np.bincount(timeline.ranges.name[rows])) if len(rows) else ()
    found = [
        _READERS[function]
        for text in (timeline.text(int(number)) for number in names)
        if text.startswith("array.py:") and (function := text.rsplit(" ", 1)[-1]) in _READERS
    ]
    return list(dict.fromkeys(found))[:2]


def _syncs(analysis: Analysis, lost_ns: float) -> Finding:
    level = analysis.level(lost_ns)
    assert level is not None
    steps = analysis.step_count
    waits = analysis.waits[analysis.devices[0].process]
    seen = len(analysis.hosts[analysis.devices[0].process].wait) > 0
    often = "Each step" if steps else "Time and again the host"
    how = (
        "The trace shows the host in `block_until_ready`"
        if seen
        else "In nearly every step the host falls silent after its dispatch and goes on just after the "
        "device has finished, as it does in `block_until_ready`"
    )
    parts = max(steps, 1)
    return Finding(
        id=SYNC,
        title=f"{often} waits for the device before the next is dispatched: "
        f"{milliseconds(lost_ns / parts)}{' a step' if steps else ''}, {percent(analysis.share(lost_ns))} "
        "of the time",
        level=level,
        lost_ms=lost_ns / 1e6,
        share=analysis.share(lost_ns),
        evidence=[
            f"{how}: {milliseconds(waits.waited.total_ns)} in all.",
            f"Meanwhile the device rests: {milliseconds(analysis.idle_ns(Cause.WAIT, Cause.READ))} until "
            f"the host has woken up, and {milliseconds(analysis.idle_ns(Cause.DISPATCH))} until it has "
            "dispatched the next.",
        ],
        ranges=analysis.longest(analysis.idle[0].of(Cause.WAIT, Cause.DISPATCH), "between two steps"),
        meaning="JAX dispatches asynchronously: without waiting, the host prepares the next step while "
        "the device works on this one. Waiting in each step adds the host's time to the device's.",
        next=[
            "Wait once after the loop, or every so many steps, with `jax.block_until_ready`, not in each "
            "step (for a measurement of single steps it is right to wait: then this is what measuring "
            "costs).",
            "Do the host's work for the next step (loading, logging the last values) after dispatching "
            "this one.",
        ],
    )
