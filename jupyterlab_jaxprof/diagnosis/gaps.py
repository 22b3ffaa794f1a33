"""Why the devices rested: each moment of a device's idle time given to exactly one cause.

The causes are asked in the order of `Cause`: what is seen to hold a device up comes before what merely went
on meanwhile, and what a thread other than the leading one did counts only where that one did nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union, united
from jupyterlab_jaxprof.timeline.model import CopyKind, DeviceOps, HostRanges, OpKind, Timeline

from . import thresholds
from .devices import DeviceUse
from .host import HostUse
from .programs import Programs
from .window import launch_times


class Cause(StrEnum):
    """Why a device rested, as a reader would say it."""

    COMPILING = "compiling"
    CALLBACK = "a host callback inside a compiled program"
    COLLECTING = "Python's garbage collection"
    SLEEP = "the host slept"
    READ = "the host read values from the device"
    KERNELS = "between kernels of one program"
    EAGER = "operations dispatched one by one"
    COPY = "preparing a copy to the device"
    LAUNCH = "launching the kernels of one program"
    DISPATCH = "dispatching a program"
    WAIT = "the host waited for the device, or did something short that the trace does not show"
    ANNOTATED = "the host's own work"
    PYTHON = "Python"
    BACKGROUND = "another thread's work"
    UNSEEN = "the host did something that the trace does not show"


#: The same in a word or two, where there is little room.
SHORT: dict[Cause, str] = {
    Cause.COMPILING: "compiling",
    Cause.CALLBACK: "host callback",
    Cause.COLLECTING: "garbage collection",
    Cause.SLEEP: "sleep",
    Cause.READ: "reading values",
    Cause.KERNELS: "between kernels",
    Cause.EAGER: "single operations",
    Cause.COPY: "preparing a copy",
    Cause.LAUNCH: "launching kernels",
    Cause.DISPATCH: "dispatching",
    Cause.WAIT: "waiting, or not shown",
    Cause.ANNOTATED: "host's own work",
    Cause.PYTHON: "Python",
    Cause.BACKGROUND: "another thread",
    Cause.UNSEEN: "not shown",
}

#: Causes that are the host's own work, outside JAX.
HOST_WORK = (Cause.COLLECTING, Cause.SLEEP, Cause.ANNOTATED, Cause.PYTHON, Cause.BACKGROUND, Cause.UNSEEN)


@dataclass(frozen=True)
class IdleTime:
    """One device's idle time in the window by cause; the sets are disjoint, and together all of it but the
    fence's."""

    device: DeviceUse
    by_cause: dict[Cause, Intervals]

    def total_ns(self, *causes: Cause) -> float:
        """Give how long the device rested for some causes."""
        return sum(self.by_cause[cause].total_ns for cause in causes if cause in self.by_cause)

    def of(self, *causes: Cause) -> Intervals:
        """Give the idle time of some causes."""
        return united([self.by_cause[cause] for cause in causes if cause in self.by_cause])


@dataclass(frozen=True)
class Waits:
    """When the host waited for the devices. `waited`: told by its silence, or seen; `woke`: short silences
    beside idle devices, which may be the end of a wait; `read`: what copies to the host tell of a silence."""

    waited: Intervals
    woke: Intervals
    read: Intervals = NONE


def find_waits(timeline: Timeline, host: HostUse, devices: Sequence[DeviceUse]) -> Waits:
    """Tell waiting from work that isn't shown, by when the host falls silent and when it speaks again.

    A silence that begins while the devices work and ends shortly after they have finished is most likely
    the wait for them; one that lasts on is not, whatever it is.
    """
    quiet = host.quiet
    busy = NONE
    for use in devices:
        busy = busy | use.busy
    if not len(quiet) or not len(busy):
        return Waits(host.wait | host.read, NONE)
    # The devices' last moment of work in each silence
    place = np.searchsorted(busy.start_ns, quiet.end_ns, side="left") - 1
    known = place >= 0
    done = np.where(known, np.minimum(busy.end_ns[np.maximum(place, 0)], quiet.end_ns), quiet.start_ns)
    before, after = busy.covered(quiet.start_ns, np.maximum(done, quiet.start_ns)), quiet.end_ns - done
    waited = known & (after > 0) & (after <= thresholds.LONGEST_WAKE_NS)
    waited &= (before > 0) & (before >= thresholds.WAIT_BEFORE_TO_AFTER * after)
    # Any short silence beside an idle device may be the end of a wait that began before it
    short = quiet - busy
    woke = short.lengths_ns <= thresholds.LONGEST_WAKE_NS
    read = _silent_reads(timeline, quiet, devices)
    # A silence that ends while the devices still work is no wait for all of it, yet nothing is lost in it
    return Waits(
        waited=union(quiet.start_ns[waited], quiet.end_ns[waited]) | host.wait | host.read | read,
        read=read,
        woke=union(short.start_ns[woke], short.end_ns[woke]),
    )


