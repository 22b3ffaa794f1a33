"""What all patterns need to know of a timeline, found once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jupyterlab_jaxprof.timeline.intervals import Intervals
from jupyterlab_jaxprof.timeline.model import CopyKind, Floats, HostMemory, Source, Timeline

from . import thresholds
from .compiles import Compiled, compiled_functions
from .devices import DeviceUse, use_of_devices
from .fence import without_fence
from .finding import Level, Range
from .gaps import Cause, IdleTime, Waits, explain_idle, find_waits
from .grouping import largest
from .host import HostUse, classify, use_of_hosts
from .programs import Programs, find_programs
from .window import OtherSteps, StepTable, Window, choose_windows, main_steps, other_steps


@dataclass(frozen=True)
class Analysis:
    """A timeline without this project's fence, and what follows from it in the window.

    Each process is judged in a window of its own, since the clocks of two hosts may differ and one may begin
    earlier; `window` is that of the process that leads, whose `steps` these are.
    """

    timeline: Timeline
    fenced: Intervals
    steps: StepTable | None
    window: Window
    windows: dict[int, Window]
    devices: list[DeviceUse]
    work: NDArray[np.int8]
    hosts: dict[int, HostUse]
    waits: dict[int, Waits]
    programs: Programs
    idle: list[IdleTime]

    @cached_property
    def host(self) -> HostUse:
        """The host that leads: that of the steps, else of the first device."""
        if self.steps is not None:
            return self.hosts[self.steps.process]
        if self.devices:
            return self.hosts[self.devices[0].process]
        return next(iter(self.hosts.values()), HostUse(process=0, thread=-1))

    @cached_property
    def busy_share(self) -> float:
        """The devices' mean busy share of the window."""
        return self.share(self.mean(lambda use: use.busy.total_ns)) if self.devices else 0.0

    @cached_property
    def length_ns(self) -> float:
        """How long a device was watched, as the mean of the devices."""
        lengths = [self.windows[use.process].length_ns for use in self.devices]
        return float(np.mean(lengths)) if lengths else self.window.length_ns

    @cached_property
    def extent(self) -> tuple[float, float]:
        """The time from the first of the processes' windows' starts to the last of their ends."""
        used = [self.windows[use.process] for use in self.devices] or [self.window]
        return min(one.start_ns for one in used), max(one.end_ns for one in used)

    @cached_property
    def compiling(self) -> Intervals:
        """When the leading thread compiled."""
        return self.host.compiling

    @cached_property
    def compiled(self) -> list[Compiled]:
        """The functions for which programs were made in the window."""
        return compiled_functions(self.timeline, self.window, self.steps, self.host.process, self.host.thread)

    @cached_property
    def steady_ns(self) -> float:
        """The window without what was compiled: what repeats is judged by its share of this."""
        return max(self.length_ns - self.compiling.total_ns, 1.0)

    @cached_property
    def waited_by_us(self) -> bool:
        """Whether this project's own fence waited for every step: `%%jaxtrace --steps` does."""
        return len(self.fenced) > 0 and self.in_every_step(self.fenced.start_ns)

    @cached_property
    def step_count(self) -> int:
        """How many steps are marked; 0 where none are."""
        return 0 if self.steps is None else len(self.steps)

    @cached_property
    def worked_on_ns(self) -> float:
        """How long the devices worked on after the last step's marker, where the markers end early; else 0.

        Markers that end early time how long dispatching takes.
        """
        steps = self.steps
        if steps is None or not self.devices or len(steps) < thresholds.FEWEST_EARLY:
            return 0.0
        last_ns, end_ns = float(steps.end_ns[-1]), self.window.end_ns
        later_ns = self.mean(lambda use: float(use.busy.covered(last_ns, end_ns)))
        # Where each step is waited for, the devices are done when its marker ends
        amid_work = float(np.mean(self.devices[0].busy.contain(steps.end_ns[1:])))
        early = later_ns >= thresholds.EARLY_SHARE * self.length_ns
        return later_ns if early and amid_work >= thresholds.EVERY_STEP_SHARE else 0.0

    @cached_property
    def marks_dispatch(self) -> bool:
        """Whether the steps' markers end long before their work: they time how long dispatching takes."""
        return self.worked_on_ns > 0

    @property
    def marks_unknown(self) -> bool:
        """Whether nothing tells if the markers wait for their work: an XProf trace in which no device is."""
        return not self.devices and self.timeline.source is Source.XPLANE

    @cached_property
    def other_steps(self) -> list[OtherSteps]:
        """The marked steps of the leading process that aren't the `steps`, by their name."""
        return [] if self.steps is None else other_steps(self.timeline, self.steps)

    @cached_property
    def device_ns_per_step(self) -> float | None:
        """How long the devices work for one step; None where it can't be told apart from other steps'."""
        if self.steps is None or not self.devices:
            return None
        if all(one.around for one in self.other_steps):
            return self.mean(lambda use: use.busy.total_ns) / len(self.steps)
        if self.marks_dispatch:
            return None
        starts, ends = self.steps.start_ns, self.steps.end_ns
        return self.mean(lambda use: float(use.busy.covered(starts, ends).sum())) / len(self.steps)

    def mean(self, measure: Callable[[DeviceUse], float]) -> float:
        """Give the mean of something over the devices that worked."""
        return float(np.mean([measure(use) for use in self.devices])) if self.devices else 0.0

    def idle_ns(self, *causes: Cause) -> float:
        """Give how long the devices rested for these causes, as the mean of the devices."""
        return float(np.mean([idle.total_ns(*causes) for idle in self.idle])) if self.idle else 0.0

    def share(self, lost_ns: float) -> float:
        """Give the share of the window."""
        return lost_ns / self.length_ns if self.length_ns > 0 else 0.0

    def level(self, lost_ns: float) -> Level | None:
        """Judge time that is lost again and again; None where it is too little to speak of.

        It counts as a share of the time outside compiling: what was compiled once here won't be in a longer
        run. Where hardly anything but compiling was recorded, it is a note at most.
        """
        share, steady = self.share(lost_ns), lost_ns / self.steady_ns
        if steady < thresholds.PROBLEM_SHARE:
            worth = steady >= thresholds.NOTE_SHARE and share >= thresholds.LEAST_NOTE_SHARE
            return Level.NOTE if worth else None
        mostly_steady = self.steady_ns >= 0.5 * self.length_ns
        return Level.PROBLEM if mostly_steady or share >= thresholds.PROBLEM_SHARE else Level.NOTE

    def in_every_step(self, times_ns: Floats | NDArray[np.float64]) -> bool:
        """Tell whether something that begins at these times happens in (nearly) every step.

        A step lasts to the next one's start. Without steps it can't be told, and is taken for true when it
        happens often enough.
        """
        if self.steps is None:
            return len(times_ns) >= thresholds.FEWEST_STEPS
        return float(np.mean(self.per_step(times_ns) > 0)) >= thresholds.EVERY_STEP_SHARE

    def periods(self) -> tuple[Floats, Floats]:
        """Give the starts and ends of the steps, each lasting to the next one's start; the last one to the
        window's end."""
        assert self.steps is not None
        starts = self.steps.start_ns
        return starts, np.append(starts[1:], max(self.window.end_ns, float(self.steps.end_ns[-1])))

    def per_step(self, times_ns: Floats | NDArray[np.float64]) -> NDArray[np.int64]:
        """Count what begins in each step, which lasts to the next one's start."""
        assert self.steps is not None
        step = np.searchsorted(self.steps.start_ns, times_ns, side="right") - 1
        return np.bincount(step[step >= 0], minlength=len(self.steps)).astype(np.int64)

    def longest(self, intervals: Intervals, label: str, count: int = thresholds.RANGES) -> list[Range]:
        """Give the longest of some intervals as ranges to look at, in the order of time."""
        chosen = np.sort(largest(intervals.lengths_ns, count))
        return [Range(float(intervals.start_ns[i]), float(intervals.end_ns[i]), label) for i in chosen]


