"""Objects of JAX as pickles: those that hold devices, functions of C++ or compiled code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from jupyterlab_jaxprof.nsight.carry import internals, rebuild, rebuild_jax
from jupyterlab_jaxprof.nsight.carry.arrays import Arrays, Reduction
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry
from jupyterlab_jaxprof.nsight.carry.values import is_importable


def reduce_jax(obj: Any, arrays: Arrays) -> Reduction | None:
    """Reduce an object of JAX; None for one of another library, and where its own way of pickling does.

    Raises CannotCarry. JAX is not imported for it.
    """
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "Array"):  # not imported, or in the middle of it
        return None
    if isinstance(obj, jax.Array):
        return arrays.reduce_jax(obj)
    if type(obj).__name__ == "Traceback" and type(obj).__module__.startswith("jaxlib"):
        return rebuild.nothing, ()  # where an operation of a jaxpr was written: it may be left out
    if type(obj).__module__.startswith("jax._src") and (typed := internals.typed_array(obj)) is not None:
        return typed
    for kind, reducer in _reducers():
        if isinstance(obj, kind):
            return reducer(obj)
    return None


def _reduce_device(device: Any) -> Reduction:
    return rebuild_jax.device, (device.platform, device.id)


def _reduce_mesh(mesh: Any) -> Reduction:
    return rebuild_jax.mesh, (mesh.devices, mesh.axis_names, getattr(mesh, "axis_types", None))


def _reduce_jitted(function: Any) -> Reduction | None:
    if is_importable(function):
        return rebuild.attribute, (function.__module__, function.__qualname__)
    parts = internals.parts_of_jitted(function)
    return None if parts is None else (internals.jitted, parts)


def _reduce_compiled(compiled: Any) -> Reduction:
    from jax.experimental import serialize_executable

    try:
        payload, in_tree, out_tree = serialize_executable.serialize(compiled)
        devices = compiled.runtime_executable().local_devices()
    except Exception as error:
        raise CannotCarry(f"JAX can't write its compiled code down ({_first_line(error)})") from error
    return rebuild_jax.compiled, (payload, in_tree, out_tree, tuple(devices))


def _refuse_staged(staged: Any) -> Reduction:
    raise CannotCarry("JAX can't write down what it has traced or lowered but not compiled")


def _reduce_reference(reference: Any) -> Reduction:
    return rebuild_jax.reference, (reference[...],)


def _reduce_primitive(primitive: Any) -> Reduction:
    found = _primitives().get(id(primitive))
    if found is None or getattr(sys.modules.get(found[0]), found[1], None) is not primitive:
        raise CannotCarry("it is a primitive made in the notebook, and its rules can't be told from JAX's")
    return rebuild.attribute, found


@functools.lru_cache(maxsize=1)
def _primitives() -> dict[int, tuple[str, str]]:
    """Where the primitives of the libraries are, by identity: JAX's rules are found by it."""
    kind = _primitive_class()
    found: dict[int, tuple[str, str]] = {}
    for module_name, module in list(sys.modules.items()):
        if module_name in ("__main__", "__mp_main__") or not isinstance(
            getattr(module, "__dict__", None), dict
        ):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, kind):
                found.setdefault(id(value), (module_name, name))
    return found


def _primitive_class() -> Any:
    from jax.extend import core

    return core.Primitive


@functools.lru_cache(maxsize=1)
def _reducers() -> tuple[tuple[Any, Callable[[Any], Reduction | None]], ...]:
    import jax
    import jax.numpy as jnp

    reference: Any = getattr(jax, "Ref", None) or type(rebuild_jax.reference(jnp.zeros(())))
    return (
        (jax.Device, _reduce_device),
        (jax.sharding.Mesh, _reduce_mesh),
        (type(jax.jit(_refuse_staged)), _reduce_jitted),
        (jax.stages.Compiled, _reduce_compiled),
        ((jax.stages.Lowered, jax.stages.Traced), _refuse_staged),
        (reference, _reduce_reference),
        (_primitive_class(), _reduce_primitive),
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
