"""What the host did, as sets of intervals: compiling, dispatching, copying, waiting, the user's own work.

A name says what a range is; the patterns below are those of JAX, XLA and PJRT as traces and reports show
them. Whatever matches none is the host's own work and is told by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union_of
from jupyterlab_jaxprof.timeline.model import CopyKind, Floats, HostRanges, Numbers, RangeKind, Timeline

from .compiles import leading
from .window import StepTable, Window


class Work(IntEnum):
    """What a range of the host is."""

    OTHER = 0
    DISPATCH = 1  # bringing a compiled program to the device
    STAGING = 2  # preparing a copy to the device
    READ = 3  # bringing a value to the host and waiting for it
    WAIT = 4  # waiting for the device
    CALLBACK = 5  # Python called from inside a compiled program
    COLLECTING = 6  # Python's garbage collection
    SLEEP = 7


_RUNTIME: tuple[tuple[re.Pattern[str], Work], ...] = (
    (re.compile(r"ThenExecuteCallback|CreateCallbackStream|ThreadpoolListener"), Work.OTHER),
    (re.compile(r"(pure|io|debug|host)_callback|debug_print|python_(gpu|cpu)_callback"), Work.CALLBACK),
    (
        re.compile(r"^np\.asarray\(jax\.Array\)|copy_to_host_async|ToLiteral|CopyRawDeviceToHost|^D2H "),
        Work.READ,
    ),
    (
        re.compile(
            r"^H2D |^Transpose::|CopyRawHostToDevice|BufferFromHost|LinearizeInto|^DevicePut"
            r"|^shard_args|^batched_device_put|^MemcpyH2D"
        ),
        Work.STAGING,
    ),
    (re.compile(r"BlockHostUntilReady|Buffer::Await|block_until_ready"), Work.WAIT),
    (
        re.compile(r"^PjitFunction\(|Executable::Execute|LoadedExecutable_Execute|^XlaModule(:|$)"),
        Work.DISPATCH,
    ),
)
# The Python tracer's names: `file.py:12 function`, and `module function` for what is written in C
_PYTHON: tuple[tuple[re.Pattern[str], Work], ...] = (
    (re.compile(r"^time sleep$"), Work.SLEEP),
    (re.compile(r"^gc collect$"), Work.COLLECTING),
    (re.compile(r"\bblock_until_ready$"), Work.WAIT),
    (
        re.compile(
            r"^array\.py:\d+ (_value|__array__|__float__|__int__|__bool__|__format__|__repr__|item|tolist)$"
        ),
        Work.READ,
    ),
)
# An annotation that says it waits, and not for data
_MARKED: tuple[tuple[re.Pattern[str], Work], ...] = (
    (re.compile(r"^(?!.*(data|batch|load|input|queue|file|fetch)).*\b_?(block|wait|sync)", re.I), Work.WAIT),
)
_SYSTEM: tuple[tuple[re.Pattern[str], Work], ...] = ((re.compile(r"nanosleep|usleep|^sleep"), Work.SLEEP),)
# Frames that are shorter than this add nothing to the ones around them
_SHORTEST_FRAME_NS = 10e3


@dataclass(frozen=True)
class HostUse:
    """What the host did for the devices of one process.

    `thread` is the one that leads: that of the steps, else the one that dispatches most; -1 where none does.
    What it did itself is in `compiling` to `python`; `staging` is any thread's, `background` is what other
    threads have annotated or compiled (`compiling_beside`).
    `working` and `python` are annotations and Python functions in which nothing is
    dispatched or read: around a dispatch the host may as well wait for the device, which nothing shows.
    `quiet` are the stretches in which the leading thread is seen to do none of these, cut at the ends of
    steps and annotations.
    """

    process: int
    thread: int
    compiling: Intervals = NONE
    callback: Intervals = NONE
    collecting: Intervals = NONE
    sleep: Intervals = NONE
    read: Intervals = NONE
    staging: Intervals = NONE
    own_staging: Intervals = NONE
    dispatch: Intervals = NONE
    wait: Intervals = NONE
    working: Intervals = NONE
    annotated: Intervals = NONE
    python: Intervals = NONE
    background: Intervals = NONE
    compiling_beside: Intervals = NONE
    quiet: Intervals = NONE
    annotations: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    frames: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    working_frames: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def classify(timeline: Timeline) -> NDArray[np.int8]:
    """Give what each range of the host is, by its name; only names that occur are looked at."""
    ranges = timeline.ranges
    work = np.zeros(len(ranges), dtype=np.int8)
    if not len(ranges):
        return work
    rules = {
        RangeKind.PYTHON: _PYTHON,
        RangeKind.SYSTEM: _SYSTEM,
        RangeKind.RUNTIME: _RUNTIME,
        RangeKind.ANNOTATION: (*_RUNTIME[:5], *_MARKED),  # JAX annotates its own reads and copies
    }
    for kind, patterns in rules.items():
        of_kind = np.flatnonzero(ranges.kind == kind)
        work[of_kind] = _matched(timeline.texts, ranges.name[of_kind], patterns)
    # A report's ranges say in their detail what they run: `hlo_op=pure_callback.1`
    thunks = (
        np.flatnonzero(np.isin(ranges.name, timeline.find("Thunk"))) if timeline.find("Thunk").size else ()
    )
    if len(thunks):
        work[thunks] = _matched(timeline.texts, ranges.detail[thunks], _RUNTIME[1:2])
    return work


def _matched(
    texts: Sequence[str], column: Numbers, patterns: Sequence[tuple[re.Pattern[str], Work]]
) -> NDArray[np.int8]:
    """Give the work of the first pattern that fits each row's text; each text is looked at once."""
    table = np.zeros(len(texts), dtype=np.int8)
    for number in np.flatnonzero(np.bincount(column)).tolist():
        text = texts[number]
        table[number] = next((work for pattern, work in patterns if pattern.search(text)), Work.OTHER)
    return table[column]