def _silent_reads(timeline: Timeline, quiet: Intervals, devices: Sequence[DeviceUse]) -> Intervals:
    """When the silent host read a value, told by the copy alone: from the call that started the copy to its
    end, and what the host needs to wake up from it."""
    ops = timeline.ops
    rows = np.concatenate([use.rows for use in devices])
    rows = rows[is_scalar_read(ops, rows)]
    begins, ends = (
        launch_times(timeline.calls, ops.correlation[rows]),
        ops.start_ns[rows] + ops.duration_ns[rows],
    )
    begins = np.where(np.isnan(begins), ops.start_ns[rows], np.minimum(begins, ops.start_ns[rows]))
    return quiet & union(begins, ends + thresholds.USUAL_WAKE_NS)


def is_scalar_read(ops: DeviceOps, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which are copies of a few values to the host that no compiled program makes itself."""
    return (
        (ops.kind[rows] == OpKind.COPY)
        & (ops.copy_kind[rows] == CopyKind.DEVICE_TO_HOST)
        & (ops.module[rows] == 0)
        & (ops.size_bytes[rows] <= thresholds.SCALAR_BYTES)
    )


def explain_idle(
    timeline: Timeline, use: DeviceUse, host: HostUse, waits: Waits, programs: Programs, fenced: Intervals
) -> IdleTime:
    """Give each moment of a device's idle time to its cause, but what this project's fence took to none."""
    between = _gaps_by_neighbours(timeline, use, host, programs)
    # A copy is prepared on any thread, and holds the device up where the leading one has nothing else to do
    leading_works = (host.python | host.working) - (host.dispatch | host.wait | host.read)
    copying = (host.staging - leading_works) | host.own_staging
    order: tuple[tuple[Cause, Intervals], ...] = (
        (Cause.COMPILING, host.compiling),
        (Cause.CALLBACK, host.callback),
        (Cause.COLLECTING, host.collecting),
        (Cause.SLEEP, host.sleep),
        (Cause.READ, host.read | waits.read),
        (Cause.KERNELS, between.kernels),
        (Cause.EAGER, between.eager),
        (Cause.COPY, copying),
        (Cause.LAUNCH, between.launch),
        (Cause.DISPATCH, host.dispatch),
        (Cause.WAIT, host.wait),
        (Cause.ANNOTATED, host.working),
        (Cause.COPY, NONE if len(host.staging) else _rests_for_staging(timeline, use)),
        (Cause.WAIT, waits.woke),
        (Cause.ANNOTATED, host.annotated),
        (Cause.PYTHON, host.python),
        (Cause.BACKGROUND, host.background),
    )
    rest, by_cause = use.idle - fenced, dict[Cause, Intervals]()
    for cause, when in order:
        if len(when) and len(rest):
            part = rest & when
            if len(part):
                by_cause[cause] = by_cause[cause] | part if cause in by_cause else part
                rest = rest - when
    if len(rest):
        by_cause[Cause.UNSEEN] = rest
    return IdleTime(use, by_cause)


def _rests_for_staging(timeline: Timeline, use: DeviceUse) -> Intervals:
    """Find the rests right before large copies to the device that may be filling the pinned buffer.

    For recordings that don't show this: reports of Nsight Systems, and files whose host can't be read.
    """
    ops, idle = timeline.ops, use.idle
    rows = use.rows[
        (ops.copy_kind[use.rows] == CopyKind.HOST_TO_DEVICE)
        & (ops.module[use.rows] == 0)
        & (ops.size_bytes[use.rows] >= thresholds.LEAST_STAGED_BYTES)
    ]
    if not len(rows) or not len(idle):
        return NONE
    starts = ops.start_ns[rows]
    copy = np.minimum(np.searchsorted(starts, idle.end_ns), len(rows) - 1)
    longest_ns = ops.size_bytes[rows[copy]] / thresholds.SLOWEST_STAGING_BYTES_PER_S * 1e9
    fits = (starts[copy] == idle.end_ns) & (idle.lengths_ns <= longest_ns + thresholds.USUAL_WAKE_NS)
    return Intervals(idle.start_ns[fits], idle.end_ns[fits])


@dataclass(frozen=True)
class _Between:
    eager: Intervals
    kernels: Intervals
    launch: Intervals


def _gaps_by_neighbours(timeline: Timeline, use: DeviceUse, host: HostUse, programs: Programs) -> _Between:
    """Find the gaps that what ran before and after them explains."""
    ops, rows = timeline.ops, use.rows
    starts, ends = ops.start_ns[rows], ops.start_ns[rows] + ops.duration_ns[rows]
    gap_start, gap_end = use.idle.start_ns, use.idle.end_ns
    if not len(gap_start):
        return _Between(NONE, NONE, NONE)
    after = np.searchsorted(starts, gap_end, side="left")
    before = np.searchsorted(np.maximum.accumulate(ends), gap_start, side="left")
    bounded = (after < len(rows)) & (before < len(rows)) & (gap_start >= starts[0])
    after, before = np.minimum(after, len(rows) - 1), np.minimum(before, len(rows) - 1)
    program_after = np.where(bounded, programs.of_op[rows[after]], -1)
    program_before = np.where(bounded, programs.of_op[rows[before]], -2)
    length = gap_end - gap_start

    def gaps(chosen: NDArray[np.bool_]) -> Intervals:
        return Intervals(gap_start[chosen], gap_end[chosen])

    eager_program = np.append(programs.eager, False)  # the last is for 'no program'
    eager = eager_program[program_after] & (length <= thresholds.LONGEST_EAGER_GAP_NS)
    same = (program_before == program_after) & (program_after >= 0) & ~eager
    kernels = same & (length <= thresholds.KERNEL_GAP_NS)
    # One dispatch around the whole gap that began before the operation in front of it: both are of one run
    dispatch = host.dispatch
    place = np.searchsorted(dispatch.start_ns, gap_start, side="right") - 1
    known = np.maximum(place, 0)
    if len(dispatch):
        one_run = (
            (place >= 0) & (gap_end <= dispatch.end_ns[known]) & (starts[before] >= dispatch.start_ns[known])
        )
    else:
        one_run = np.zeros(len(length), dtype=np.bool_)
    return _Between(gaps(eager), gaps(kernels), gaps(same & ~kernels & one_run))


def who(
    timeline: Timeline,
    rows: NDArray[np.intp],
    pieces: Intervals,
    *,
    at_least: float = thresholds.INNERMOST_SHARE,
) -> list[tuple[str, float]]:
    """Give the names of the host ranges that cover some time, with how much (ns), the best one first.

    The best is the innermost of those that cover nearly all that any covers: of `train` and the `load` in
    it, `load`, if that is where the time is.
    """
    ranges: HostRanges = timeline.ranges
    if not len(rows) or not len(pieces):
        return []
    starts = ranges.start_ns[rows]
    covered = pieces.covered(starts, starts + ranges.duration_ns[rows])
    hit = covered > 0
    names, covered, lengths = ranges.name[rows][hit], covered[hit], ranges.duration_ns[rows][hit]
    if not len(names):
        return []
    size = int(names.max()) + 1
    total, whole = np.bincount(names, covered, size), np.bincount(names, lengths, size)
    best = total.max()
    candidates = np.flatnonzero(total >= at_least * best)
    chosen = int(candidates[np.argmin(whole[candidates])])
    others = [int(name) for name in np.argsort(-total) if total[name] > 0 and name != chosen][:9]
    return [(timeline.text(name), float(total[name])) for name in (chosen, *others)]
