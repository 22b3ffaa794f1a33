"""The host's threads of an XPlane file: ranges, steps, compiles, API calls and the allocator's samples.

XLA's recorder gives all of them as events of one kind, told apart by name and stats only. What JAX and XLA
mark themselves is recognised by the form of its name (C++ scopes), by stats that only XLA writes, by a list
of names, and by lying inside such an event; what is left was marked by the user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from .build import Texts, columns, unsorted
from .figures import read_number
from .intervals import Intervals, union_of
from .model import AllocatorSamples, ApiCalls, Compiles, Device, HostRanges, Numbers, RangeKind, Steps
from .xplane_compiles import modules_being_compiled, read_compiles
from .xplane_format import Line

PLANE = "/host:CPU"
#: The magics' own wait for the devices (cell/barrier.py), which is no part of the program.
FENCE = "jit_jaxprof_fence"
_FENCE_NAME = re.compile(r".*\bjaxprof_fence\b|.*\bjit_jaxprof_fence\b")

_RUNTIME_THREAD = re.compile(r"Host Threads|tf_|pjrt_|py_xla_|XLA|xla|tfrt|llvm|grpc|nccl|NCCL|GPU|cuda")
_RUNTIME_NAME = re.compile(
    r"""
    .*::                                    # a C++ scope
    | PjitFunction\(.*\)$ | PjRt | PJRT_ | Pjrt | XLA | Xla | Tfrt | TransferTo | TransferFrom | BFC
    | ParseArguments$ | shard_args$ | device_put$ | DevicePut | np\.asarray\(jax\.Array\)$
    | ArrayImpl\. | (Unloaded)?(Mesh|Pmap)Executable\.
    | ExecuteReplicated | ExecuteSharded | Execute\b | ExecutePrepare | ExecuteHelper
    | [Bb]atched_?[Cc]opy | [Bb]atched_?[Dd]evice_?[Pp]ut
    | trace_to_jaxpr | lower_sharding_computation$ | lower_\w*computation$ | backend_compile | infer_params
    | pickle_util\. | pmap_lib | copy_array_to_devices_with_sharding | _?device_put_ | JaxArray | PyArray
    | Handle\ inputs | AllocateOutputBuffers | Build\ buffer | Resolve\ constant | CreateOutputs
    | Wait\ for\ (donation|usage|rendezvous|LaunchOnDevice) | Wait:\ pending | InvokeRendezvous | Rendezvous
    | ComputeSemaphore | Acquire\w*Clique | LockGpuClique | [DH]2[DH]\b
    | ThreadpoolListener | ThunkExecutor | TaskDispatcher | RunInvariantCheckers | CompileSingleModule
    | Compiling\ IR | PTX->CUBIN | BUFFER_FLUSH$ | <UNKNOWN>$ | RESOURCE$ | INSTRUMENTATION$ | OVERHEAD
    | (pure|io|debug|python)_?callback(\.\d+)*$
    | command_buffer | \[\d+\]\ | end:\ | .*:XLA\ GPU\ module$ | Memory(All|Deall)ocation$ | GC$
    """,
    re.VERBOSE,
)
#: These run Python in between, which may hold the user's own marks: PjitFunction traces.
_OPEN_NAME = re.compile(r"PjitFunction\(|trace_to_jaxpr|infer_params")
_CALLBACK = re.compile(r".*callback|xla_(ffi_)?python|.*PyCpuCallback|.*CpuCallback")
_API_CALL = re.compile(r"cu(da)?[A-Z]\w*")
_LAUNCHES = ("cuGraphLaunch", "cudaGraphLaunch", "cuLaunchKernel", "cudaLaunchKernel")
#: Stats that XLA writes and that no annotation of a user's has.
_RUNTIME_STATS = ("_src", "_ct", "_c", "_pt", "_p", "device_id", "hlo_op", "run_id", "allocator_name")
#: Where XLA tells what a range is about.
_DETAILS = ("hlo_module", "module_name", "module", "long_name")
_ALLOCATOR = re.compile(r"GPU_(\d+)_bfc")


class _Name(IntEnum):
    """What an event's name says about it."""

    OTHER = 0
    PYTHON = 1
    RUNTIME = 2
    SKIPPED = 3
    ALLOCATION = 4


@dataclass
class ThreadContents:
    """What one thread did; `fence_calls` are the correlations of what the magics' own fences launched."""

    ranges: HostRanges
    calls: ApiCalls
    steps: Steps
    compiles: Compiles
    allocator: AllocatorSamples
    fence_calls: NDArray[np.int64]
    modules: list[tuple[float, str]]
    """When XLA named the function whose module it compiled; any thread may compile for another."""


