"""Which names of the user's hold an array: in a container, in an object, or in what a function encloses."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, cast

_DEPTH = 8
_VALUES = 200_000  # values looked at in all: a namespace can hold anything
_PER_ARRAY = 4


def holders(names: Mapping[str, Any], arrays: Sequence[Any]) -> dict[int, tuple[str, ...]]:
    """Give for each array's id the paths to it, as `params['w']` or `Out[3]`, the shortest first.

    Only what can be reached by Python containers, attributes of instances and closures is found, up to a
    depth and a number of values that keep the search short.
    """
    wanted = {id(array) for array in arrays}
    found: dict[int, list[str]] = {}
    seen = {id(names)}
    aliases = _aliases(names)
    pending: list[tuple[str, Any, int]] = [
        (name, value, 0) for name, value in list(names.items()) if name not in aliases
    ]
    while pending and len(seen) < _VALUES:
        following: list[tuple[str, Any, int]] = []
        for path, value, depth in pending:
            if id(value) in wanted:
                found.setdefault(id(value), []).append(path)
                continue
            if id(value) in seen or depth == _DEPTH or _is_plain(value):
                continue
            seen.add(id(value))
            following += [(path + step, inner, depth + 1) for step, inner in _parts(value)]
        pending = following
    return {key: tuple(sorted(paths, key=len)[:_PER_ARRAY]) for key, paths in found.items()}


def _aliases(names: Mapping[str, Any]) -> set[str]:
    """Give IPython's own names for what `Out` and `In` hold; a `_` that the user has assigned is none."""
    shown = names.get("Out")
    if not isinstance(shown, dict):
        return set()
    of_out = {id(value) for value in cast("dict[Any, Any]", shown).values()}
    return {"_oh", "_ih", "In", "_dh"} | {
        name
        for name, value in list(names.items())
        if not name.strip("_0123456789") and name.startswith("_") and id(value) in of_out
    }


def _is_plain(value: Any) -> bool:
    """Whether nothing is looked for in it: IPython's shell holds what Out holds, under names of its own."""
    plain = (bool, int, float, complex, str, bytes, ModuleType, type)
    return value is None or isinstance(value, plain) or _is_shell(value)


def _is_shell(value: Any) -> bool:
    module = sys.modules.get("IPython.core.interactiveshell")
    return module is not None and isinstance(value, module.InteractiveShell)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Give what a value holds, with how it is reached; no code of the user's is called for it."""
    if isinstance(value, dict):
        for key, inner in list(cast("dict[Any, Any]", value).items()):
            if not _is_plain(inner):
                yield f"[{key!r}]" if isinstance(key, (str, int)) else "[…]", inner
    elif isinstance(value, (list, tuple)):
        names = getattr(type(cast("Sequence[Any]", value)), "_fields", None)  # of a named tuple
        for number, inner in enumerate(cast("Sequence[Any]", value)):
            if not _is_plain(inner):
                yield f".{names[number]}" if names else f"[{number}]", inner
    elif isinstance(value, (set, frozenset)):
        yield from (("{…}", inner) for inner in list(cast("set[Any]", value)))
    elif inspect.isfunction(value):
        for name, inner in enclosed(value).items():
            yield f" (closure: {name})", inner
    elif inspect.ismethod(value):
        yield ".__self__", value.__self__
    else:
        yield from ((f".{name}", inner) for name, inner in _attributes(value).items())


def enclosed(function: FunctionType) -> dict[str, Any]:
    """Give the values that a function encloses, by their names."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    return found


def _attributes(value: Any) -> dict[str, Any]:
    """Give an instance's attributes as they are stored, past properties and `__getattr__`."""
    found: dict[str, Any] = {}
    for kind in type(value).__mro__:
        stored = vars(kind).get("__dict__")
        if isinstance(stored, GetSetDescriptorType):
            found.update(stored.__get__(value))
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            slot = vars(kind).get(name)
            if isinstance(slot, MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # not assigned yet
                    found[name] = slot.__get__(value)
    return found
