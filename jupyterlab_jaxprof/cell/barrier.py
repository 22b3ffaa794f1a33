"""Waiting until everything that this process has enqueued on its devices has ended.

No one call of JAX does that. `block_until_ready` on the results that can be seen misses those dropped or
hidden in objects; `jax.effects_barrier` waits for callbacks alone. So: a tiny computation on every device,
and one over all of them, which end after all that this thread enqueued before (devices run in order;
programs over several devices are not ordered with those on one); then the callbacks; then the live arrays,
for those that other threads enqueued.

The fences themselves take time: some 100 us on a GPU while it is traced, and 500 us on two, as long as a
short step. So the arrays that are alive and on their way are waited for first, and where the fences then take
no longer than on an idle device, nothing else was left, and the work had ended when the last was ready.

An array whose computation failed (an allocation, say, on a GPU) is ready like any other, and says so only to
whoever waits for it: all that are alive are asked, and those that had failed before are known.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from IPython.core.error import UsageError

#: Waiting for less is not told: an idle device answers in microseconds, on a busy machine in milliseconds.
_WORTH_TELLING_NS = 100_000_000
#: When whoever waits is told why.
_PATIENCE_NS = 1_000_000_000
#: What a look at one live array takes, about; and at none.
_SCAN_NS, _LEAST_SCAN_NS = 300, 2_000
#: Fences that take more than this multiple of their time on an idle device have waited for something.
_IDLE_SPREAD = 2

_fences: dict[tuple[Any, ...], list[Callable[[], Any]]] = {}
#: The ids of the fences' own inputs, which live as long as the fences.
_inputs: set[int] = set()
#: Arrays that are alive and whose computation failed, by their id, once that has been told.
_broken: dict[int, weakref.ref[Any]] = {}


def import_jax() -> ModuleType:
    """Import JAX, or raise UsageError with the reason why it can't be."""
    try:
        import jax
    except Exception as error:  # noqa: BLE001 - a broken installation raises anything
        raise UsageError(
            f"JAX can't be imported in this kernel ({type(error).__name__}: {error}). Install or mend it "
            "in the kernel's environment (https://docs.jax.dev/en/latest/installation.html), then restart "
            "the kernel."
        ) from None
    return jax


class Barrier:
    """Waits for the devices of this process. Making one compiles its fences, once a process (some 50 ms).

    Raises UsageError when JAX can't be imported or finds no device.
    """

    def __init__(self) -> None:
        self._jax = import_jax()
        try:
            devices = tuple(self._jax.local_devices())
        except RuntimeError as error:
            raise UsageError(f"JAX finds no device to run on: {str(error).rstrip('.')}.") from None
        if devices not in _fences:
            _fences.clear()
            _inputs.clear()
            _fences[devices] = _compile_fences(self._jax, devices)
        self._run_fences = _fences[devices]
        self._idle_ns = 0
        """What the fences take on idle devices; 0 until `drain` has measured it."""
        self._scan_ns = 0
        """What a look at all live arrays takes, about."""
        self._settled: dict[int, weakref.ref[Any]] = {}
        """The arrays that `drain` has waited for, by their id: nothing more can happen to them."""

    def wait(self) -> int:
        """Wait for everything enqueued and return when it had ended (`time.perf_counter_ns`).

        After a `drain` the fences' own time is not in it, and what was dropped and took no longer than that
        is not seen. Raises what a callback raised, and KeyboardInterrupt: the work queued goes on then.
        """
        held_ns = time.perf_counter_ns()
        if self._scan_ns < self._idle_ns and self._wait_for_live(quietly=True):
            held_ns = time.perf_counter_ns()
        try:
            self._fence()
        except Exception:
            self._settle(self._unsettled())  # what failed with it is told by this
            raise
        fenced_ns = time.perf_counter_ns()
        if self._wait_for_live():
            return time.perf_counter_ns()
        return held_ns if fenced_ns - held_ns <= _IDLE_SPREAD * self._idle_ns else fenced_ns

    def drain(self, waiting: Callable[[], None] | None = None) -> list[str]:
        """Wait for what earlier cells left running. Returns sentences about it, if it was much.

        `waiting` is called once when that takes longer than a second; with it, an interrupt ends the wait at
        once.
        """
        began_ns = time.perf_counter_ns()
        if waiting is not None:
            self._look_on(waiting)
        notices: list[str] = []
        errors: list[Exception] = []
        try:
            self._fence()
        except Exception as error:  # noqa: BLE001 - an earlier callback's, whatever it is
            errors.append(error)
        arrays = _unbroken(self._jax.live_arrays())
        self._scan_ns = _LEAST_SCAN_NS + _SCAN_NS * len(arrays)
        errors += self._settle(arrays)
        self._settled = {id(array): weakref.ref(array) for array in arrays}
        if errors:
            notices.append(
                f"Work that an earlier cell had left running failed: {type(errors[0]).__name__}: {errors[0]}"
            )
        waited_ns = time.perf_counter_ns() - began_ns
        if waited_ns > _WORTH_TELLING_NS:
            notices.append(
                "Before this cell started, work that an earlier cell had left running took "
                f"{waited_ns / 1e9:,.1f} s to end. It is not part of what was measured."
            )
        idle_ns = time.perf_counter_ns()
        with contextlib.suppress(Exception):  # the same failure, which has been told
            self._fence()
        self._idle_ns = time.perf_counter_ns() - idle_ns
        return notices

    def _look_on(self, waiting: Callable[[], None]) -> None:
        """Look again and again until all that was enqueued has ended: JAX's own waits hear no interrupt."""
        began_ns = time.perf_counter_ns()
        tell: Callable[[], None] | None = waiting
        for array in [*self._enqueue_fences(), *self._jax.live_arrays()]:
            while _is_pending(array):
                waited_ns = time.perf_counter_ns() - began_ns
                if tell is not None and waited_ns > _PATIENCE_NS:
                    tell()
                    tell = None
                time.sleep(0.0002 if waited_ns < _WORTH_TELLING_NS else 0.02)

    def is_busy(self) -> bool:
        """Whether a device still works on what was enqueued; waits 0.1 s at most to tell."""
        results = self._enqueue_fences()
        deadline_ns = time.perf_counter_ns() + _WORTH_TELLING_NS
        while not all(result.is_ready() for result in results):
            if time.perf_counter_ns() > deadline_ns:
                return True
            time.sleep(0.0002)
        return False

    def _fence(self) -> None:
        results = self._enqueue_fences()
        for result in results:
            result.block_until_ready()
        try:
            self._jax.effects_barrier()
        except Exception:
            _settle_effects()
            raise

    def _enqueue_fences(self) -> list[Any]:
        if self._jax.config.jax_disable_jit:  # a compiled function refuses to run then
            with self._jax.disable_jit(False):
                return [run() for run in self._run_fences]
        return [run() for run in self._run_fences]

    def _wait_for_live(self, *, quietly: bool = False) -> bool:
        """Wait for the live arrays that are not ready yet; False when there is none.

        Raises what made one fail, unless that is to be heard later (`quietly`).
        """
        arrays = self._unsettled()
        pending = [array for array in arrays if _is_pending(array)]
        if not quietly:
            errors = self._settle(arrays)
            if errors:
                raise errors[0]
            return bool(pending)
        for array in pending:
            with contextlib.suppress(RuntimeError):
                array.block_until_ready()
        return bool(pending)

    def _unsettled(self) -> list[Any]:
        """Give the live arrays that have come since `drain`; asking each whether it is ready takes longer."""
        known = self._settled
        return _unbroken(
            [
                array
                for array in self._jax.live_arrays()
                if (settled := known.get(id(array))) is None or settled() is not array
            ]
        )

    def _settle(self, arrays: list[Any]) -> list[Exception]:
        """Wait for all of these arrays; gives what made any fail, each array's failure once."""
        try:
            self._jax.block_until_ready(arrays)
        except Exception:  # noqa: BLE001 - whatever a computation fails with; one of them alone is told
            return [error for array in arrays if (error := _failure(array)) is not None]
        return []