class _Named:
    """A line's events by what their names say."""

    def __init__(self, line: Line, texts: Texts) -> None:
        self.events = line.events
        self._name = line.events.name
        self.used = np.flatnonzero(np.bincount(self._name)) if len(self._name) else np.zeros(0, dtype=np.intp)
        all_texts = texts.all()
        self.names = [all_texts[number] for number in self.used]
        kind_of_name = np.zeros(len(all_texts), dtype=np.int8)
        kind_of_name[self.used] = [_kind_of_name(name) for name in self.names]
        self.kind = kind_of_name[self._name]
        self.by_xla = line.events.stats.has(_RUNTIME_STATS)

    def where(self, pattern: re.Pattern[str], *, full: bool = False) -> NDArray[np.bool_]:
        """Tell which events have a name that matches."""
        match = pattern.fullmatch if full else pattern.match
        matches = [match(name) is not None for name in self.names]
        chosen = np.zeros(int(self.used[-1]) + 1 if len(self.used) else 1, dtype=np.bool_)
        chosen[self.used] = matches
        return chosen[self._name] if any(matches) else np.zeros(len(self._name), dtype=np.bool_)

    def spans(self, chosen: NDArray[np.bool_]) -> Intervals:
        """When any of these events went on."""
        return union_of(self.events.start_ns[chosen], self.events.duration_ns[chosen])

    def shown_names(self, texts: Texts) -> Numbers:
        """The names without the mark of the Python tracer."""
        shown = np.zeros(int(self.used[-1]) + 1 if len(self.used) else 1, dtype=np.int32)
        shown[self.used] = texts.numbers(name.removeprefix("$") for name in self.names)
        return shown[self._name]


