"""The host starves the device: its own work (loading data, Python, sleep) takes longer than the device's."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals

from ..analysis import Analysis
from ..finding import Finding
from ..gaps import HOST_WORK, Cause, who
from ..thresholds import FEWEST_STEPS, NAMING_SHARE, SMALL_PART
from ..units import milliseconds, percent

ID = "host-starves-device"
Rows = NDArray[np.intp]
_LOADING = re.compile(r"load|batch|data|fetch|preprocess|augment|tokeni|decode|input|next|read|collate", re.I)


def find(analysis: Analysis) -> list[Finding]:
    """Tell where the host spends the time in which the device has nothing to do."""
    lost_ns = analysis.idle_ns(*HOST_WORK)
    level = analysis.level(lost_ns)
    if not analysis.devices or level is None or lost_ns < SMALL_PART * analysis.idle_ns(*Cause):
        return []
    pieces = _pieces(analysis)
    name, evidence = _where(analysis, pieces)
    if not name and (not len(analysis.host.dispatch) or "host" in analysis.timeline.blind):
        return []  # nothing at all is known of the host
    if not name and analysis.steps is not None:
        # Silence of the host in a few steps may as well be a slow wake-up: count what each step has of it
        lost_ns = float(np.median(pieces.covered(*analysis.periods()))) * analysis.step_count
        level = analysis.level(lost_ns)
        if level is None:
            return []
    where = f"{name} is where the time goes" if name else "the trace does not show in what"
    share = percent(analysis.share(lost_ns))
    return [
        Finding(
            id=ID,
            title=f"The host starves the device: {where} ({_how_long(analysis, pieces, lost_ns)}, {share} "
            "of the time)",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=evidence,
            ranges=analysis.longest(pieces, name.strip("`") or "the device waits for the host"),
            meaning="The device has done all that it was given and waits until the host has finished its "
            "own work and starts the next computation.",
            next=_advice(name, collecting=analysis.idle_ns(Cause.COLLECTING) >= 0.5 * lost_ns),
        )
    ]


def _how_long(analysis: Analysis, pieces: Intervals, lost_ns: float) -> str:
    """The time in all, and that of a step where it is of each step."""
    steps = analysis.step_count
    in_all = milliseconds(lost_ns)
    if steps < FEWEST_STEPS or not analysis.in_every_step(pieces.start_ns):
        return in_all
    typical_ns = float(np.median(pieces.covered(*analysis.periods())))
    return f"{in_all}, {milliseconds(typical_ns)} a step" if typical_ns * steps >= 0.5 * lost_ns else in_all


def _pieces(analysis: Analysis) -> Intervals:
    """The first device's idle time during the host's own work; it stands for the others."""
    return analysis.idle[0].of(*HOST_WORK) if analysis.idle else NONE


def _where(analysis: Analysis, pieces: Intervals) -> tuple[str, list[str]]:
    timeline, host = analysis.timeline, analysis.hosts[analysis.devices[0].process]
    evidence: list[str] = []
    name = ""
    total = pieces.total_ns
    annotated = who(timeline, host.annotations, pieces)
    if annotated and annotated[0][1] >= NAMING_SHARE * total:
        name = f"`{annotated[0][0]}`"
        evidence.append(
            f"{name} covers {milliseconds(annotated[0][1])} of the {milliseconds(total)} in which the "
            f"device waited for the host's own work ({percent(annotated[0][1] / total)})."
        )
        calls = _calls(analysis, host.annotations, annotated[0][0])
        if calls:
            evidence.append(calls)
    frames = who(timeline, _written_in_python(analysis, host.working_frames), pieces)
    if frames and frames[0][1] >= NAMING_SHARE * total:
        shown = frames[0][0]
        evidence.append(f"Python was in `{shown}` for {milliseconds(frames[0][1])} of it.")
        name = name or f"`{shown.rsplit(' ', 1)[-1]}`"
    slept = analysis.idle_ns(Cause.SLEEP)
    if slept >= SMALL_PART * total:
        evidence.append(f"{milliseconds(slept)} of it the host slept (`time.sleep`).")
        name = name or "`time.sleep`"
    collected = analysis.idle_ns(Cause.COLLECTING)
    if collected >= SMALL_PART * total:
        evidence.append(f"{milliseconds(collected)} of it was Python's garbage collection.")
        name = name or "Python's garbage collection"
    background = analysis.idle_ns(Cause.BACKGROUND)
    if background >= SMALL_PART * total:
        compiled = pieces & host.compiling_beside
        evidence.append(
            f"{milliseconds(background)} of it only another thread was at work"
            + (", and compiled." if compiled.total_ns >= 0.5 * background else ".")
        )
    if not name:
        evidence.append(
            f"For {milliseconds(total)} the device rested and the host neither dispatched nor waited for "
            "the device; no annotation and no Python function of the trace covers this time."
        )
    return name, evidence


def _calls(analysis: Analysis, annotations: Rows, name: str) -> str:
    ranges = analysis.timeline.ranges
    number = analysis.timeline.find(name)
    durations = ranges.duration_ns[annotations][np.isin(ranges.name[annotations], number)]
    if len(durations) < 2:
        return ""
    return f"`{name}` ran {len(durations)} times, {milliseconds(float(np.median(durations)))} each (median)."


def _written_in_python(analysis: Analysis, rows: Rows) -> Rows:
    """The frames of functions in files (`loader.py:12 load`), not those of C (`time sleep`)."""
    ranges = analysis.timeline.ranges
    in_file = np.zeros(len(analysis.timeline.texts), dtype=np.bool_)
    for number in np.flatnonzero(np.bincount(ranges.name[rows])).tolist():
        in_file[number] = ".py:" in analysis.timeline.texts[number]
    return rows[in_file[ranges.name[rows]]]


def _advice(name: str, *, collecting: bool) -> list[str]:
    if collecting:
        return [
            "Call `gc.freeze()` once after setting up, so that the collector doesn't visit what stays.",
            "Turn it off in the loop (`gc.disable()`) and collect every some hundred steps where nothing "
            "waits; don't call `gc.collect()` in each step.",
        ]
    it = name or "it"
    advice = [
        f"Run {it} for the next step while the device computes this one: a background thread or a loader "
        "with workers (grain, tf.data, torch's DataLoader), with two or more batches ready.",
        "Start the step before preparing the next batch: JAX returns at once, so the host is free while "
        "the device works; wait for results only where they are needed.",
    ]
    if name and _LOADING.search(name):
        advice.append(
            f"Make {it} cheaper: precompute what doesn't change, keep small datasets on the device, or do "
            "the transformation inside `jax.jit`."
        )
    if not name:
        advice.append(
            "See what it is: mark parts of the loop with `jax.profiler.TraceAnnotation('name')`, or trace "
            "with the Python tracer (`%%jaxtrace --python`)."
        )
    return advice
