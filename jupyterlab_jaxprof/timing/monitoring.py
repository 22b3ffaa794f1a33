"""What JAX tells of its compiles while it runs: everything private of it that the timing room uses.

Two sources here, of which only the first is public (calls.py has a third):

- `jax.monitoring` tells when a phase begins and ends, and of which function;
- the logger of the module that lowers programs is given, at DEBUG, the arguments that the program is for.

What JAX's loggers are offered comes through taps.py.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any, cast

_PREFIX = "/jax/core/compile/"
_CACHE = "/jax/compilation_cache/"


class Phase(Enum):
    """A phase of making a program; the value is the event that JAX reports for it."""

    TRACE = _PREFIX + "jaxpr_trace_duration"
    LOWER = _PREFIX + "jaxpr_to_mlir_module_duration"
    COMPILE = _PREFIX + "backend_compile_duration"


class CacheEvent(Enum):
    """What became of a look into the persistent compilation cache."""

    HIT = _CACHE + "cache_hits"
    WRITTEN = _CACHE + "cache_misses"  # JAX reports a miss only where it then writes the entry
    ASKED = _CACHE + "compile_requests_use_cache"


PHASES = {phase.value: phase for phase in Phase}
CACHE_EVENTS = {event.value: event for event in CacheEvent}

#: Options that decide what JAX traces and compiles; a change of one makes it compile again.
CONFIGURATION = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_device",
    "jax_default_dtype_bits",
    "jax_explicit_x64_dtypes",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_enable_custom_prng",
    "jax_threefry_partitionable",
    "jax_threefry_gpu_kernel_lowering",
    "jax_random_seed_offset",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_check_tracer_leaks",
    "jax_disable_jit",
    "jax_softmax_custom_jvp",
    "jax_compiler_enable_remat_pass",
    "jax_use_shardy_partitioner",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An array that a program takes, as JAX compiles for it. `name` is empty where it isn't known."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    def __str__(self) -> str:
        weak = ", weakly typed" if self.weak else ""
        return f"{self.dtype}[{','.join(str(size) for size in self.shape)}]{weak}"


@dataclass(frozen=True)
class Lowering:
    """A program that is about to be lowered: its arguments, and where they have been placed.

    `shardings` has a text for each argument, empty where the placement is left to JAX.
    """

    name: str
    arguments: tuple[Argument, ...]
    shardings: tuple[str, ...]


def base_name(name: str) -> str:
    """Give a function's own name: `step` for `jit(step)`, as newer versions of JAX call the program."""
    for prefix in ("jit(", "pjit(", "pmap("):
        if name.startswith(prefix) and name.endswith(")"):
            return name[len(prefix) : -1]
    return name


def configuration() -> dict[str, str]:
    """Give the values that the options of CONFIGURATION have in this thread, as text."""
    import jax

    values: dict[str, str] = {}
    for name in CONFIGURATION:
        value = getattr(jax.config, name, None)
        values[name] = str(getattr(value, "value", value))
    return values


def has_persistent_cache() -> bool:
    """Whether JAX has a directory for its persistent compilation cache, and uses it."""
    import jax

    return bool(
        getattr(jax.config, "jax_compilation_cache_dir", None)
        and getattr(jax.config, "jax_enable_compilation_cache", True)
    )


def cache_notices(misses: int) -> list[str]:
    """Say why programs that the persistent cache did not have are not in it now."""
    if not misses:
        return []
    import jax

    shortest_s = float(getattr(jax.config, "jax_persistent_cache_min_compile_time_secs", 0.0))
    least_bytes = int(getattr(jax.config, "jax_persistent_cache_min_entry_size_bytes", 0))
    size = (
        f"has {least_bytes} bytes or more (jax_persistent_cache_min_entry_size_bytes) "
        if least_bytes > 0
        else ""
    )
    programs = "1 program was" if misses == 1 else f"{misses} programs were"
    return [
        f"{programs} not found in JAX's persistent compilation cache, and not stored there either. It takes "
        f"what compiles in {shortest_s:g} s or more (jax_persistent_cache_min_compile_time_secs), {size}"
        "and calls nothing back into Python."
    ]


