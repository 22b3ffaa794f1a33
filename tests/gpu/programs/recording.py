"""What a program does around its work so that it is recorded, and what is known of it by other means.

A program is a function of one `Recording`. It prepares what it needs, then works inside `record.window()`,
where `record.steps` marks its steps and `record.range` names a part. Its label says what is true of it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

# What may be held against a program, by the names of the diagnosis.
PROBLEMS = (
    "batch-too-small",
    "device-copies",
    "device-idle",
    "device-to-host-copies",
    "device-to-host-read",
    "eager-dispatch",
    "exposed-collectives",
    "first-call-compile",
    "host-callback",
    "host-starves-device",
    "host-to-device-copies",
    "launch-bound",
    "memory-pressure",
    "recompilation",
    "straggler",
    "sync-every-step",
    "tiny-kernels",
)
# What is no reproach.
NEUTRAL = ("nothing-wrong", "no-step-markers", "profiler-overhead")
# Of a device that waits for the host each of these says a part.
IDLE = ("device-idle", "host-starves-device")
TOO_SMALL = (*IDLE, "batch-too-small", "launch-bound")
TRANSFERS = ("host-to-device-copies", "device-to-host-copies", "device-to-host-read")
WAITING = ("device-to-host-read", "sync-every-step")
# A step that is waited for can hide none of that behind the device's work.
WAITED_FOR = (*IDLE, "sync-every-step")


@dataclass(frozen=True)
class Label:
    """What is true of a program.

    Of each tuple in `must`, one pattern at least is to be named. Those of `may` are true too, or arguable;
    those of `minor` are there but cost next to nothing, so a note at most. Each other problem would be a
    wrong accusation. `names` are names of the program's own that are the cause, `slow_step` is the number
    of the step that stands out.
    """

    must: tuple[tuple[str, ...], ...]
    may: tuple[str, ...] = ()
    minor: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    slow_step: int | None = None

    @property
    def must_not(self) -> tuple[str, ...]:
        allowed = {*self.may, *self.minor, *(pattern for choice in self.must for pattern in choice)}
        return tuple(pattern for pattern in PROBLEMS if pattern not in allowed)


@dataclass(frozen=True)
class Program:
    """One labelled program: its docstring says what it does."""

    run: Callable[[Recording], None]
    label: Label
    python: bool = False  # whether the Python tracer is on
    flags: str = ""  # XLA_FLAGS of its process
    cached: bool = True  # whether its process reads the persistent compilation cache

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def about(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


PROGRAMS: dict[str, Program] = {}


def program(
    *must: str | tuple[str, ...],
    may: tuple[str, ...] = (),
    minor: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    slow_step: int | None = None,
    **how: Any,
):
    """Enter a function into the table, with its label."""
    choices = tuple((choice,) if isinstance(choice, str) else choice for choice in must)
    unknown = {*may, *minor, *(pattern for choice in choices for pattern in choice)} - {*PROBLEMS, *NEUTRAL}
    assert not unknown, unknown

    def enter(run: Callable[[Recording], None]) -> Callable[[Recording], None]:
        PROGRAMS[run.__name__] = Program(run, Label(choices, may, minor, names, slow_step), **how)
        return run

    return enter


@dataclass
class Recording:
    """One run of a program, recorded by `xplane` (jax.profiler), by `nsys` (from outside) or by `none`."""

    directory: Path
    recorder: str = "xplane"
    python: bool = False
    small: bool = False  # sizes for a machine without a GPU
    lock: Path | None = None
    durations_ms: list[tuple[str, int, float]] = field(default_factory=list)
    compiles: list[tuple[str, float]] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    _held: Any = None

    def size(self, full: int) -> int:
        return max(full // 64, 4) if self.small else full

    def prepare(self) -> None:
        """Wait until no other process is being recorded: from here on the device is used."""
        if self.lock is not None:
            self._held = self.lock.open("w")
            fcntl.flock(self._held, fcntl.LOCK_SH)

    def alone(self) -> None:
        """Wait for the device to be this process's own, which it stays until the process ends."""
        if self._held is not None:
            fcntl.flock(self._held, fcntl.LOCK_EX)

    @contextmanager
    def window(self) -> Iterator[None]:
        """Record what is done inside, alone on the device."""
        self.alone()
        recording = True

        def listen(event: str, seconds: float, **_: Any) -> None:
            if recording:
                self.compiles.append((event, seconds * 1e3))

        jax.monitoring.register_event_duration_secs_listener(listen)
        with self._recorder():
            started_ns = time.perf_counter_ns()
            yield
            self.known["window_ms"] = (time.perf_counter_ns() - started_ns) / 1e6
            recording = False

    def _recorder(self) -> AbstractContextManager[Any]:
        if self.recorder == "none":
            return nullcontext()
        if self.recorder == "nsys":
            return self.range("profile_region")
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = int(self.python)
        return jax.profiler.trace(str(self.directory), profiler_options=options)

    def range(self, name: str) -> AbstractContextManager[Any]:
        """Give a named range, in the words of the recorder."""
        if self.recorder == "nsys":
            import nvtx

            return nvtx.annotate(name, domain="jaxprof")
        return jax.profiler.TraceAnnotation(name)

    def steps(self, name: str | None, count: int) -> Iterator[int]:
        """Count to `count`, each turn of the loop a step of this name; with None it isn't marked."""
        for number in range(count):
            marked: AbstractContextManager[Any] = nullcontext()
            if name is not None and self.recorder == "nsys":
                marked = self.range(f"{name}_{number}")
            elif name is not None:
                marked = jax.profiler.StepTraceAnnotation(name, step_num=number)
            with marked:
                started_ns = time.perf_counter_ns()
                yield number
                took_ms = (time.perf_counter_ns() - started_ns) / 1e6
            self.durations_ms.append((name or "", number, took_ms))

    def facts(self) -> dict[str, Any]:
        """Give what the process itself knows, to be written beside the trace."""
        backend = [ms for event, ms in self.compiles if event.endswith("backend_compile_duration")]
        memory = jax.local_devices()[0].memory_stats() or {}
        return {
            "jax": jax.__version__,
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
            "python_tracer": self.python,
            **self.known,
            "steps_ms": [(name, number, round(ms, 4)) for name, number, ms in self.durations_ms],
            "compiles": len(backend),
            "compiles_ms": round(sum(backend), 2),
            "memory": {key: memory[key] for key in sorted(memory)},
        }
