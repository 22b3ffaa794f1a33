"""The result of a timing: what it took the first time and why, and what it takes when nothing compiles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from jupyterlab_jaxprof.captures.samples import Ratio, Summary, ratio, summarize
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cell import Run, described
from jupyterlab_jaxprof.timing.compiles import Compile, Phases
from jupyterlab_jaxprof.timing.frames import data_frame
from jupyterlab_jaxprof.timing.memory import MemoryReport
from jupyterlab_jaxprof.timing.repeats import Repeats
from jupyterlab_jaxprof.timing.transfers import Transfer

#: Compiling that takes less of a run than this is not worth a word in the first sentence.
_WORTH_TELLING = 0.05
_NAMES = 3


@dataclass(repr=False)
class TimedResult:
    """What was measured. Times are in ms where a name ends in `_ms`; `value` is what the body returned.

    `returned_ms` is when Python got control back in the first run, `first_ms` when the devices were done.
    `failure` tells of `error` in words, empty when there was none.
    """

    name: str
    value: object
    error: BaseException | None
    first_ms: float
    returned_ms: float
    gc_ms: float
    phases: Phases
    compiles: list[Compile]
    repeats: Repeats | None = None
    transfers: list[Transfer] | None = None
    memory: MemoryReport | None = None
    notices: list[str] = field(default_factory=lambda: [])
    failure: str = ""
    interrupted: bool = False

    @classmethod
    def of(cls, name: str, run: Run, gc_ns: int, compiles: list[Compile], phases: Phases) -> TimedResult:
        """Begin the result with its first run."""
        return cls(
            name=name,
            value=run.value,
            error=run.error,
            first_ms=(run.done_ns - run.started_ns) / 1e6,
            returned_ms=(run.returned_ns - run.started_ns) / 1e6,
            gc_ms=gc_ns / 1e6,
            phases=phases,
            compiles=compiles,
            notices=list(run.notices),
            failure="" if run.error is None else described(run.error),
            interrupted=run.interrupted,
        )

    def result(self) -> object:
        """The value to show; raises what the body raised, or the interrupt that ended its repeats."""
        __tracebackhide__ = True
        if self.error is not None:
            raise self.error
        if self.repeats is not None and self.repeats.error is not None and self.repeats.interrupted:
            raise self.repeats.error
        return self.value

    def released(self) -> TimedResult:
        """Give it without the value and the errors, whose frames hold values too: nothing is kept alive."""
        repeats = self.repeats and replace(self.repeats, error=None)
        return replace(self, value=None, error=None, repeats=repeats)

    @property
    def cached(self) -> Summary | None:
        """The runs in which nothing compiled, in ms; None when there are none."""
        times = self.repeats.times_ms if self.repeats is not None else []
        return summarize(times) if times else None

    @property
    def cached_returned(self) -> Summary | None:
        """When Python got control back in those runs, in ms."""
        samples = self.repeats.samples if self.repeats is not None else []
        return summarize([sample.returned_ns / 1e6 for sample in samples]) if samples else None

    @property
    def recompiles(self) -> list[Compile]:
        """What was compiled although it had been compiled before."""
        return [compiled for compiled in self.compiles if compiled.again]

    def ratio_to(self, other: TimedResult) -> Ratio | None:
        """How many times as long this takes as the other, by the cached runs; None where one has none."""
        mine, theirs = self.cached, other.cached
        return ratio(mine, theirs) if mine is not None and theirs is not None else None

    def sentence(self) -> str:
        """Say in a sentence what the user saw, and what there is to know of it."""
        took = units.duration(self.first_ms)
        if self.failure:
            ending = "it was interrupted" if self.interrupted else self.failure.partition(":")[0]
            return f"{took}, until {ending}{self._of_which()}."
        sentence = took + self._of_which()
        cached = self.cached
        if cached is not None:
            return f"{sentence}; run again it takes {units.duration(cached.median)}."
        return f"{sentence}." if self.phases.total_ns else f"{sentence}; nothing compiled."

    def _of_which(self) -> str:
        phases = self.phases
        if phases.total_ns / 1e6 < _WORTH_TELLING * self.first_ms or not phases.total_ns:
            return ""
        if not any(entry.finished for entry in self.compiles):
            return f", of which {units.duration(phases.total_ns / 1e6)} traced {_named(self.compiles)}"
        compiled = [entry for entry in self.compiles if entry.finished and entry.cache != "hit"]
        read = [entry for entry in self.compiles if entry.cache == "hit"]
        spent = units.duration(phases.total_ns / 1e6)
        if compiled and read:
            return f", of which {spent} compiled {_named(compiled)}, and read {_named(read)} from disk"
        if read:
            return f", of which {spent} traced {_named(read)} and read it from disk"
        return f", of which {spent} compiled {_named(compiled)}"

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return f"<TimedResult {self.name!r}: {self.sentence()}>"

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values, as JSON can hold them."""
        phases = self.phases
        cached, returned = self.cached, self.cached_returned
        return {
            "name": self.name,
            "sentence": self.sentence(),
            "error": self.failure or None,
            "first": {
                "total_ms": self.first_ms,
                "returned_ms": self.returned_ms,
                "trace_ms": phases.trace_ns / 1e6,
                "lower_ms": phases.lower_ns / 1e6,
                "compile_ms": phases.compile_ns / 1e6,
                "cache_read_ms": phases.cached_ns / 1e6,
                "run_ms": max(self.first_ms - phases.total_ns / 1e6, 0.0),
                "gc_ms": self.gc_ms,
            },
            "cached": None if cached is None else cached.to_dict(),
            "cached_returned": None if returned is None else returned.to_dict(),
            "repeats": None if self.repeats is None else _repeats(self.repeats),
            "compiles": [compiled.to_dict() for compiled in self.compiles],
            "transfers": None
            if self.transfers is None
            else [transfer.to_dict() for transfer in self.transfers],
            "memory": None if self.memory is None else self.memory.to_dict(),
            "notices": [*self.notices, *(cached.warnings() if cached is not None else [])],
        }

    def to_pandas(self) -> Any:
        """Give the samples as a pandas DataFrame: one row a sample, times of one run in ms.

        The first row is the first run. Raises ImportError with a sentence when pandas is not installed.
        """
        samples = self.repeats.samples if self.repeats is not None else []
        rows = [{"run": "first", "loops": 1, "time_ms": self.first_ms, "returned_ms": self.returned_ms}]
        rows += [
            {
                "run": "cached",
                "loops": sample.loops,
                "time_ms": sample.time_ns / 1e6,
                "returned_ms": sample.returned_ns / 1e6,
            }
            for sample in samples
        ]
        return data_frame(rows)


def _repeats(repeats: Repeats) -> dict[str, Any]:
    return {
        "times_ms": repeats.times_ms,
        "loops": repeats.samples[0].loops if repeats.samples else None,
        "left_out": repeats.compiled,
        "stopped": repeats.stopped,
        "gc_ms": sum(sample.gc_ns * sample.loops for sample in repeats.samples) / 1e6,
        "notices": list(repeats.notices),
    }


def _named(compiles: list[Compile]) -> str:
    """Name the functions, those that took longest first, the user's own before JAX's operations."""
    times: Counter[str] = Counter()
    for entry in compiles:
        times[entry.name] += sum(ended - began for began, ended in entry.spans)
    operations = {entry.name for entry in compiles if entry.operation}
    names = sorted(times, key=lambda name: (name in operations, -times[name]))
    more = len(names) - _NAMES
    listed = names[: _NAMES + 1] if more == 1 else names[:_NAMES]
    ending = f" and {more} more" if more > 1 else ""
    return ", ".join(listed) + ending