def lowering_of(record: logging.LogRecord) -> Lowering | None:
    """Read what a record of its tap says of a program; None when it is about something else."""
    if not str(record.msg).startswith("Compiling %s with global shapes") or not isinstance(
        record.args, tuple
    ):
        return None
    name, avals, *rest = cast("tuple[Any, ...]", record.args)
    try:
        names = _argument_names(len(avals))
        arguments = tuple(_argument(name, aval) for name, aval in zip(names, avals, strict=True))
        placed: Sequence[Any] = rest[0] if rest else ()
        texts = {id(sharding): _placement(sharding) for sharding in {id(s): s for s in placed}.values()}
        shardings = tuple(texts[id(sharding)] for sharding in placed)
    except (AttributeError, TypeError):  # another version's record
        return None
    return Lowering(base_name(str(name)), arguments, shardings)


def _argument(name: str, aval: Any) -> Argument:
    return Argument(
        name,
        tuple(aval.shape),
        getattr(aval.dtype, "name", str(aval.dtype)),
        bool(getattr(aval, "weak_type", False)),
    )


def _placement(sharding: Any) -> str:
    return "" if type(sharding).__name__ in ("UnspecifiedValue", "NoneType") else str(sharding)[:200]


def _argument_names(count: int) -> list[str]:
    """Give the names of the program's arguments, which JAX keeps for its error messages."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_name != "_cached_lowering_to_hlo":
        frame = frame.f_back
    program = frame.f_locals.get("closed_jaxpr") if frame is not None else None
    debug_info = getattr(getattr(program, "jaxpr", program), "debug_info", None)
    names = getattr(debug_info, "arg_names", None) or ()
    if len(names) > count:
        return [""] * count
    return [""] * (count - len(names)) + [str(name or "") for name in names]  # constants come first


def array_class() -> Any:
    """The class of JAX's arrays, whose methods do the reading."""
    from jax._src.array import ArrayImpl

    return ArrayImpl


def is_on_host(array: Any) -> bool:
    """Whether an array has been read before, so that its value lies in the host's memory already."""
    return getattr(array, "_npy_value", None) is not None


def free_tool() -> int | None:
    """Give a tool number of `sys.monitoring` that nobody uses; None when there is none, as on 3.11."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return None
    return next((tool for tool in (3, 4) if monitoring.get_tool(tool) is None), None)


class Listener:
    """Hears of phases and of the persistent cache, and never lets an exception out into the user's call."""

    def __init__(
        self,
        began: Callable[[Phase, str], None],
        ended: Callable[[Phase, str], None],
        cache: Callable[[CacheEvent], None],
    ) -> None:
        self.problem: str = ""
        self._began, self._ended, self._cache = began, ended, cache

    def install(self) -> None:
        """Register with JAX, once: JAX can have been told to forget its listeners."""
        import jax.monitoring as monitoring

        self.remove()
        monitoring.register_scalar_listener(self._on_begin)
        monitoring.register_event_duration_secs_listener(self._on_end)
        monitoring.register_event_listener(self._on_event)

    def remove(self) -> None:
        """Unregister; where JAX doesn't know the listener, nothing happens."""
        if "jax.monitoring" not in sys.modules:
            return
        for kind, listener in (
            ("scalar", self._on_begin),
            ("event_duration", self._on_end),
            ("event", self._on_event),
        ):
            _unregister(kind, listener)

    def _on_begin(self, event: str, value: float, **details: str | int) -> None:
        if event in PHASES:
            self.guarded(self._began, PHASES[event], str(details.get("fun_name", "")))

    def _on_end(self, event: str, duration_secs: float, **details: str | int) -> None:
        if event in PHASES:
            self.guarded(self._ended, PHASES[event], str(details.get("fun_name", "")))

    def _on_event(self, event: str, **details: str | int) -> None:
        if event in CACHE_EVENTS:
            self.guarded(self._cache, CACHE_EVENTS[event])

    def guarded(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function of ours, and keep its exception as the `problem`."""
        try:
            function(*args)
        except Exception as error:  # noqa: BLE001 - it would reach the user's own call of a jitted function
            self.problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _unregister(kind: str, listener: Callable[..., None]) -> None:
    """Unregister one listener: publicly from JAX 0.8 on, privately before."""
    import jax.monitoring as monitoring

    remove = getattr(monitoring, f"unregister_{kind}_listener", None)
    if remove is None:
        from jax._src import monitoring as private

        remove = getattr(private, f"_unregister_{kind}_listener_by_callback", None)
    if remove is not None:
        try:
            remove(listener)
        except (AssertionError, ValueError):
            return  # not registered
