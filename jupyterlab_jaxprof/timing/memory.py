"""Memory: what the devices' allocators say, what programs need, which arrays take it and who holds them."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cell.barrier import is_own
from jupyterlab_jaxprof.timing.compiles import LOG, Compile
from jupyterlab_jaxprof.timing.frames import data_frame
from jupyterlab_jaxprof.timing.holders import holders
from jupyterlab_jaxprof.timing.variables import VARIABLES

LARGEST = 20
_SMALL_BYTES = 4096


@dataclass(frozen=True)
class DeviceMemory:
    """What the allocator of one device says, in bytes; None where it says nothing, as on a CPU.

    The peak is that of the whole process: it can't be reset.
    """

    device: str
    in_use_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    pool_bytes: int | None = None
    largest_allocation_bytes: int | None = None
    largest_free_block_bytes: int | None = None
    allocations: int | None = None

    @property
    def known(self) -> bool:
        """Whether the device tells of its memory."""
        return self.in_use_bytes is not None

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class HeldArray:
    """An array that is alive: the bytes that it takes on all its devices together, and who holds it."""

    shape: tuple[int, ...]
    dtype: str
    size_bytes: int
    devices: tuple[str, ...]
    holders: tuple[str, ...]
    new: bool

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Program:
    """What a compiled function needs on each device that it runs on, in bytes."""

    name: str
    needs: Mapping[str, int]

    @property
    def total_bytes(self) -> int:
        """What it needs at once: arguments, output and temporary memory."""
        parts = ("argument_bytes", "output_bytes", "temporary_bytes")
        return sum(self.needs.get(part, 0) for part in parts) - self.needs.get("alias_bytes", 0)

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {"name": self.name, **self.needs}


@dataclass
class MemoryReport:
    """Memory before and after something, a device each; `before` is empty when nothing was run."""

    before: list[DeviceMemory]
    after: list[DeviceMemory]
    programs: list[Program]
    arrays: list[HeldArray]
    arrays_bytes: int
    arrays_count: int
    variables: dict[str, Any]
    notices: list[str] = field(default_factory=lambda: [])

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "before": [device.to_dict() for device in self.before],
            "after": [device.to_dict() for device in self.after],
            "programs": [program.to_dict() for program in self.programs],
            "arrays": [array.to_dict() for array in self.arrays],
            "arrays_bytes": self.arrays_bytes,
            "arrays_count": self.arrays_count,
            "variables": self.variables,
            "notices": self.notices,
        }

    def to_pandas(self) -> Any:
        """Give the arrays as a pandas DataFrame, the largest first.

        Raises ImportError with a sentence when pandas is not installed.
        """
        return data_frame([array.to_dict() for array in self.arrays])


class MemoryWatch:
    """Compares the memory when it was made with that when it is asked for a report."""

    def __init__(self) -> None:
        self._before = device_memory()
        self._alive = {id(array): weakref.ref(array) for array in _live_arrays()}

    def report(
        self,
        names: Mapping[str, Any],
        compiles: Sequence[Compile],
        used: Mapping[str, Any],
    ) -> MemoryReport:
        """Report on what has happened since.

        `names` is the user's namespace, in which the holders of arrays are looked for; `compiles` is what has
        been compiled since; `used` are the values that the body used, jitted functions among them.
        """
        report = report_now(names, programs(compiles, used), self._is_new)
        report.before = self._before
        report.notices += _peak_notices(self._before, report.after)
        return report

    def _is_new(self, array: Any) -> bool:
        reference = self._alive.get(id(array))
        return reference is None or reference() is not array


def report_now(
    names: Mapping[str, Any],
    programs: Sequence[Program] = (),
    is_new: Callable[[Any], bool] = lambda _: False,
) -> MemoryReport:
    """Report on the memory as it is now: devices, the largest arrays and who holds them, the variables.

    The arrays are the largest of all and the largest of the new ones.
    """
    arrays = _live_arrays()
    ordered = sorted(arrays, key=_size_bytes, reverse=True)
    largest = ordered[:LARGEST] + [array for array in ordered[LARGEST:] if is_new(array)][:LARGEST]
    held = holders(names, largest)
    devices = device_memory()
    return MemoryReport(
        before=[],
        after=devices,
        programs=list(programs),
        arrays=[_held(array, held.get(id(array), ()), is_new(array)) for array in largest],
        arrays_bytes=sum(_size_bytes(array) for array in arrays),
        arrays_count=len(arrays),
        variables=VARIABLES.to_dict(),
        notices=_device_notices(devices) + VARIABLES.problems(),
    )


def device_memory() -> list[DeviceMemory]:
    """Ask the allocator of every device of this process."""
    import jax

    return [_device(device) for device in jax.local_devices()]


def _device(device: Any) -> DeviceMemory:
    stats: Mapping[str, int] = device.memory_stats() or {}
    return DeviceMemory(
        device=str(device),
        in_use_bytes=stats.get("bytes_in_use"),
        peak_bytes=stats.get("peak_bytes_in_use"),
        limit_bytes=stats.get("bytes_limit"),
        pool_bytes=stats.get("pool_bytes"),
        largest_allocation_bytes=stats.get("largest_alloc_size"),
        largest_free_block_bytes=stats.get("largest_free_block_bytes"),
        allocations=stats.get("num_allocs"),
    )


def _device_notices(devices: Sequence[DeviceMemory]) -> list[str]:
    silent = [device.device for device in devices if not device.known]
    if not silent:
        return []
    tell = "tells" if len(silent) == 1 else "tell"
    return [
        f"{', '.join(silent[:8])} {tell} nothing of memory in use (JAX has no statistics for a CPU). "
        "What arrays take and programs need is known all the same."
    ]


def _peak_notices(before: Sequence[DeviceMemory], after: Sequence[DeviceMemory]) -> list[str]:
    """Say of each device's peak whether this run raised it: the allocator's peak is the process's."""
    notices: list[str] = []
    for old, new in zip(before, after, strict=False):
        if old.peak_bytes is None or new.peak_bytes is None:
            continue
        peak = units.size(new.peak_bytes)
        if new.peak_bytes > old.peak_bytes:
            notices.append(
                f"{new.device}: this raised the process's peak from {units.size(old.peak_bytes)} to {peak}."
            )
        else:
            notices.append(
                f"{new.device}: the peak of {peak} was reached before this ran, and can't be reset; this "
                "stayed below it. Restart the kernel to see the peak of this alone."
            )
    return notices


