"""The device rests: how much, for which causes, and when longest."""

from __future__ import annotations

from ..analysis import Analysis
from ..drawing import cause_of_gap
from ..finding import Finding, Level, Range
from ..gaps import Cause
from ..grouping import largest
from ..thresholds import IDLE_NOTE_SHARE, IDLE_PROBLEM_SHARE, RANGES
from ..units import milliseconds, percent

ID = "device-idle"
_WAITED_BY_US = (
    "The magic waits for each step, to measure it: in a loop that doesn't wait, the device rests less "
    "between two steps."
)


def find(analysis: Analysis) -> list[Finding]:
    """Tell the idle share and divide it among the causes; other findings say what to do about each."""
    idle_ns = analysis.idle_ns(*Cause)
    share = analysis.share(idle_ns)
    if not analysis.devices or share < IDLE_NOTE_SHARE:
        return []
    several = len(analysis.devices) > 1
    by_cause = sorted(((analysis.idle_ns(cause), cause) for cause in Cause), reverse=True)
    causes = [
        f"{milliseconds(time_ns)} ({percent(time_ns / idle_ns)}): {cause.value}"
        + (", as its length tells" if cause is Cause.COPY and not len(analysis.host.staging) else "")
        for time_ns, cause in by_cause
        if time_ns >= 0.02 * idle_ns
    ]
    busy = ", ".join(
        f"{use.name} {percent(analysis.share(use.busy.total_ns))}" for use in analysis.devices[:8]
    )
    return [
        Finding(
            id=ID,
            title=f"{'The devices were' if several else 'The device was'} idle {percent(share)} of the time",
            level=Level.PROBLEM if share >= IDLE_PROBLEM_SHARE else Level.NOTE,
            lost_ms=idle_ns / 1e6,
            share=share,
            evidence=[
                f"Busy: {busy} of {milliseconds(analysis.length_ns)}.",
                f"What the host did while {'the devices' if several else 'the device'} rested: "
                f"{'; '.join(causes)}.",
                *([_WAITED_BY_US] if analysis.waited_by_us else []),
            ],
            ranges=_largest(analysis),
            meaning="The device had nothing to do. Where the host is what holds it up, a faster device or "
            "a faster kernel changes nothing; more work at once, or less host work between, does.",
            next=_advice(by_cause[0][1], host_known="host" not in analysis.timeline.blind),
            # It is the sum of what others explain: before them only where they explain little
            rank_ms=analysis.idle_ns(Cause.UNSEEN, Cause.WAIT, Cause.BACKGROUND) / 1e6,
        )
    ]


def _largest(analysis: Analysis) -> list[Range]:
    gaps = [
        (float(idle.device.idle.start_ns[i]), float(idle.device.idle.end_ns[i]), idle)
        for idle in analysis.idle
        for i in largest(idle.device.idle.lengths_ns, RANGES)
    ]
    gaps.sort(key=lambda gap: gap[0] - gap[1])
    return [
        Range(start, end, f"{idle.device.name} idle: {cause}")
        for start, end, idle in sorted(gaps[:RANGES], key=lambda gap: gap[0])
        if (cause := cause_of_gap(analysis, idle, start, end))
    ]


def _advice(cause: Cause, *, host_known: bool) -> list[str]:
    if not host_known:
        return ["This recording has nothing of the host: record again to see what it did meanwhile."]
    if cause in (Cause.UNSEEN, Cause.WAIT):
        return [
            "The trace doesn't show what the host did: mark it with "
            "`jax.profiler.TraceAnnotation('name')`, or trace again with the Python tracer (`%%jaxtrace "
            "--python`).",
            "Let the host run ahead: don't wait for each step's result before starting the next.",
        ]
    if cause in (Cause.DISPATCH, Cause.LAUNCH, Cause.EAGER, Cause.KERNELS):
        return [
            "Give the device more work for each dispatch: a larger batch, one `jax.jit` around the whole "
            "step, or several steps in one program with `jax.lax.scan`."
        ]
    return ["Look at the largest gaps in the trace viewer, and at the findings about their causes."]