def is_own(array: Any) -> bool:
    """Whether an array is one of the fences', and none of the user's."""
    return id(array) in _inputs


def _failure(array: Any) -> Exception | None:
    try:
        array.block_until_ready()
    except Exception as error:  # noqa: BLE001 - the same
        if array.is_deleted():  # by another thread while we looked
            return None
        _broken[id(array)] = weakref.ref(array)
        return error.with_traceback(None)  # its frames would keep the arrays
    return None


def _unbroken(arrays: list[Any]) -> list[Any]:
    """Leave out the arrays whose failure has been told."""
    if not _broken:
        return arrays
    for key in [key for key, reference in _broken.items() if reference() is None]:
        del _broken[key]
    return [array for array in arrays if (known := _broken.get(id(array))) is None or known() is not array]


def _is_pending(array: Any) -> bool:
    try:
        return not array.is_ready()
    except RuntimeError:  # deleted by another thread
        return False


def _compile_fences(jax: ModuleType, devices: tuple[Any, ...]) -> list[Callable[[], Any]]:
    """Compile the fences ahead of time.

    A jitted function would compile again, at the user's cost, after a cell that flips x64 or clears JAX's
    caches.
    """
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    def jaxprof_fence(x: Any) -> Any:
        return x + 1

    places: list[Any] = [SingleDeviceSharding(device) for device in devices]
    if len(devices) > 1:
        places.append(NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices")))
    fences: list[Callable[[], Any]] = []
    with jax.transfer_guard("allow"), jax.log_compiles(False), jax.disable_jit(False):
        for place in places:
            x = jax.device_put(np.zeros(len(devices), np.float32), place)
            _inputs.add(id(x))
            compiled = jax.jit(jaxprof_fence).lower(x).compile()
            fences.append(lambda compiled=compiled, x=x: compiled(x))
        for run in fences:
            run().block_until_ready()
    return fences


def _settle_effects() -> None:
    """Wait for the callbacks besides one that failed, then forget them all, so that its error is raised once.

    `effects_barrier` stops at the first failure and keeps its token, and would blame every later cell for it.
    """
    from jax._src import dispatch

    effects = getattr(dispatch, "runtime_tokens", None)
    for tokens in ("current_tokens", "output_runtime_tokens"):
        for token in list(getattr(effects, tokens, {}).values()):
            with contextlib.suppress(Exception):
                token.block_until_ready()
    if hasattr(effects, "clear"):
        effects.clear()  # pyright: ignore[reportOptionalMemberAccess]
