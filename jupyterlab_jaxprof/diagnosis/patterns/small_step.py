"""A batch too small for the device: dispatching a step takes longer than running it."""

from __future__ import annotations

from ..analysis import Analysis
from ..finding import Finding, Level
from ..gaps import Cause, who
from ..thresholds import SMALL_PART
from ..units import count, milliseconds, percent
from .eager import is_many

ID = "batch-too-small"


def find(analysis: Analysis) -> list[Finding]:
    """Compare what dispatching takes the host with what it gives the devices to do.

    Where a step's work is longer than its dispatch, the dispatch can hide behind it: it is not named here.
    """
    if not analysis.devices:
        return []
    causes = (Cause.DISPATCH,) if is_many(analysis) else (Cause.DISPATCH, Cause.EAGER)
    lost_ns = analysis.idle_ns(*causes)
    host = analysis.hosts[analysis.devices[0].process]
    dispatch = host.dispatch - (host.compiling | host.callback | host.staging)
    busy_ns = analysis.mean(lambda use: use.busy.total_ns)
    if analysis.level(lost_ns) is not Level.PROBLEM or dispatch.total_ns <= busy_ns:
        return []
    idle = analysis.idle[0].of(*causes)
    around = who(analysis.timeline, host.annotations, idle)
    mostly = around[0][0] if around and around[0][1] >= 0.5 * idle.total_ns else ""
    surrounds = f"`{mostly}`" if mostly else "making the batch, random keys, metrics"
    # Of the first device, in proportion to all
    between_ns = lost_ns * (idle - dispatch).total_ns / max(idle.total_ns, 1.0)
    parts = max(analysis.step_count, 1)
    what = "a step" if analysis.step_count else "in all"
    return [
        Finding(
            id=ID,
            title=f"The work is too small for this device: {milliseconds(busy_ns / parts)} of device time "
            f"{what}, but {milliseconds(dispatch.total_ns / parts)} to dispatch it",
            level=Level.PROBLEM,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[
                f"The host spent {milliseconds(dispatch.total_ns)} dispatching programs, the device "
                f"{milliseconds(busy_ns)} running them.",
                f"The device rested {milliseconds(lost_ns)} ({percent(analysis.share(lost_ns))}) before the "
                "next"
                + (
                    f": {milliseconds(lost_ns - between_ns)} while it was dispatched, "
                    f"{milliseconds(between_ns)} in "
                    "Python's pauses between two dispatches."
                    if between_ns > SMALL_PART * lost_ns
                    else " was dispatched."
                ),
                f"{count(len(host.dispatch) / parts, 'dispatch', 'dispatches')} {what}"
                + (f"; most of the waiting is in `{mostly}`." if mostly else "."),
            ],
            ranges=analysis.longest(idle, "waiting for a dispatch"),
            meaning="Each call of a compiled function costs the host a fixed 30 to 200 us, however little "
            "it computes. The device is done before the next call has been dispatched, so the step's "
            "time is the host's, and would hardly change with a larger batch.",
            next=[
                "Make the batch larger until the step's time grows with it.",
                "Do several steps in one dispatch: `jax.lax.scan` over a stack of batches inside `jax.jit`.",
                f"Put what surrounds the step ({surrounds}) under the same `jax.jit`.",
            ],
        )
    ]