def use_of_hosts(
    timeline: Timeline,
    windows: Mapping[int, Window],
    every_steps: Sequence[StepTable],
    work: NDArray[np.int8],
) -> dict[int, HostUse]:
    """Give what the host of each process did in the window."""
    ranges = timeline.ranges
    end_ns = ranges.start_ns + ranges.duration_ns
    processes = np.array([thread.process for thread in timeline.threads], dtype=np.int64)
    steps_of = {steps.process: steps for steps in every_steps}
    uses: dict[int, HostUse] = {}
    for process, window in windows.items():
        inside = (ranges.start_ns < window.end_ns) & (end_ns > window.start_ns)
        if len(windows) > 1:
            inside &= (processes == process)[ranges.thread]
        rows = np.flatnonzero(inside)
        uses[process] = _use(timeline, window, steps_of.get(process), process, rows, work[rows], processes)
    return uses


def _leading_thread(
    timeline: Timeline, steps: StepTable | None, rows: NDArray[np.intp], work: NDArray[np.int8]
) -> int:
    """The thread of the steps; else the one that dispatches longest; else the one annotated longest; else the
    one that launches most."""
    if steps is not None:
        return steps.thread
    ranges = timeline.ranges
    annotated = ranges.kind[rows] == RangeKind.ANNOTATION
    for chosen in (work == Work.DISPATCH, annotated):
        if chosen.any():
            weights = ranges.duration_ns[rows[chosen]]
            return int(np.bincount(ranges.thread[rows[chosen]], weights=weights).argmax())
    launching = timeline.calls.thread[timeline.calls.launches]
    return int(np.bincount(launching).argmax()) if len(launching) and len(timeline.devices) == 1 else -1


def _use(
    timeline: Timeline,
    window: Window,
    steps: StepTable | None,
    process: int,
    rows: NDArray[np.intp],
    work: NDArray[np.int8],
    processes: NDArray[np.int64],
) -> HostUse:
    ranges = timeline.ranges
    thread = _leading_thread(timeline, steps, rows, work)
    threads, kinds = ranges.thread[rows], ranges.kind[rows]
    # Threads without anything of the user's own are the runtime's: they launch for the leading one
    of_user = (kinds == RangeKind.ANNOTATION) | (kinds == RangeKind.PYTHON)
    users = np.bincount(threads[of_user], minlength=len(timeline.threads)) > 0
    known = np.flatnonzero(work)
    known_rows, known_work, own = rows[known], work[known], threads[known] == thread
    helping = own | ~users[threads[known]]

    def united(kind: Work, of_threads: NDArray[np.bool_]) -> Intervals:
        return _united(ranges, known_rows[(known_work == kind) & of_threads], window)

    dispatch = united(Work.DISPATCH, helping) | _launching(timeline, thread, window)
    handed = np.sort(np.concatenate([dispatch.start_ns, _reads(timeline, process)]))
    annotations, others, frames = _of_user(ranges, thread, rows, work, steps)
    working_frames = _without(ranges, frames, handed)
    compiling, compiling_beside = _compiling(timeline, window, process, processes, thread)
    own_sets = {
        "compiling": compiling,
        "callback": united(Work.CALLBACK, helping),
        "collecting": united(Work.COLLECTING, own),
        "sleep": united(Work.SLEEP, own),
        "read": united(Work.READ, own),
        "own_staging": united(Work.STAGING, own),
        "wait": united(Work.WAIT, own) | _synchronising(timeline, thread, window),
        "dispatch": dispatch,
        "working": _united(ranges, _without(ranges, annotations, handed), window),
        "python": _united(ranges, working_frames, window),
    }
    return HostUse(
        process=process,
        thread=thread,
        staging=united(Work.STAGING, np.ones_like(own)),
        annotated=_united(ranges, annotations, window),
        background=_united(ranges, others, window) | compiling_beside,
        compiling_beside=compiling_beside,
        quiet=_quiet(own_sets.values(), ranges, annotations, steps, window),
        annotations=annotations,
        frames=frames,
        working_frames=working_frames,
        **own_sets,
    )


