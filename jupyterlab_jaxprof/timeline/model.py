"""What happened in a program, as columns: the model that both an XProf trace and an Nsight report fill.

Every time is a float64 in nanoseconds since the timeline's origin: exact to the nanosecond for 100 days, and
to the picosecond for the first hour. A column of texts is an int32 array of numbers into `Timeline.texts`; 0
is the empty text, which also stands for 'not known'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Small = NDArray[np.int8]


class OpKind(IntEnum):
    """What a device did; GRAPH is a CUDA graph that was recorded as one thing, its kernels unseen."""

    KERNEL = 0
    COPY = 1
    SET = 2
    GRAPH = 3


class CopyKind(IntEnum):
    """Between which memories a copy went."""

    NONE = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3
    PEER_TO_PEER = 4
    OTHER = 5


class HostMemory(IntEnum):
    """The host's side of a copy."""

    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2
    MANAGED = 3


class RangeKind(IntEnum):
    """Who marked a host range."""

    ANNOTATION = 0  # the user: TraceAnnotation, annotate_function, nvtx
    PYTHON = 1  # the Python tracer: one range a call
    RUNTIME = 2  # JAX, XLA and PJRT themselves
    SYSTEM = 3  # the operating system's runtime (Nsight's osrt)


class Phase(IntEnum):
    """A part of making a program for the device."""

    TRACE = 0  # Python function to jaxpr
    LOWER = 1  # jaxpr to StableHLO
    COMPILE = 2  # XLA, autotuning included
    CACHE_READ = 3  # the program came from the persistent cache


class Source(StrEnum):
    """What a timeline was read from."""

    XPLANE = "xplane"
    NSIGHT = "nsight"


@dataclass(frozen=True)
class Columns:
    """Columns of equal length; a subclass names them."""

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, column.name)) for column in fields(self)}
        if len(lengths) > 1:
            raise ValueError(
                f"The columns of {type(self).__name__} have different lengths: {sorted(lengths)}"
            )

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Self:
        """Give the rows that a mask, an index array or a slice selects."""
        return type(self)(**{column.name: getattr(self, column.name)[rows] for column in fields(self)})


@dataclass(frozen=True)
class DeviceOps(Columns):
    """What ran on the devices: kernels, copies, sets and whole graphs, sorted by start."""

    device: Numbers  # index into Timeline.devices
    stream: Numbers  # the stream's own number
    kind: Small  # OpKind
    name: Numbers
    start_ns: Floats
    duration_ns: Floats
    size_bytes: Integers  # of copies and sets, else 0
    copy_kind: Small  # CopyKind
    host_memory: Small  # HostMemory
    correlation: Integers  # joins it to the API call that launched it; 0: not known
    graph: Integers  # the CUDA graph that it belongs to; 0: none
    module: Numbers  # text: HLO module, `jit_train_step`
    program: (
        Integers  # the module's program id, which tells two compiles of one function apart; -1: not known
    )
    hlo_op: Numbers  # text: `gemm_fusion_dot.3`
    scope: Numbers  # text: JAX's name stack, `jit(train_step)/jvp()/dot_general`
    source: Numbers  # text: `file.py:12`


@dataclass(frozen=True)
class HostRanges(Columns):
    """Named ranges on the host's threads, sorted by start; those of one thread nest."""

    thread: Numbers  # index into Timeline.threads
    kind: Small  # RangeKind
    name: Numbers
    start_ns: Floats
    duration_ns: Floats
    detail: Numbers  # text: arguments or the like, where the recorder gives them


@dataclass(frozen=True)
class ApiCalls(Columns):
    """Calls of the CUDA API (launches among them) or of the runtime's equivalent, sorted by start."""

    thread: Numbers
    name: Numbers  # text: `cuLaunchKernel`; `kernel launch` where the recorder gives the kernel's name
    start_ns: Floats
    duration_ns: Floats
    correlation: Integers  # joins it to the device operations that it launched; 0: none
    launches: NDArray[np.bool_]  # whether it launches kernels or a graph


