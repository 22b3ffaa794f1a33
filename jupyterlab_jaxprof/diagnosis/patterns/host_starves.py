"""The host starves the device: its own work (loading data, Python, sleep) takes longer than the device's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals, union_of, united

from ..analysis import Analysis
from ..finding import Finding, Range
from ..gaps import HOST_WORK, Cause, IdleTime, who
from ..thresholds import FEWEST_STEPS, NAMING_SHARE, RANGES, SMALL_PART
from ..units import milliseconds, percent

ID = "host-starves-device"
Rows = NDArray[np.intp]
_MOST_NAMES = 3
_LOADING = re.compile(r"load|batch|data|fetch|preprocess|augment|tokeni|decode|input|next|read|collate", re.I)


def find(analysis: Analysis) -> list[Finding]:
    """Tell where the host spends the time in which the device has nothing to do."""
    lost_ns = analysis.idle_ns(*HOST_WORK)
    level = analysis.level(lost_ns)
    if not analysis.devices or level is None or lost_ns < SMALL_PART * analysis.idle_ns(*Cause):
        return []
    # The device that waits most stands for the others
    idle = max(analysis.idle, key=lambda one: one.total_ns(*HOST_WORK))
    every = idle.of(*HOST_WORK)
    found, evidence = _where(analysis, idle, every)
    host_known = len(analysis.host.dispatch) and "host" not in analysis.timeline.blind
    if not found and not host_known:
        return []  # nothing at all is known of the host
    pieces = united([part for _, part in found]) if found else every
    if found:  # what has other names, or none, is not theirs
        lost_ns *= pieces.total_ns / every.total_ns
    elif analysis.steps is not None:
        # Silence of the host in a few steps may as well be a slow wake-up: count what each step has of it
        lost_ns = float(np.median(pieces.covered(*analysis.periods()))) * analysis.step_count
    level = analysis.level(lost_ns)
    if level is None:
        return []
    called = [name for name, _ in found]
    are = "are" if len(called) > 1 else "is"
    where = f"{_listed(called)} {are} where the time goes" if found else "the trace does not show in what"
    return [
        Finding(
            id=ID,
            title=f"The host starves the device: {where} ({_how_long(analysis, pieces, lost_ns)}, "
            f"{percent(analysis.share(lost_ns))} of the time)",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=evidence,
            ranges=_ranges(analysis, found) or analysis.longest(pieces, "the device waits for the host"),
            meaning="The device has done all that it was given and waits until the host has finished its "
            "own work and starts the next computation.",
            next=_advice(
                analysis,
                called[0] if called else "",
                pieces,
                collecting=analysis.idle_ns(Cause.COLLECTING) >= 0.5 * lost_ns,
            ),
        )
    ]


def _listed(called: Sequence[str]) -> str:
    return " and ".join([", ".join(called[:-1]), called[-1]] if len(called) > 1 else called)


def _ranges(analysis: Analysis, found: Sequence[tuple[str, Intervals]]) -> list[Range]:
    """The longest stretches, each under its own name."""
    every = [one for name, part in found for one in analysis.longest(part, name.strip("`"))]
    longest = sorted(every, key=lambda one: one.start_ns - one.end_ns)[:RANGES]
    return sorted(longest, key=lambda one: one.start_ns)


def _how_long(analysis: Analysis, pieces: Intervals, lost_ns: float) -> str:
    """The time in all, and that of a step where it is of each step."""
    steps = analysis.step_count
    in_all = milliseconds(lost_ns)
    if steps < FEWEST_STEPS or not analysis.in_every_step(pieces.start_ns):
        return in_all
    typical_ns = float(np.median(pieces.covered(*analysis.periods())))
    if typical_ns * steps < 0.5 * lost_ns:
        return in_all
    return f"{in_all}, {milliseconds(typical_ns)} in the median step"


def _where(
    analysis: Analysis, idle: IdleTime, every: Intervals
) -> tuple[list[tuple[str, Intervals]], list[str]]:
    """What the host did in this time, by the user's names, each with its own part of it; and the evidence."""
    host = analysis.hosts[idle.device.process]
    total, evidence = every.total_ns, list[str]()
    found = _annotated(analysis, host.annotations, every)
    for name, part in found:
        evidence.append(
            f"{name} covers {milliseconds(part.total_ns)} of the {milliseconds(total)} in which the "
            f"device waited for the host's own work ({percent(part.total_ns / total)})."
        )
        evidence += _calls(analysis, host.annotations, name.strip("`"))
    frames = _written_in_python(analysis, host.working_frames)
    named = who(analysis.timeline, frames, every)
    if named and named[0][1] >= NAMING_SHARE * total:
        shown, part = named[0][0], every & _ranges_of(analysis, frames, named[0][0])
        evidence.append(f"Python was in `{shown}` for {milliseconds(part.total_ns)} of it.")
        found = found or [(f"`{shown.rsplit(' ', 1)[-1]}`", part)]
    for cause, said, name in (
        (Cause.SLEEP, "the host slept (`time.sleep`)", "`time.sleep`"),
        (Cause.COLLECTING, "was Python's garbage collection", "Python's garbage collection"),
    ):
        part = idle.of(cause)
        if part.total_ns >= SMALL_PART * total:
            evidence.append(f"{milliseconds(part.total_ns)} of it {said}.")
            found = found or [(name, part)]
    background = idle.of(Cause.BACKGROUND).total_ns
    if background >= SMALL_PART * total:
        compiled = (every & host.compiling_beside).total_ns >= 0.5 * background
        doing = "was at work, and compiled" if compiled else "was at work"
        evidence.append(f"{milliseconds(background)} of it only another thread {doing}.")
    if not found:
        evidence.append(
            f"For {milliseconds(total)} the device rested and the host neither dispatched nor waited for "
            "the device; no annotation and no Python function of the trace covers this time."
        )
    return found, evidence


