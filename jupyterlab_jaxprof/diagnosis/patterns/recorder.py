"""What the recording hides or changes: CUDA graphs, missing devices and steps, the recorder's own cost."""

from __future__ import annotations

import numpy as np

from jupyterlab_jaxprof.timeline.model import OpKind, RangeKind, Source

from ..analysis import Analysis
from ..finding import Finding, Level
from ..thresholds import PROBLEM_SHARE, PYTHON_CALL_COST_NS
from ..units import count, milliseconds, percent

GRAPHS = "hidden-in-graphs"
NO_STEPS = "no-step-markers"
EARLY = "steps-end-early"
DISTURBED = "profiler-overhead"
DROPPED = "dropped-events"
NO_DEVICE = "no-device-activity"


def find(analysis: Analysis) -> list[Finding]:
    """Tell what can't be told from this recording, and why."""
    return [
        *_no_device(analysis),
        *_graphs(analysis),
        *_no_steps(analysis),
        *_steps_end_early(analysis),
        *_dropped(analysis),
        *_python_tracer(analysis),
    ]


def _few_marks(analysis: Analysis) -> bool:
    """Whether this is a report of Nsight Systems with hardly any range in it."""
    timeline = analysis.timeline
    marked = np.count_nonzero(timeline.ranges.kind != RangeKind.SYSTEM) + len(timeline.steps)
    return timeline.source is Source.NSIGHT and int(marked) <= 1


def _graphs(analysis: Analysis) -> list[Finding]:
    ops = analysis.timeline.ops
    if not analysis.devices:
        return []
    rows = np.concatenate([use.rows for use in analysis.devices])
    graphs = rows[ops.kind[rows] == OpKind.GRAPH]
    if not len(graphs):
        return []
    hidden_ns = float(ops.duration_ns[graphs].sum())
    busy_ns = sum(use.busy.total_ns for use in analysis.devices)
    return [
        Finding(
            id=GRAPHS,
            title=f"CUDA graphs hide the kernels of {percent(hidden_ns / busy_ns)} of the device's time",
            level=Level.NOTE,
            evidence=[
                f"{count(len(graphs), 'launch', 'launches')} of graphs, {milliseconds(hidden_ns)} in all, "
                "each recorded as one thing; the kernels inside are not in the tables."
            ],
            ranges=[],
            meaning="XLA runs a jitted step as a CUDA graph, and Nsight Systems records a graph as a "
            "whole unless it is told otherwise. Busy time is right; kernels, copies and collectives "
            "inside are unknown.",
            next=[
                "Record again with `--cuda-graph-trace=node` (`%%nsys` does so); it makes each launch a "
                "little slower."
            ],
        )
    ]


def _no_steps(analysis: Analysis) -> list[Finding]:
    ran = analysis.devices or len(analysis.timeline.compiles) or len(analysis.host.dispatch)
    if analysis.steps is not None or not ran:
        return []
    if "host" in analysis.timeline.blind:  # they may be marked: the notices tell what could not be read
        return []
    return [
        Finding(
            id=NO_STEPS,
            title="No steps are marked, so nothing can be told for a single step",
            level=Level.NOTE,
            evidence=["The recording has no step annotation; all figures are for the whole of it."],
            meaning="With marked steps this report tells how long each takes, what is different in the "
            "slow ones, and what repeats in every step.",
            next=[
                "Mark them: `with jax.profiler.StepTraceAnnotation('train', step_num=i): ...` around each "
                "step, or run the cell with `%%jaxtrace --steps N`.",
                "If they are marked: the recorder needs a `step_num`, and cuts a name at a `#`.",
            ],
        )
    ]


def _steps_end_early(analysis: Analysis) -> list[Finding]:
    """Markers that end long before the work they started: they time the dispatch, which is no fault."""
    if analysis.steps is None or not analysis.marks_dispatch:
        return []
    median = float(np.median(analysis.steps.duration_ns))
    device_ns = analysis.device_ns_per_step
    device = milliseconds(device_ns) if device_ns is not None else ""
    return [
        Finding(
            id=EARLY,
            title=f"The step markers end before their work: {milliseconds(median)} are marked (median)"
            + (f", the devices work {device} a step (mean)" if device else ""),
            level=Level.NOTE,
            evidence=[
                "After the last marker had ended the devices worked on for "
                f"{milliseconds(analysis.worked_on_ns)}: JAX had only dispatched the steps by then."
            ],
            meaning="The markers time how long dispatching takes, not how long a step takes. For the "
            "device that is how it should be: it never waits for the host.",
            next=[
                *(
                    [f"Read a step's time as {device}: the devices' time by the number of steps."]
                    if device
                    else []
                ),
                "For a measurement of single steps, wait inside the marker with `jax.block_until_ready`.",
            ],
        )
    ]


def _dropped(analysis: Analysis) -> list[Finding]:
    dropped = analysis.timeline.dropped_events
    if not dropped:
        return []
    return [
        Finding(
            id=DROPPED,
            title=f"The recorder dropped {count(dropped, 'event')}: times and counts here are too low",
            level=Level.NOTE,
            evidence=[f"{count(dropped, 'event')} did not fit into the recorder's buffers."],
            meaning="What is missing looks like idle time or like things that never happened.",
            next=["Record less: fewer steps, without the Python tracer, or at a lower host tracer level."],
        )
    ]


def _python_tracer(analysis: Analysis) -> list[Finding]:
    ranges, window = analysis.timeline.ranges, analysis.window
    calls = int(
        np.count_nonzero(
            (ranges.kind == RangeKind.PYTHON)
            & (ranges.start_ns >= window.start_ns)
            & (ranges.start_ns < window.end_ns)
        )
    )
    cost_ns = calls * PYTHON_CALL_COST_NS
    share = analysis.share(cost_ns)
    if share < PROBLEM_SHARE:
        return []
    return [
        Finding(
            id=DISTURBED,
            title=f"The Python tracer slowed down what it measured, by about {percent(share)} of the time",
            level=Level.NOTE,
            evidence=[
                f"{count(calls, 'Python call')} recorded at about {PYTHON_CALL_COST_NS / 1e3:.1f} us each: "
                f"some {milliseconds(cost_ns)} of {milliseconds(analysis.length_ns)}."
            ],
            meaning="The tracer is called at each entry and exit of a Python function. The host looks "
            "slower, and the device idler, than without it; times of kernels are right.",
            next=[
                "Trace once more without it (`%%jaxtrace` does so unless asked with `--python`; "
                "`ProfileOptions.python_tracer_level = 0`) before trusting a time of the host."
            ],
        )
    ]


def _no_device(analysis: Analysis) -> list[Finding]:
    if analysis.devices:
        return []
    cpu = "devices" in analysis.timeline.blind
    return [
        Finding(
            id=NO_DEVICE,
            title="This recording has no device activity, so idle time, kernels and copies can't be told",
            level=Level.NOTE,
            evidence=[
                "No accelerator is in the recording: JAX ran on the CPU, or its devices were not recorded."
                if cpu
                else "No operation of a device lies in the part that is judged."
            ],
            meaning="Compiles, steps and annotations are told as far as they were recorded. What a CPU is "
            "slow at says little about a GPU.",
            next=[
                "Record on the machine with the accelerator, and let the steps run inside the recording.",
                *(
                    [
                        "If the program marks NVTX ranges and they are missing: the nvtx package from "
                        "0.2.12 on is silent under nsys before 2025; use a newer nsys, or nvtx 0.2.11."
                    ]
                    if _few_marks(analysis)
                    else []
                ),
            ],
        )
    ]
