"""Running a body again and again: how often, in loops of what length, and which of the runs count."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from jupyterlab_jaxprof.cell import Barrier, Run, described
from jupyterlab_jaxprof.timing.bodies import Body, GcPauses, holders_of_deleted
from jupyterlab_jaxprof.timing.compiles import Recorder

#: A sample of a short body is a loop: long enough for the clock, and for the wait at its end not to count.
SHORTEST_SAMPLE_NS = 1_000_000
FENCES_IN_SAMPLE = 200
MAX_SAMPLES = 100_000
MAX_LOOPS = 1_000_000
_FENCES_TIMED = 5
_INTERRUPTED = "What was measured until the interrupt is kept."


@dataclass(frozen=True)
class Plan:
    """What the user asked for: a number of repeats, seconds of repeating, or both (then both are reached).

    `loops` is how many runs of the body make one sample, None to choose it; `warmup` is how many runs before
    the samples are left out, beside those by which the loops are chosen.
    """

    repeats: int = 0
    seconds: float = 0.0
    loops: int | None = None
    warmup: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 0 or self.repeats > MAX_SAMPLES:
            raise ValueError(f"The number of repeats must be from 0 to {MAX_SAMPLES:,}.")
        if not 0 <= self.seconds < math.inf:
            raise ValueError("The seconds of repeating must be a number from 0 on.")
        if self.loops is not None and not 1 <= self.loops <= MAX_LOOPS:
            raise ValueError(f"The number of loops must be from 1 to {MAX_LOOPS:,}.")
        if self.warmup < 0:
            raise ValueError("The number of warm-up runs must be 0 or more.")

    @property
    def asked(self) -> bool:
        """Whether the body is to be repeated at all."""
        return self.repeats > 0 or self.seconds > 0


@dataclass(frozen=True)
class Sample:
    """One sample: `loops` runs of the body in a row. Times are of one run, in ns."""

    loops: int
    time_ns: float
    returned_ns: float
    gc_ns: float

    @classmethod
    def of(cls, run: Run, loops: int, gc_ns: int) -> Sample:
        """Make the sample of a run."""
        took_ns, returned_ns = run.done_ns - run.started_ns, run.returned_ns - run.started_ns
        return cls(loops, took_ns / loops, returned_ns / loops, gc_ns / loops)


@dataclass
class Repeats:
    """The repeats of a body: the samples that count, and what became of the rest.

    `compiled` is how many samples were left out because something compiled in them; `stopped` is a sentence
    about why repeating ended early, empty when it did not; `error` is the interrupt or error that ended it.
    """

    samples: list[Sample] = field(default_factory=lambda: [])
    compiled: int = 0
    stopped: str = ""
    error: BaseException | None = None
    notices: list[str] = field(default_factory=lambda: [])

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return isinstance(self.error, KeyboardInterrupt)

    @property
    def times_ms(self) -> list[float]:
        """The time of one run, a sample each, in the order in which they were taken."""
        return [sample.time_ns / 1e6 for sample in self.samples]


class _Stop(Exception):
    def __init__(self, sentence: str, error: BaseException | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.error = error


_underway = 0


def repeating() -> bool:
    """Whether a body is being repeated: a measurement within one that is gets measured, and not kept."""
    return _underway > 0


@contextlib.contextmanager
def _repeated() -> Generator[None]:
    global _underway
    _underway += 1
    try:
        yield
    finally:
        _underway -= 1


async def repeat(body: Body, plan: Plan, recorder: Recorder) -> Repeats:
    """Run a body again, after its first run has ended well, as `plan` says.

    The body's output is swallowed, and its errors end the repeats: they never come out of here.
    """
    repeats = Repeats()
    deleted = holders_of_deleted(body.used())
    if deleted:
        repeats.stopped = (
            f"Not repeated: the first run donated or deleted {', '.join(deleted)}, which it needs again. To "
            "make it repeatable, assign what comes back to the same name (x = step(x))."
        )
        return repeats
    with _swallowed() as output, _repeated():
        try:
            await _Repeater(body, plan, recorder, repeats).run()
        except _Stop as stop:
            repeats.stopped, repeats.error = stop.sentence, stop.error
        except KeyboardInterrupt as error:  # between two runs
            repeats.stopped, repeats.error = _INTERRUPTED, error
    repeats.notices += output.notices() + _compile_notices(repeats)
    return repeats


class _Repeater:
    def __init__(self, body: Body, plan: Plan, recorder: Recorder, repeats: Repeats) -> None:
        self._body = body
        self._plan = plan
        self._recorder = recorder
        self._repeats = repeats
        self._told: set[str] = set()

    async def run(self) -> None:
        for _ in range(self._plan.warmup):
            await self._once(1)
        loops = self._plan.loops or await self._choose_loops()
        began_ns = time.perf_counter_ns()
        taken = 0
        while taken < MAX_SAMPLES and (
            taken < self._plan.repeats or time.perf_counter_ns() - began_ns < self._plan.seconds * 1e9
        ):
            taken += 1
            run, gc_ns = await self._once(loops)
            if self._recorder.between(run.started_ns, run.done_ns):
                self._repeats.compiled += 1
            else:
                self._repeats.samples.append(Sample.of(run, loops, gc_ns))

    async def _choose_loops(self) -> int:
        """Grow the loops until a sample is long enough; these runs warm up, and are left out."""
        target_ns = max(SHORTEST_SAMPLE_NS, FENCES_IN_SAMPLE * fence_cost_ns())
        loops = 1
        while True:
            run, _ = await self._once(loops)
            took_ns = max(run.done_ns - run.started_ns, 1)
            if took_ns >= target_ns or loops == MAX_LOOPS:
                return loops
            wanted = math.ceil(
                loops * target_ns / took_ns * 1.2
            )  # one run alone, perhaps cold, is no measure
            loops = min(max(loops + 1, min(loops * 10, wanted)), MAX_LOOPS)

    async def _once(self, loops: int) -> tuple[Run, int]:
        with GcPauses() as pauses:
            run = await self._body.run(loops)
        for notice in run.notices:
            if notice not in self._told:
                self._told.add(notice)
                self._repeats.notices.append(notice)
        if run.error is None:
            return run, pauses.in_run_ns(run)
        if run.interrupted:
            raise _Stop(_INTERRUPTED, run.error)
        raise _Stop(
            f"The cell can't be run again as it stands: a repeat raised {described(run.error)[:250]}",
            run.error,
        )


def fence_cost_ns() -> int:
    """How long the wait for idle devices takes: the part of a sample that is not the body's."""
    barrier = Barrier()
    costs: list[int] = []
    for _ in range(_FENCES_TIMED):
        began_ns = time.perf_counter_ns()
        costs.append(barrier.wait() - began_ns)
    return min(costs)


def _compile_notices(repeats: Repeats) -> list[str]:
    if not repeats.compiled:
        return []
    total = repeats.compiled + len(repeats.samples)
    return [
        f"In {repeats.compiled} of {total} repeats something was traced or compiled; they are left out of "
        "the cached runs."
    ]


class _Output(io.TextIOBase):
    """Takes what is printed, and keeps no more than how much it was."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = 0
        self.displays: list[Any] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.characters += len(text)
        return len(text)

    def notices(self) -> list[str]:
        """A sentence about the output, if there was any."""
        if not self.characters and not self.displays:
            return []
        parts = [f"{self.characters:,} characters"] if self.characters else []
        parts += [f"{len(self.displays):,} displays"] if self.displays else []
        return [f"The output of the repeats ({' and '.join(parts)}) is not shown."]


@contextlib.contextmanager
def _swallowed() -> Generator[_Output]:
    """Swallow what is printed and displayed; in an IPython shell or outside of one."""
    from IPython.utils.capture import capture_output

    output = _Output()
    with (
        capture_output(stdout=False, stderr=False, display=True) as captured,
        contextlib.redirect_stdout(output),
    ):
        try:
            yield output
        finally:
            output.displays = captured.outputs