def programs(compiles: Sequence[Compile], used: Mapping[str, Any]) -> list[Program]:
    """List the programs that are known to belong to a run, those that need most first.

    They are what was compiled in it (operations outside of jit are programs too), and the functions that it
    used and that had been compiled before. An operation compiled before is not seen.
    """
    compiled = [entry for entry in compiles if entry.memory is not None]
    found = [Program(entry.name, entry.memory) for entry in compiled if entry.memory is not None]
    names = {entry.name for entry in compiled if not entry.operation}
    for function in _jitted(used):
        name = str(getattr(function, "__name__", "function"))
        needs = LOG.history.memory_of(function) if name not in names else None
        if needs is not None:
            found.append(Program(name, dict(needs)))
    distinct = {(program.name, *sorted(program.needs.items())): program for program in found}
    return sorted(distinct.values(), key=lambda program: -program.total_bytes)


def largest_need_bytes(compiles: Sequence[Compile], used: Mapping[str, Any]) -> int | None:
    """Give what the largest of the `programs` of a run needs on a device: arguments, output and temporary.

    None where that is not known: of a function that was compiled before for several shapes, nothing tells
    which program ran.
    """
    compiled = {entry.name for entry in compiles if entry.memory is not None and not entry.operation}
    for function in _jitted(used):
        before = getattr(function, "__name__", "") not in compiled and LOG.history.knows(function)
        if before and LOG.history.memory_of(function) is None:
            return None
    return max((program.total_bytes for program in programs(compiles, used)), default=None)


def _jitted(used: Mapping[str, Any]) -> list[Callable[..., Any]]:
    """Give the functions behind those of the values that jax.jit made."""
    functions = (
        getattr(value, "__wrapped__", None) for value in used.values() if hasattr(value, "lower")
    )  # jax.jit keeps the function there
    return [function for function in functions if callable(function)]