class HostReader:
    """Reads threads."""

    def __init__(self, texts: Texts, devices: tuple[Device, ...]) -> None:
        self._texts = texts
        self.unnumbered: set[str] = set()
        """The names of steps that were marked without a number."""
        self._device_of = {device.ordinal: row for row, device in reversed(list(enumerate(devices)))}

    def read(self, line: Line, thread: int) -> ThreadContents:
        """Read one thread."""
        events, stats, named = line.events, line.events.stats, _Named(line, self._texts)
        start_ns, duration_ns, kind = events.start_ns, events.duration_ns, named.kind
        is_fence = named.where(_FENCE_NAME)
        in_fence = named.spans(is_fence).contain(start_ns)
        correlation = stats.integers("correlation_id")
        is_call = (kind != _Name.PYTHON) & (correlation != 0) | named.where(_API_CALL, full=True)
        numbered = stats.has(["step_num"])
        # A StepTraceAnnotation without its number: only it has this stat, besides XLA's own events
        unnumbered = stats.has(["_r"]) & ~numbered & (kind == _Name.OTHER) & ~named.by_xla
        is_step = (numbered | unnumbered) & ~is_call
        kind[is_step] = _Name.OTHER
        # A fence's own range stays: it tells the diagnosis that the magics waited here, not the program
        is_range = ~is_call & ~is_step & (~in_fence | is_fence) & (kind < _Name.SKIPPED)
        marks = _marks(line, named, is_range)
        range_kind = np.full(len(events), RangeKind.RUNTIME, dtype=np.int8)
        range_kind[kind == _Name.PYTHON] = RangeKind.PYTHON
        range_kind[marks] = RangeKind.ANNOTATION
        name = named.shown_names(self._texts)
        self.unnumbered.update(self._texts.all()[number] for number in np.unique(name[unnumbered & is_step]))
        return ThreadContents(
            ranges=unsorted(
                HostRanges,
                thread=thread,
                kind=range_kind[is_range],
                name=name[is_range],
                start_ns=start_ns[is_range],
                duration_ns=duration_ns[is_range],
                detail=self._details(line, marks)[is_range],
            ),
            calls=self._calls(thread, name, is_call & ~in_fence, start_ns, duration_ns, correlation),
            steps=columns(
                Steps,
                thread=thread,
                name=name[is_step],
                number=_numbers(stats.integers("step_num", missing=-1), name, unnumbered)[is_step],
                start_ns=start_ns[is_step],
                duration_ns=duration_ns[is_step],
            ),
            compiles=read_compiles(
                thread, events.name, named.used, named.names, start_ns, duration_ns, self._texts
            ),
            allocator=self._allocator(line, kind == _Name.ALLOCATION, start_ns),
            fence_calls=correlation[is_call & in_fence],
            modules=modules_being_compiled(events.name, named.used, named.names, start_ns),
        )

    def _details(self, line: Line, marks: NDArray[np.intp]) -> Numbers:
        stats = line.events.stats
        detail = np.zeros(len(line.events), dtype=np.int32)
        for name in _DETAILS:
            told = stats.texts(name, self._texts)
            np.copyto(detail, told, where=detail == 0)
        chosen = np.zeros(len(line.events), dtype=np.bool_)
        chosen[marks] = True
        for row, values in stats.grouped(chosen):
            shown = [f"{name}={value}" for name, value in values.items() if not name.startswith("_")]
            detail[row] = self._texts.number(", ".join(shown))
        return detail

    def _calls(
        self,
        thread: int,
        name: Numbers,
        is_call: NDArray[np.bool_],
        start_ns: NDArray[np.float64],
        duration_ns: NDArray[np.float64],
        correlation: NDArray[np.int64],
    ) -> ApiCalls:
        """The calls of CUDA's API. XLA names a launch like its kernel, so its own name is not known."""
        rows = np.flatnonzero(is_call)
        all_texts = self._texts.all()
        unique, inverse = np.unique(name[rows], return_inverse=True)
        told = [_call_name(all_texts[number]) for number in unique]
        names = self._texts.numbers(call for call, _ in told)
        launches = np.array([launch for _, launch in told], dtype=np.bool_)
        return columns(
            ApiCalls,
            thread=thread,
            name=names[inverse],
            start_ns=start_ns[rows],
            duration_ns=duration_ns[rows],
            correlation=correlation[rows],
            launches=launches[inverse],
        )

    def _allocator(
        self, line: Line, chosen: NDArray[np.bool_], start_ns: NDArray[np.float64]
    ) -> AllocatorSamples:
        stats = line.events.stats
        candidates = np.flatnonzero(chosen)
        allocators = stats.texts("allocator_name", self._texts)[candidates]
        all_texts = self._texts.all()
        unique, inverse = np.unique(allocators, return_inverse=True)
        matches = [_ALLOCATOR.fullmatch(all_texts[number]) for number in unique]
        known = [self._device_of.get(read_number(match[1], -1), -1) if match else -1 for match in matches]
        device = np.array(known, dtype=np.int32)[inverse]
        rows, device = candidates[device >= 0], device[device >= 0]
        used, free = stats.integers("bytes_allocated"), stats.integers("bytes_available")
        return columns(
            AllocatorSamples,
            device=device,
            time_ns=start_ns[rows],
            in_use_bytes=used[rows],
            peak_bytes=stats.integers("peak_bytes_in_use")[rows],
            limit_bytes=(used + free)[rows],
            fragmentation=stats.floats("fragmentation")[rows],
        )


def _numbers(number: NDArray[np.int64], name: Numbers, unnumbered: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count those steps of a name that have no number, in their order."""
    for one in np.unique(name[unnumbered]):
        rows = np.flatnonzero(unnumbered & (name == one))
        number[rows] = np.arange(len(rows))
    return number


def _kind_of_name(name: str) -> _Name:
    if name.startswith("$"):
        return _Name.PYTHON
    if name in ("MemoryAllocation", "MemoryDeallocation"):
        return _Name.ALLOCATION
    if name.startswith(("ThreadpoolListener::", "end: ")):
        return _Name.SKIPPED
    return _Name.RUNTIME if _RUNTIME_NAME.match(name) else _Name.OTHER


def _call_name(name: str) -> tuple[str, bool]:
    """An API call's name, and whether it launches."""
    if name.startswith(("Memcpy", "Memset")):
        return name, False
    if match := _API_CALL.match(name):
        return match[0], match[0].startswith(_LAUNCHES)
    return "kernel launch", True


def _marks(line: Line, named: _Named, is_range: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Find the user's marks: what XLA did not write, outside XLA's own code or in a callback from it."""
    maybe = np.flatnonzero((named.kind == _Name.OTHER) & is_range & ~named.by_xla)
    times_ns = line.events.start_ns[maybe]
    users = named.spans(named.where(_CALLBACK)).contain(times_ns)
    if not _RUNTIME_THREAD.match(line.name):
        xlas = (named.kind == _Name.RUNTIME) | (named.kind == _Name.OTHER) & named.by_xla
        users |= ~named.spans(xlas & ~named.where(_OPEN_NAME)).contain(times_ns)
    return maybe[users]