@dataclass(frozen=True)
class Steps(Columns):
    """Marked steps, sorted by start: StepTraceAnnotation, or NVTX ranges of one name with a number.

    A step is here alone, not among the host's ranges.
    """

    thread: Numbers
    name: Numbers  # text without the number
    number: Integers
    start_ns: Floats
    duration_ns: Floats


@dataclass(frozen=True)
class Compiles(Columns):
    """Phases of compiling, sorted by start; phases of one thread may nest."""

    thread: Numbers
    phase: Small  # Phase
    function: Numbers  # text: `train_step`; empty where the recorder does not tell
    start_ns: Floats
    duration_ns: Floats


@dataclass(frozen=True)
class AllocatorSamples(Columns):
    """The allocator's state each time it gave or took memory, sorted by time."""

    device: Numbers  # index into Timeline.devices
    time_ns: Floats
    in_use_bytes: Integers
    peak_bytes: Integers  # the process's peak so far, as the allocator counts it
    limit_bytes: Integers  # 0: not known
    fragmentation: Floats  # 0 to 1; NaN: not known


@dataclass(frozen=True)
class Counters(Columns):
    """Samples of the devices' hardware counters (Nsight's GPU metrics), sorted by time."""

    gpu: Numbers  # as the driver numbers them, from 0
    name: Numbers  # text: `SMs Active`
    unit: Numbers  # text: `percent`, `MHz`
    time_ns: Floats
    value: Floats


@dataclass(frozen=True)
class Collectives(Columns):
    """Operations between devices: one row for each device that took part."""

    op: Integers  # row of DeviceOps
    kind: (
        Numbers  # text: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `permute`, `send`, `recv`
    )
    size_bytes: Integers  # of the operand on this device; 0: not known


@dataclass(frozen=True)
class Device:
    """One device of one process."""

    host: str
    process: int  # the process's place among the files read, from 0
    ordinal: int
    name: str  # `GPU 0`, with the model where known in `model`
    model: str = ""
    memory_bytes: int = 0
    multiprocessors: int = 0
    peak_bytes_per_s: float = 0.0
    peak_flops_per_s: float = 0.0


@dataclass(frozen=True)
class Thread:
    """One thread of one process on a host."""

    host: str
    process: int
    number: int
    name: str


@dataclass(frozen=True)
class File:
    """A file that was read."""

    path: str
    source: Source
    size_bytes: int
    host: str
    complete: bool = True


@dataclass(frozen=True)
class Timeline:
    """What happened, from one or several files of one run.

    `blind` names what the recorder could not see here and so must not be concluded from: `devices`,
    `compiles`, `host`, `allocator`, `graphs` (kernels hide in graphs), `sizes`, `python`. `notices` are
    sentences for the user: damage, dropped events, clocks.
    """

    source: Source
    files: tuple[File, ...]
    origin_ns: int  # unix time of time 0
    texts: Sequence[str]
    devices: tuple[Device, ...]
    threads: tuple[Thread, ...]
    ops: DeviceOps
    ranges: HostRanges
    calls: ApiCalls
    steps: Steps
    compiles: Compiles
    allocator: AllocatorSamples
    collectives: Collectives
    recorded_ns: tuple[float, float]  # when recording began and ended, as far as known
    counters: Counters | None = None
    blind: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()
    dropped_events: int = 0
    versions: dict[str, str] = field(
        default_factory=dict[str, str]
    )  # of the recorder, cuda, jax, as far as known

    def text(self, number: int) -> str:
        """Give one text of a column."""
        return self.texts[number]

    def find(self, *texts: str) -> Numbers:
        """Give the numbers of these texts, those that occur at all."""
        wanted = set(texts)
        return np.array([i for i, text in enumerate(self.texts) if text in wanted], dtype=np.int32)


class ReadError(Exception):
    """A file that can't be read; the message is a sentence that names the file, why, and what to do."""