def is_staged(analysis: Analysis, rows: NDArray[np.intp]) -> bool:
    """Tell whether these copies to a device are of arrays in pageable memory, which JAX brings into a pinned
    buffer first: the device then copies from pinned memory, and filling the buffer takes the time."""
    ops = analysis.timeline.ops
    pinned = (ops.copy_kind[rows] == CopyKind.HOST_TO_DEVICE) & (ops.host_memory[rows] == HostMemory.PINNED)
    if not analysis.devices or np.mean(pinned) <= 0.5:
        return False
    if float(np.mean(ops.size_bytes[rows])) < thresholds.LEAST_ARRAY_BYTES:
        return False
    staged_ns = analysis.hosts[analysis.devices[0].process].staging.total_ns
    return staged_ns > float(ops.duration_ns[rows].sum())


def analyse(timeline: Timeline) -> Analysis:
    """Find what all patterns need to know."""
    timeline, fenced = without_fence(timeline)
    every_steps = main_steps(timeline)
    windows = choose_windows(timeline, every_steps)
    steps = every_steps[0] if every_steps else None
    devices = use_of_devices(timeline, windows)
    leading = steps.process if steps is not None else devices[0].process if devices else min(windows)
    work = classify(timeline)
    hosts = use_of_hosts(timeline, windows, every_steps, work)
    programs = find_programs(timeline, devices)
    waits = {
        process: find_waits(timeline, host, [use for use in devices if use.process == process])
        for process, host in hosts.items()
    }
    idle = [
        explain_idle(timeline, use, hosts[use.process], waits[use.process], programs, fenced)
        for use in devices
    ]
    return Analysis(
        timeline, fenced, steps, windows[leading], windows, devices, work, hosts, waits, programs, idle
    )