def live_bytes() -> dict[str, int]:
    """Add up what the live arrays take, a device each.

    Small arrays are counted even where they show another's memory: to look costs more than they take.
    """
    found: dict[Any, int] = {}
    single: list[tuple[Any, Any, int]] = []
    seen: set[int] = set()
    for array in _alive():
        devices = array.sharding.addressable_devices
        if len(devices) == 1:  # most are, and this takes a third of the time
            size_bytes = math.prod(array.shape) * array.dtype.itemsize
            for device in devices:
                if size_bytes >= _SMALL_BYTES:
                    single.append((device, array, size_bytes))
                else:
                    found[device] = found.get(device, 0) + size_bytes
        else:
            seen.update(_pointers(array))
            each = _size_bytes(array) // max(len(devices), 1)
            for device in devices:
                found[device] = found.get(device, 0) + each
    for device, array, size_bytes in single:
        pointer = _pointer(array)
        if pointer not in seen:
            found[device] = found.get(device, 0) + size_bytes
        if pointer:
            seen.add(pointer)
    return {str(device): size_bytes for device, size_bytes in found.items()}


def process_bytes() -> int | None:
    """Give the memory of this process that is in the machine's (resident); None where it can't be told."""
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)  # at every sample of a watch
        try:
            pages = int(os.read(descriptor, 200).split()[1])
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):  # not Linux
        return _process_bytes_elsewhere()
    return pages * os.sysconf("SC_PAGE_SIZE")


def _process_bytes_elsewhere() -> int | None:
    try:
        import psutil  # every ipykernel brings it
    except ImportError:
        return None
    return int(psutil.Process().memory_info().rss)


def _live_arrays() -> list[Any]:
    return _without_views(_alive())


def _alive() -> list[Any]:
    import jax

    return [array for array in jax.live_arrays() if not array.is_deleted() and not is_own(array)]


def _without_views(arrays: Sequence[Any]) -> list[Any]:
    """Leave out arrays that show other arrays' memory, which takes nothing: what JAX made of one to print it
    on a CPU, or the shards of one that lies on several devices.

    The oldest array of some memory stays; JAX lists the newest first.
    """
    kept: list[Any] = []
    seen: set[int] = set()
    parted = [array for array in arrays if len(array.sharding.device_set) > 1]
    for array in parted:
        seen.update(_pointers(array))
    parts = {id(array) for array in parted}
    for array in reversed(arrays):
        pointer = 0 if id(array) in parts else _pointer(array)
        if pointer not in seen:
            kept.append(array)
        if pointer:
            seen.add(pointer)
    return kept[::-1]


def _pointers(array: Any) -> list[int]:
    return [pointer for shard in array.addressable_shards if (pointer := _pointer(shard.data))]


def _pointer(array: Any) -> int:
    """Give where an array's memory lies; 0 where that can't be told, or not without waiting for it."""
    try:
        return int(array.unsafe_buffer_pointer()) if array.is_ready() else 0
    except Exception:  # noqa: BLE001 - deleted meanwhile, failed, or of a backend without pointers
        return 0


def _size_bytes(array: Any) -> int:
    """Bytes on all devices of this process: a replicated array takes them on each."""
    try:
        sharding = array.sharding
        shard: tuple[int, ...] = sharding.shard_shape(array.shape)
        count = len(sharding.addressable_devices)
    except (AttributeError, ValueError, RuntimeError):  # deleted meanwhile, or uneven shards
        return int(getattr(array, "nbytes", 0))
    items = 1
    for length in shard:
        items *= length
    return items * count * int(array.dtype.itemsize)


def _held(array: Any, names: Sequence[str], new: bool) -> HeldArray:
    return HeldArray(
        shape=tuple(array.shape),
        dtype=getattr(array.dtype, "name", str(array.dtype)),
        size_bytes=_size_bytes(array),
        devices=tuple(sorted(str(device) for device in array.devices())),
        holders=tuple(names),
        new=new,
    )
