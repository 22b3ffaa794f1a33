"""Everything of JAX that is private and needed to carry its objects. Tried with JAX 0.6, 0.10 and 0.12."""

from __future__ import annotations

import dataclasses
import inspect
import operator
from typing import Any


def weakly_typed(array: Any) -> Any:
    """Give an array the weak type that results of Python's numbers have."""
    from jax._src.lax import lax

    return lax._convert_element_type(array, array.dtype, weak_type=True)  # pyright: ignore[reportPrivateUsage]


def parts_of_jitted(function: Any) -> tuple[Any, Any] | None:
    """Give the function within a jitted one, and the options of jit; None where JAX has no such parts."""
    parts = getattr(function, "_fun", None), getattr(function, "_jit_info", None)
    return None if None in parts else parts


def jitted(function: Any, options: Any) -> Any:
    """Make a jitted function of its parts."""
    from jax._src import pjit

    return pjit._cpp_pjit(function, options)  # pyright: ignore[reportPrivateUsage]


def typed_array(array: Any) -> tuple[Any, ...] | None:
    """Give what makes a constant of a jaxpr again; None for other objects, and where JAX itself does it.

    JAX 0.10 pickles such a constant with an argument of another meaning: it can't be used afterwards.
    """
    kind: Any = type(array)
    if kind.__name__ != "TypedNdArray" or "aval" not in inspect.signature(kind.__new__).parameters:
        return None
    return kind, (array.val, array.aval)


def registration(cls: type) -> dict[str, Any] | None:
    """Give what made a class a node of pytrees, for `register`; None when it is none."""
    from jax._src import tree_util

    entry: Any = tree_util._registry.get(cls)  # pyright: ignore[reportPrivateUsage]
    if entry is None:
        return None
    closure = _closure(entry.to_iter)
    if "register_dataclass." in getattr(entry.to_iter, "__qualname__", ""):
        return {"dataclass": (closure["data_fields"], closure["meta_fields"])}
    with_keys: Any = closure.get("flatten_with_keys")
    if with_keys is None and hasattr(cls, "tree_flatten_with_keys"):
        with_keys = operator.methodcaller("tree_flatten_with_keys")
    return {"node": (entry.to_iter, entry.from_iter, with_keys)}


def register(cls: Any, how: dict[str, Any]) -> None:
    """Make a class a node of pytrees, unless it is one already."""
    import jax
    from jax._src import tree_util

    if cls in tree_util._registry:  # pyright: ignore[reportPrivateUsage]
        return
    if "dataclass" in how:
        data, meta = how["dataclass"]
        names = (
            {field.name for field in dataclasses.fields(cls) if field.init} if _is_dataclass(cls) else set()
        )
        jax.tree_util.register_dataclass(cls, data, meta, drop_fields=sorted(names - {*data, *meta}))
        return
    flatten, unflatten, with_keys = how["node"]
    if with_keys is None:
        jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    else:
        jax.tree_util.register_pytree_with_keys(cls, with_keys, unflatten, flatten)


def _is_dataclass(cls: type) -> bool:
    return dataclasses.is_dataclass(cls)


def _closure(function: Any) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or cells is None:
        return {}
    return {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