def _of_user(
    ranges: HostRanges,
    thread: int,
    rows: NDArray[np.intp],
    work: NDArray[np.int8],
    steps: StepTable | None,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Give the leading thread's annotations, those of other threads, and the leading thread's Python."""
    named = ranges.name[rows] != 0  # what has no name explains nothing
    annotated = rows[(ranges.kind[rows] == RangeKind.ANNOTATION) & (work == Work.OTHER) & named]
    own = ranges.thread[annotated] == thread
    annotations, others = annotated[own], annotated[~own]
    if steps is not None:  # what is around a step, or is the step itself, tells nothing about its parts
        annotations = annotations[~_around_steps(ranges, annotations, steps)]
    long = rows[ranges.duration_ns[rows] >= _SHORTEST_FRAME_NS]
    frames = long[(ranges.kind[long] == RangeKind.PYTHON) & (ranges.thread[long] == thread)]
    return annotations, others, frames


def _quiet(
    own_sets: Iterable[Intervals],
    ranges: HostRanges,
    annotations: NDArray[np.intp],
    steps: StepTable | None,
    window: Window,
) -> Intervals:
    """When the leading thread did none of these, cut at the ends of steps and annotations."""
    seen = NONE
    for intervals in own_sets:
        seen = seen | intervals
    cuts = [ranges.start_ns[annotations], ranges.start_ns[annotations] + ranges.duration_ns[annotations]]
    if steps is not None:
        cuts += [steps.start_ns, steps.end_ns]
    return _cut(seen.gaps(window.start_ns, window.end_ns), np.concatenate(cuts))


def _compiling(
    timeline: Timeline, window: Window, process: int, processes: NDArray[np.int64], thread: int
) -> tuple[Intervals, Intervals]:
    """When the leading thread of a process compiled, and when others did."""
    compiles = timeline.compiles
    if len(compiles) and len(processes):
        own = leading(timeline, process, thread)
        of_process = processes[compiles.thread] == process
    else:
        own = of_process = np.ones(len(compiles), dtype=np.bool_)
    sets = (compiles.take(of_process & own), compiles.take(of_process & ~own))
    own_time, others = (
        union_of(rows.start_ns, rows.duration_ns).clip(window.start_ns, window.end_ns) for rows in sets
    )
    return own_time, others


def _launching(timeline: Timeline, thread: int, window: Window) -> Intervals:
    """When a thread launched kernels or graphs: all that a report without XLA's ranges has of dispatches."""
    calls = timeline.calls
    rows = np.flatnonzero(calls.launches & (calls.thread == thread))
    return union_of(calls.start_ns[rows], calls.duration_ns[rows]).clip(window.start_ns, window.end_ns)


def _synchronising(timeline: Timeline, thread: int, window: Window) -> Intervals:
    """When a thread waited in CUDA itself."""
    calls = timeline.calls
    waiting = np.zeros(len(timeline.texts), dtype=np.bool_)
    for number in np.flatnonzero(np.bincount(calls.name)).tolist():
        waiting[number] = timeline.texts[number].endswith("Synchronize")
    rows = np.flatnonzero(waiting[calls.name] & (calls.thread == thread))
    return union_of(calls.start_ns[rows], calls.duration_ns[rows]).clip(window.start_ns, window.end_ns)


def _reads(timeline: Timeline, process: int) -> Floats:
    """When values were copied to the host from the devices of a process."""
    ops = timeline.ops
    own = np.array([device.process == process for device in timeline.devices], dtype=np.bool_)
    copies = np.flatnonzero(ops.copy_kind == CopyKind.DEVICE_TO_HOST)
    return ops.start_ns[copies[own[ops.device[copies]]]]


def _without(ranges: HostRanges, rows: NDArray[np.intp], times_ns: Floats) -> NDArray[np.intp]:
    """Give the ranges that none of these (ascending) times lies in."""
    starts = ranges.start_ns[rows]
    ends = starts + ranges.duration_ns[rows]
    return rows[np.searchsorted(times_ns, ends) == np.searchsorted(times_ns, starts)]


def _around_steps(ranges: HostRanges, rows: NDArray[np.intp], steps: StepTable) -> NDArray[np.bool_]:
    """Tell which ranges hold at least one whole step."""
    starts = ranges.start_ns[rows]
    first = np.searchsorted(steps.start_ns, starts, side="left")
    known = first < len(steps)
    return known & (steps.end_ns[np.minimum(first, len(steps) - 1)] <= starts + ranges.duration_ns[rows])


def _united(ranges: HostRanges, rows: NDArray[np.intp], window: Window) -> Intervals:
    return union_of(ranges.start_ns[rows], ranges.duration_ns[rows]).clip(window.start_ns, window.end_ns)


def _cut(intervals: Intervals, times_ns: NDArray[np.float64]) -> Intervals:
    """Cut intervals at these times, so that what touches stays apart."""
    inside = np.unique(times_ns[intervals.contain(times_ns)]) if len(times_ns) else times_ns
    starts = np.unique(np.concatenate([intervals.start_ns, inside]))
    ends = np.unique(np.concatenate([intervals.end_ns, inside[~np.isin(inside, intervals.start_ns)]]))
    return Intervals(starts, ends)
