"""Arrays on their way: the large ones as `.npy` files, of their values when the plan is written.

Nothing is copied before: a plan holds the arrays themselves. A device's array comes to the host in parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.nsight.carry import rebuild, rebuild_jax
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Arrays below this size travel in the pickle itself: a file each would cost more.
IN_PICKLE_BYTES = 64 * 1024
_PART_BYTES = 64 * 1024 * 1024

#: What an object's reducer gives to the pickler: a function, its arguments and what may follow.
Reduction = tuple[Any, ...]


class Stored:
    """Stands in a pickle for the values of an array that lie in a file."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> Reduction:
        return rebuild.stored, self._arguments


@dataclass(frozen=True)
class Replacement:
    """`--shapes-only`: arrays of this size and more, and deleted ones, become zeros or random numbers."""

    how: str
    least_bytes: int


class Arrays:
    """The arrays that one stream of pickles leads to, each with the number of its file."""

    def __init__(self, replacement: Replacement | None = None) -> None:
        self._replacement = replacement
        self._sources: list[tuple[Any, bool]] = []
        self._default_devices: Any = None

    @property
    def size_bytes(self) -> int:
        """What the files take."""
        return sum(_size_bytes(array) for array, _ in self._sources)

    def write(self, folder: Path, progress: Callable[[int], None]) -> None:
        """Write the files below `folder`/arrays, and tell `progress` of each part's bytes."""
        (folder / "arrays").mkdir(mode=0o700)
        for number, (array, on_device) in enumerate(self._sources):
            path = folder / "arrays" / f"{number}.npy"
            if on_device:
                _write_from_device(path, array, progress)
            else:
                _write(path, array)
                progress(_size_bytes(array))

    # NumPy -----------------------------------------------------------------------------------------------

    def reduce_numpy(self, array: Any) -> Reduction | None:
        """Reduce an array of NumPy's or of a subclass; None where pickle itself does it well."""
        import numpy as np

        if type(array) is np.memmap:
            return self._reduce_mapped(array)
        if type(array) is not np.ndarray:
            return self._reduce_subclass(array)
        if array.dtype.hasobject:
            return None
        if array.nbytes < IN_PICKLE_BYTES:
            return None if array.flags.writeable else (rebuild.read_only, (array.copy(order="K"),))
        if self._replaces(array.nbytes):
            order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            return rebuild.made_up, (array.shape, array.dtype, order, self._how)
        return self._store_numpy(array).__reduce__()

    def _store_numpy(self, array: Any) -> Stored:
        import numpy as np

        shape, writeable = array.shape, array.flags.writeable
        once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
        axes = tuple(int(axis) for axis in np.argsort([-abs(step) for step in once.strides], kind="stable"))
        return self._add(once.transpose(axes), False, array.dtype, axes, shape, writeable)

    def _reduce_subclass(self, array: Any) -> Reduction | None:
        """Reduce an array of a subclass with its own attributes, which NumPy's way of pickling leaves out."""
        import numpy as np

        kind: Any = type(array)
        if kind.__reduce__ is not np.ndarray.__reduce__:
            return None
        names = [name for base in kind.__mro__ for name in vars(base).get("__slots__", ())]
        slots = {name: getattr(array, name) for name in names if hasattr(array, name)}
        state = dict(getattr(array, "__dict__", {})), slots
        return rebuild.subclass, (array.view(np.ndarray), kind), state, None, None, rebuild.fill_object

    def _reduce_mapped(self, array: Any) -> Reduction | None:
        """Reduce a memory-mapped file of the user's: the file is mapped again, and never written to."""
        import mmap

        import numpy as np

        whole = array
        while isinstance(whole.base, np.memmap):
            whole = whole.base
        if whole.mode == "c" or not isinstance(whole.base, mmap.mmap) or not _is_file(whole.filename):
            return self.reduce_numpy(array.view(np.ndarray))
        if array is not whole:
            offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            return rebuild.part, (whole, array.dtype, offset, array.shape, array.strides)
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        writeable = array.flags.writeable
        path = str(array.filename)
        return rebuild.user_file, (path, array.dtype, writeable, array.offset, array.shape, order)

    # JAX -------------------------------------------------------------------------------------------------

    def reduce_jax(self, array: Any) -> Reduction:
        """Reduce an array of JAX's. Raises CannotCarry for a tracer, a deleted one and one of other hosts."""
        import jax

        if isinstance(array, jax.core.Tracer):  # pyright: ignore[reportAttributeAccessIssue]
            raise CannotCarry("it is a tracer that leaked out of a function while JAX traced it")
        if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            return rebuild_jax.key, (jax.random.key_data(array), jax.random.key_impl(array))
        weak = bool(array.aval.weak_type)
        if array.is_deleted() and self._replacement is None:
            raise CannotCarry("its values are gone: it was deleted, or donated to a jitted function")
        sharding = array.sharding if array.committed else None
        if array.is_deleted() or self._replaces(array.nbytes):
            return rebuild_jax.made_up, (array.shape, array.dtype, sharding, weak, self._how)
        if not array.is_fully_addressable:
            raise CannotCarry("parts of it are on devices of other hosts")
        if len(array.sharding.device_set) == 1:
            elsewhere = None if array.committed else self._device_unless_default(array)
            return rebuild_jax.array, (self._host(array), sharding, weak, _layout(array), elsewhere)
        shards = {rebuild_jax.place(shard.index, array.shape): shard for shard in array.addressable_shards}
        hosts = [(place, self._host(shard.data)) for place, shard in shards.items()]
        return rebuild_jax.sharded, (array.shape, array.sharding, hosts, weak)

    def _device_unless_default(self, array: Any) -> Any:
        """The device of an array committed to none, if it isn't where such arrays are made now."""
        import jax.numpy as jnp

        if self._default_devices is None:
            self._default_devices = jnp.zeros(()).devices()
        return None if array.devices() == self._default_devices else next(iter(array.devices()))

    def _host(self, array: Any) -> Any:
        """Give the values of an array on one device as the pickle shall hold them."""
        import numpy as np

        if array.nbytes < IN_PICKLE_BYTES:
            return np.asarray(array)
        axes = tuple(range(array.ndim))
        return self._add(array, True, array.dtype, axes, array.shape, False)

    # Both ------------------------------------------------------------------------------------------------

    @property
    def _how(self) -> str:
        return "" if self._replacement is None else self._replacement.how

    def _replaces(self, size_bytes: int) -> bool:
        return self._replacement is not None and size_bytes >= self._replacement.least_bytes

    def _add(self, array: Any, on_device: bool, *how: Any) -> Stored:
        self._sources.append((array, on_device))
        return Stored(len(self._sources) - 1, *how)