def _annotated(analysis: Analysis, rows: Rows, every: Intervals) -> list[tuple[str, Intervals]]:
    """The annotations that cover this time, the one with most of it first, each for what is left for it."""
    found: list[tuple[str, Intervals]] = []
    least, rest = NAMING_SHARE * every.total_ns, every
    while len(found) < _MOST_NAMES:
        best = who(analysis.timeline, rows, rest)
        if not best or best[0][1] < least:
            break
        when = _ranges_of(analysis, rows, best[0][0])
        found.append((f"`{best[0][0]}`", rest & when))
        least, rest = SMALL_PART * every.total_ns, rest - when
    return found


def _ranges_of(analysis: Analysis, rows: Rows, name: str) -> Intervals:
    ranges = analysis.timeline.ranges
    own = rows[np.isin(ranges.name[rows], analysis.timeline.find(name))]
    return union_of(ranges.start_ns[own], ranges.duration_ns[own])


def _calls(analysis: Analysis, annotations: Rows, name: str) -> list[str]:
    ranges = analysis.timeline.ranges
    number = analysis.timeline.find(name)
    durations = ranges.duration_ns[annotations][np.isin(ranges.name[annotations], number)]
    if len(durations) < 2:
        return [f"`{name}` ran once."] if len(durations) and analysis.step_count > 1 else []
    typical = milliseconds(float(np.median(durations)))
    return [f"`{name}` ran {len(durations)} times, {typical} each (median)."]


def _written_in_python(analysis: Analysis, rows: Rows) -> Rows:
    """The frames of functions in files (`loader.py:12 load`), not those of C (`time sleep`)."""
    ranges = analysis.timeline.ranges
    in_file = np.zeros(len(analysis.timeline.texts), dtype=np.bool_)
    for number in np.flatnonzero(np.bincount(ranges.name[rows])).tolist():
        in_file[number] = ".py:" in analysis.timeline.texts[number]
    return rows[in_file[ranges.name[rows]]]


def _advice(analysis: Analysis, name: str, pieces: Intervals, *, collecting: bool) -> list[str]:
    if collecting:
        return [
            "Call `gc.freeze()` once after setting up, so that the collector doesn't visit what stays.",
            "Turn it off in the loop (`gc.disable()`) and collect every some hundred steps where nothing "
            "waits; don't call `gc.collect()` in each step.",
        ]
    after = (
        "Start the step before preparing the next batch: JAX returns at once, so the host is free while "
        "the device works; wait for results only where they are needed."
    )
    if name and not _LOADING.search(name):
        if not analysis.in_every_step(pieces.start_ns):
            return [
                f"{name} does not come in every step. If it comes once, it costs a longer run little: "
                "trace a part without it to see the steps.",
                f"If it comes again and again, do {name} less often, or in a background thread while the "
                "device goes on with the next steps.",
            ]
        return [
            f"Start the next step before {name}: JAX returns at once, so the host does it while the device "
            "works.",
            f"Do {name} less often, or in a background thread (a `queue.Queue` of what it needs) that "
            "holds no step up.",
        ]
    it = name or "it"
    if not name:
        return [
            "See what it is: mark parts of the loop with `jax.profiler.TraceAnnotation('name')`, or trace "
            "with the Python tracer (`%%jaxtrace --python`).",
            after,
            "Where it is loading: prepare the next batch in a background thread or with a loader that has "
            "workers (grain, tf.data, torch's DataLoader).",
        ]
    return [
        f"Run {it} for the next step while the device computes this one: a background thread or a loader "
        "with workers (grain, tf.data, torch's DataLoader), with two or more batches ready.",
        after,
        f"Make {it} cheaper: precompute what doesn't change, keep small datasets on the device, or do "
        "the transformation inside `jax.jit`.",
    ]
