"""Who compiled what, when and why: every program that JAX makes, with its phases, arguments and reason.

The log hears of each from the time when the extension is loaded, and is bounded in memory. A Recorder
collects what is compiled while it is open, with the time of each phase and the line that led to it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from jupyterlab_jaxprof.timing import monitoring
from jupyterlab_jaxprof.timing.calls import call_on_stack, memory_on_stack
from jupyterlab_jaxprof.timing.history import History
from jupyterlab_jaxprof.timing.monitoring import Argument, CacheEvent, Lowering, Phase, base_name
from jupyterlab_jaxprof.timing.places import Place, Places
from jupyterlab_jaxprof.timing.signatures import FIRST, UNSEEN, Reason, Signature
from jupyterlab_jaxprof.timing.spans import Span, covered_ns, within, without
from jupyterlab_jaxprof.timing.taps import LOWERINGS

#: Functions traced or lowered, and not compiled yet, that a thread remembers.
MAX_WAITING = 64
#: Our own programs, the barrier's fences, are no business of the user's.
_OWN = "jaxprof_"


@dataclass
class Compile:
    """One program that JAX made, or began to make, for a function.

    The spans of its phases leave out what nested in them (an operation compiled while a function is traced).
    `arguments` is None where JAX shows none; `cache` tells of the persistent compilation cache; `memory` is
    what the program needs, in bytes, None where XLA doesn't tell.
    """

    name: str
    signature: Signature
    place: Place | None = None
    trace: list[Span] = field(default_factory=lambda: [])
    lower: list[Span] = field(default_factory=lambda: [])
    compile: list[Span] = field(default_factory=lambda: [])
    cache: Literal["hit", "written", "miss"] | None = None
    reason: Reason = FIRST
    memory: dict[str, int] | None = None
    finished: bool = False
    failed: bool = False

    @property
    def arguments(self) -> tuple[Argument, ...] | None:
        """The arrays that the program takes."""
        return self.signature.shown

    @property
    def operation(self) -> bool:
        """Whether it is an operation of JAX's own that ran outside of jit."""
        return self.signature.function is not None and self.signature.function.of_jax

    @property
    def again(self) -> bool:
        """Whether this function had been compiled before."""
        return self.finished and self.reason.again

    @property
    def explanation(self) -> str:
        """A sentence that says why it was compiled, or that it was not."""
        if self.finished:
            return self.reason.text
        return "It failed." if self.failed else "Traced or lowered, and not compiled."

    @property
    def spans(self) -> list[Span]:
        """All the time that went into it."""
        return [*self.trace, *self.lower, *self.compile]

    @property
    def began_ns(self) -> int:
        """When its first phase began."""
        return min(began for began, _ in self.spans)

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values; times in ms."""
        return {
            "name": self.name,
            "arguments": None
            if self.arguments is None
            else [{"name": argument.name, "type": str(argument)} for argument in self.arguments],
            "line": self.place.line if self.place else None,
            "file": self.place.file if self.place else None,
            "trace_ms": covered_ns(self.trace) / 1e6,
            "lower_ms": covered_ns(self.lower) / 1e6,
            "compile_ms": covered_ns(self.compile) / 1e6,
            "cache": self.cache,
            "cause": str(self.reason.cause) if self.finished else None,
            "reason": self.explanation,
            "again": self.again,
            "operation": self.operation,
            "memory": self.memory,
        }


@dataclass
class _Open:
    """A phase that has begun in a thread, with what nested in it so far."""

    phase: Phase
    name: str
    began_ns: int
    parent: _Open | None
    entry: Compile
    handled: int
    inner: list[Span] = field(default_factory=lambda: [])

    def spans(self, now_ns: int) -> list[Span]:
        return without((self.began_ns, now_ns), self.inner)


class _Thread(threading.local):
    """What one thread is at."""

    def __init__(self) -> None:
        self.open: _Open | None = None
        self.traced: deque[tuple[Compile, _Open | None]] = deque(maxlen=MAX_WAITING)
        self.lowered: deque[Compile] = deque(maxlen=MAX_WAITING)
        self.lowering: Lowering | None = None
        self.asked = False


class CompileLog:
    """Hears of all compiles of this process, and keeps their history."""

    def __init__(self) -> None:
        self.history = History()
        self._thread = _Thread()
        self._recorders: list[Recorder] = []
        self._listener = monitoring.Listener(self._on_begin, self._on_end, self._on_cache)
        self._listening = False
        self._sees_calls = False

    @property
    def problem(self) -> str:
        """What went wrong in hearing JAX; empty when nothing did."""
        return self._listener.problem

    def listen(self) -> None:
        """Register with JAX, again when it has been told to forget its listeners."""
        self._listening = True
        self._listener.install()

    def unlisten(self) -> None:
        """Leave JAX alone from now on; the history is kept."""
        self._listening = False
        self._listener.remove()

    def open(self, recorder: Recorder) -> None:
        """Let a recorder collect what is compiled from now on."""
        LOWERINGS.install()
        self._listener.problem = ""
        self.listen()
        self._recorders.append(recorder)

    def close(self, recorder: Recorder) -> None:
        """Let a recorder collect no more."""
        if recorder in self._recorders:
            self._recorders.remove(recorder)

    def on_record(self, record: logging.LogRecord) -> None:
        """Hear of a program that JAX lowers, and listen to the rest if this is the first."""
        self._listener.guarded(self._on_lowering, record)

    def _on_lowering(self, record: logging.LogRecord) -> None:
        lowering = monitoring.lowering_of(record)
        if lowering is None or lowering.name.startswith(_OWN):
            return
        if not self._listening:
            self.listen()
        self._thread.lowering = lowering

    def _on_begin(self, phase: Phase, name: str) -> None:
        name = base_name(name)
        if name.startswith(_OWN):
            return
        now_ns = time.perf_counter_ns()
        thread = self._thread
        thread.open = _Open(phase, name, now_ns, thread.open, self._entry(phase, name), _handled())
        thread.asked = False

    def _on_end(self, phase: Phase, name: str) -> None:
        now_ns = time.perf_counter_ns()
        name = base_name(name)
        thread = self._thread
        ended = thread.open
        while ended is not None and (ended.phase, ended.name) != (phase, name):
            ended = ended.parent
        if ended is None:  # it began before we listened, or is our own
            return
        thread.open = ended.parent
        while thread.traced and thread.traced[-1][1] is ended:
            thread.traced.pop()  # no program was made of it: it is a part of what has ended
        if phase is Phase.TRACE:
            self._end_trace(ended, now_ns)
            return
        entry = ended.entry
        entry.failed = _handled() != ended.handled
        if ended.parent is not None:
            ended.parent.inner.append((ended.began_ns, now_ns))
        if phase is Phase.LOWER:
            entry.lower += ended.spans(now_ns)
            thread.lowered.append(entry)
            return
        entry.compile += ended.spans(now_ns)
        if entry.failed:
            return
        entry.cache = entry.cache or ("miss" if thread.asked else None)
        entry.finished = True
        entry.memory = memory_on_stack(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        entry.reason = self.history.add(entry.signature, entry.memory)

    def _end_trace(self, ended: _Open, now_ns: int) -> None:
        """Let a trace wait for the program to be made of it."""
        ended.entry.trace += ended.spans(now_ns)
        ended.entry.failed = _handled() != ended.handled
        if not ended.entry.failed:
            self._thread.traced.append((ended.entry, ended.parent))

    def _on_cache(self, event: CacheEvent) -> None:
        thread = self._thread
        if thread.open is None or thread.open.phase is not Phase.COMPILE:
            return
        if event is CacheEvent.HIT:
            thread.open.entry.cache = "hit"
        elif event is CacheEvent.WRITTEN:
            thread.open.entry.cache = "written"
        else:
            thread.asked = monitoring.has_persistent_cache()

    def _entry(self, phase: Phase, name: str) -> Compile:
        """Find the program that a phase which begins belongs to, or begin one."""
        thread = self._thread
        if phase is Phase.TRACE and thread.open is not None:
            return Compile(name, UNSEEN)  # most of these are a part of what encloses them
        entry = _take(thread.lowered, name) if phase is Phase.COMPILE else None
        if entry is None:
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            call = call_on_stack(frame)
            self._sees_calls = self._sees_calls or call is not None
            signature = Signature.of(name, call, hidden=self._sees_calls and phase is not Phase.TRACE)
            entry = self._take_traced(name, signature) if phase is Phase.LOWER else None
            entry = entry or Compile(name, signature)
            entry.place = self._place(frame) or entry.place
        if phase is Phase.LOWER:
            entry.signature = entry.signature.lowered(thread.lowering)
            thread.lowering = None
        for recorder in self._recorders:
            recorder.take(entry)
        return entry

    def _take_traced(self, name: str, signature: Signature) -> Compile | None:
        """Take the last trace that a program for `signature` can belong to and none belongs to yet."""
        traced = self._thread.traced
        for index in range(len(traced) - 1, -1, -1):
            entry, parent = traced[index]
            if entry.name == name and (entry.signature is UNSEEN or signature.may_be_of(entry.signature)):
                del traced[index]
                if parent is not None:
                    parent.inner += entry.trace  # it had counted as a part of what encloses it
                if entry.signature is UNSEEN:
                    entry.signature = signature
                return entry
        return None

    def _place(self, frame: FrameType) -> Place | None:
        return next((place for recorder in self._recorders if (place := recorder.places.find(frame))), None)


def _handled() -> int:
    """Tell which exception is being handled: JAX ends a phase in the same way when it fails."""
    return id(sys.exc_info()[1])


def _take(entries: deque[Compile], name: str) -> Compile | None:
    for index in range(len(entries) - 1, -1, -1):
        if entries[index].name == name:
            entry = entries[index]
            del entries[index]
            return entry
    return None


class Recorder:
    """Collects the compiles between `with` and its end, in the order in which they began."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._taken: dict[int, Compile] = {}

    def __enter__(self) -> Recorder:
        LOG.open(self)
        return self

    def __exit__(self, *_: object) -> None:
        LOG.close(self)

    @property
    def compiles(self) -> list[Compile]:
        """What has been compiled so far, and what was traced or lowered alone."""
        return sorted(
            (entry for entry in self._taken.values() if entry.spans), key=lambda entry: entry.began_ns
        )

    def take(self, entry: Compile) -> None:
        """Called by the log."""
        self._taken[id(entry)] = entry

    def between(self, began_ns: int, ended_ns: int) -> list[Compile]:
        """Give those that something was done for between two times of `time.perf_counter_ns`."""
        return [entry for entry in self.compiles if within(entry.spans, (began_ns, ended_ns))]

    def notices(self) -> list[str]:
        """Sentences about what could not be heard, and what the persistent cache didn't take."""
        notices: list[str] = []
        if LOG.problem:
            notices.append(
                f"Compiles could not be followed completely ({LOG.problem}): this version of JAX "
                "reports them otherwise than jupyterlab-jaxprof expects."
            )
        compiles = [entry for entry in self.compiles if entry.finished]
        unknown = [entry.name for entry in compiles if entry.arguments is None]
        if unknown:
            notices.append(
                f"JAX did not show what arguments {', '.join(sorted(set(unknown)))} was compiled for."
            )
        return notices + monitoring.cache_notices(sum(entry.cache == "miss" for entry in compiles))


@dataclass(frozen=True)
class Phases:
    """The time of a run that went into making programs; the parts are exclusive in each thread.

    `cached_ns` is time in which programs were read from the persistent compilation cache.
    """

    trace_ns: int
    lower_ns: int
    compile_ns: int
    cached_ns: int
    total_ns: int


def phases(compiles: Iterable[Compile], began_ns: int, ended_ns: int) -> Phases:
    """Add up the phases of compiles within a run, each moment once however many threads compile in it."""
    compiles = list(compiles)
    window = (began_ns, ended_ns)

    def part(spans: Iterable[Span]) -> int:
        return covered_ns(within(spans, window))

    return Phases(
        trace_ns=part(span for entry in compiles for span in entry.trace),
        lower_ns=part(span for entry in compiles for span in entry.lower),
        compile_ns=part(span for entry in compiles if entry.cache != "hit" for span in entry.compile),
        cached_ns=part(span for entry in compiles if entry.cache == "hit" for span in entry.compile),
        total_ns=part(span for entry in compiles for span in entry.spans),
    )


LOG = CompileLog()


def on_record(record: logging.LogRecord) -> None:
    """Take what taps.py hears."""
    LOG.on_record(record)