def _size_bytes(array: Any) -> int:
    return int(math.prod(array.shape) * array.dtype.itemsize)


def _is_file(name: Any) -> bool:
    return name is not None and Path(name).is_file()


def _layout(array: Any) -> tuple[int, ...] | None:
    """The order of the axes on the device, the slowest first, where it is not the usual one."""
    found: Any = getattr(getattr(array, "format", None), "layout", None)
    order = getattr(found, "major_to_minor", None)
    return None if order is None or tuple(order) == tuple(range(len(order))) else tuple(order)


def _plain(dtype: Any) -> Any:
    """The type under which an `.npy` file holds a type that NumPy itself does not know, as bfloat16."""
    import numpy as np

    return np.dtype(f"u{dtype.itemsize}") if dtype.isbuiltin == 2 else dtype


def _write(path: Path, array: Any) -> None:
    import numpy as np

    np.save(path, array.view(_plain(array.dtype)), allow_pickle=False)


def _write_from_device(path: Path, array: Any, progress: Callable[[int], None]) -> None:
    """Write a device's array; one that does not lie in the host's memory comes here part by part.

    JAX keeps what it copied to the host with the array that it copied: so another array of the same memory
    is what is copied here.
    """
    import numpy as np

    dtype: Any = np.dtype(array.dtype)
    same = array.addressable_data(0)
    header: dict[str, Any] = {
        "descr": np.lib.format.dtype_to_descr(_plain(dtype)),
        "fortran_order": False,
        "shape": array.shape,
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for index in [()] if _is_on_host(array) else _parts(array.shape, dtype.itemsize):
            part: Any = np.asarray(same[index] if index else same)
            np.ascontiguousarray(part).view(_plain(dtype)).tofile(file)
            progress(int(part.nbytes))


def _is_on_host(array: Any) -> bool:
    return next(iter(array.devices())).platform == "cpu"


def _parts(shape: Sequence[int], item_bytes: int) -> Iterator[tuple[int | slice, ...]]:
    """Indices of consecutive parts of an array, each of at most 64 MiB where its shape allows it."""
    if math.prod(shape) * item_bytes <= _PART_BYTES:
        yield ()
        return
    axis = 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) * item_bytes > _PART_BYTES:
        axis += 1
    row_bytes = math.prod(shape[axis + 1 :]) * item_bytes
    step = max(1, _PART_BYTES // row_bytes)
    for outer in itertools.product(*(range(length) for length in shape[:axis])):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, min(start + step, shape[axis])))
