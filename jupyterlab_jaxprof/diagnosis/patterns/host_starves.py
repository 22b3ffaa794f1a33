"""The host starves the device: its own work (loading data, Python, sleep) takes longer than the device's."""

from __future__ import annotations

import re

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals

from ..analysis import Analysis
from ..finding import Finding
from ..gaps import HOST_WORK, Cause, who
from ..units import milliseconds, percent

ID = "host-starves-device"
_LOADING = re.compile(r"load|batch|data|fetch|preprocess|augment|tokeni|decode|input|next|read|collate", re.I)


def find(analysis: Analysis) -> list[Finding]:
    """Tell where the host spends the time in which the device has nothing to do."""
    lost_ns = analysis.idle_ns(*HOST_WORK)
    level = analysis.level(lost_ns)
    if not analysis.devices or level is None or lost_ns < 0.1 * analysis.idle_ns(*Cause):
        return []
    pieces = _pieces(analysis)
    name, evidence = _where(analysis, pieces)
    if not name and analysis.steps is not None:
        # Silence of the host in a few steps may as well be a slow wake-up: count what each step has of it
        lost_ns = float(np.median(pieces.covered(*analysis.periods()))) * analysis.step_count
        level = analysis.level(lost_ns)
        if level is None:
            return []
    steps = analysis.step_count
    per_step = f", {milliseconds(lost_ns / steps)} a step" if steps else ""
    where = f"`{name}` is where the time goes" if name else "the trace does not show in what"
    return [
        Finding(
            id=ID,
            title=f"The host starves the device: {where} ({milliseconds(lost_ns)}{per_step}, "
            f"{percent(analysis.share(lost_ns))} of the time)",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=evidence,
            ranges=analysis.longest(pieces, name or "the device waits for the host"),
            meaning="The device has done all that it was given and waits until the host has finished its own "
            "work and starts the next computation.",
            next=_advice(name),
        )
    ]


def _pieces(analysis: Analysis) -> Intervals:
    """The first device's idle time during the host's own work; it stands for the others."""
    return analysis.idle[0].of(*HOST_WORK) if analysis.idle else NONE


def _where(analysis: Analysis, pieces: Intervals) -> tuple[str, list[str]]:
    timeline, host = analysis.timeline, analysis.hosts[analysis.devices[0].process]
    evidence: list[str] = []
    name = ""
    total = pieces.total_ns
    annotated = who(timeline, host.annotations, pieces)
    if annotated and annotated[0][1] >= 0.3 * total:
        name = annotated[0][0]
        evidence.append(
            f"`{name}` covers {milliseconds(annotated[0][1])} of the {milliseconds(total)} in which the "
            f"device waited for the host's own work ({percent(annotated[0][1] / total)})."
        )
        calls = _calls(analysis, host.annotations, name)
        if calls:
            evidence.append(calls)
    frames = who(timeline, host.working_frames, pieces)
    if frames and frames[0][1] >= 0.3 * total:
        shown = frames[0][0]
        evidence.append(f"Python was in `{shown}` for {milliseconds(frames[0][1])} of it.")
        name = name or shown.rsplit(" ", 1)[-1]
    slept = analysis.idle_ns(Cause.SLEEP)
    if slept >= 0.1 * total:
        evidence.append(f"{milliseconds(slept)} of it the host slept (`time.sleep`).")
    collected = analysis.idle_ns(Cause.COLLECTING)
    if collected >= 0.1 * total:
        evidence.append(f"{milliseconds(collected)} of it was Python's garbage collection.")
    background = analysis.idle_ns(Cause.BACKGROUND)
    if background >= 0.1 * total:
        evidence.append(f"{milliseconds(background)} of it only another thread was at work.")
    if not name:
        evidence.append(
            f"For {milliseconds(total)} the device rested and the host neither dispatched nor waited for the "
            "device; no annotation and no Python function of the trace covers this time."
        )
    return name, evidence


def _calls(analysis: Analysis, annotations: np.ndarray[tuple[int], np.dtype[np.intp]], name: str) -> str:
    ranges = analysis.timeline.ranges
    number = analysis.timeline.find(name)
    durations = ranges.duration_ns[annotations][np.isin(ranges.name[annotations], number)]
    if len(durations) < 2:
        return ""
    return f"`{name}` ran {len(durations)} times, {milliseconds(float(np.median(durations)))} each (median)."


def _advice(name: str) -> list[str]:
    it = f"`{name}`" if name else "it"
    advice = [
        f"Run {it} for the next step while the device computes this one: a background thread or a loader "
        "with workers (grain, tf.data, torch's DataLoader), with two or more batches ready.",
        "Start the step before preparing the next batch: JAX returns at once, so the host is free while the "
        "device works; wait for results only where they are needed.",
    ]
    if name and _LOADING.search(name):
        advice.append(
            f"Make {it} cheaper: precompute what doesn't change, keep small datasets on the device, or do "
            "the "
            "transformation inside `jax.jit`."
        )
    if not name:
        advice.append(
            "See what it is: mark parts of the loop with `jax.profiler.TraceAnnotation('name')`, or trace "
            "with the Python tracer (`%%jaxtrace --python`)."
        )
    return advice
