"""What the pickles call in the child process to make objects again. Imports the standard library alone."""

from __future__ import annotations

import collections
import functools
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Here:
    """What the process that loads has: the folder, the notebook's namespace, its classes by number."""

    folder: Path = field(default_factory=Path)
    namespace: dict[str, Any] = field(default_factory=lambda: {})
    definitions: dict[int, type] = field(default_factory=lambda: {})
    #: What weak references lead to, by identity: it is alive in the notebook, whoever holds it there
    referents: dict[int, Any] = field(default_factory=lambda: {})


HERE = Here()

EMPTY_CELL = "jaxprof: a closure's cell without a value"


def definition(number: int) -> type:
    """Give a class of the notebook, defined before."""
    return HERE.definitions[number]


def numbered(by_value: Sequence[type]) -> dict[int, type]:
    """Number the classes that are carried by value, apart from those that have a definition."""
    return {-1 - index: cls for index, cls in enumerate(by_value)}


def variable(name: str) -> Any:
    """Give what a set-up cell has bound to a name."""
    return HERE.namespace[name]


def main_module() -> types.ModuleType:
    """Give the notebook's module."""
    return sys.modules["__main__"]


def attribute(module: str, qualname: str) -> Any:
    """Give what a module has under a (dotted) name."""
    return functools.reduce(getattr, qualname.split("."), importlib.import_module(module))


def stream(name: str) -> Any:
    """Give this process's own stream of the name: stdin, stdout or stderr."""
    return getattr(sys, name)


def function(
    code: types.CodeType, module: str | None, name: str, cells: tuple[types.CellType, ...]
) -> types.FunctionType:
    """Make a function with the globals of a module, of the notebook when that is None."""
    names = HERE.namespace if module is None else vars(importlib.import_module(module))
    return types.FunctionType(code, names, name, None, cells or None)


def fill_function(function: types.FunctionType, state: Mapping[str, Any]) -> None:
    """Give a function what it has beside its code: attributes, defaults and the values of its closure."""
    function.__dict__.update(state["attributes"])
    for name, value in state["special"].items():
        setattr(function, name, value)
    for cell, value in state["cells"]:
        if not (isinstance(value, str) and value == EMPTY_CELL):
            cell.cell_contents = value


def fill_object(obj: Any, state: Any) -> None:
    """Set an object's state without asking it for `__setstate__`, which its `__getattr__` may mistake."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(obj, name, value)


def lru_cache(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    """Make an empty cache around a function."""
    return functools.lru_cache(maxsize, typed)(function)


def weak_reference(target: Any) -> Any:
    """Make a weak reference."""
    HERE.referents[id(target)] = target
    return weakref.ref(target)


def fill_weak(container: Any, members: list[Any]) -> None:
    """Fill a dictionary, of pairs, or a set that holds its members by weak references."""
    for member in members:
        if isinstance(container, weakref.WeakSet):
            HERE.referents[id(member)] = member
            container.add(member)
            continue
        key, value = member
        held = key if isinstance(container, weakref.WeakKeyDictionary) else value
        HERE.referents[id(held)] = held
        container[key] = value


def let_go() -> None:
    """Go on holding only what nothing but weak references leads to: what variables hold may end with them."""
    for key in list(HERE.referents):
        target = HERE.referents.pop(key)
        if sys.getrefcount(target) <= 2:  # the name here, and the call itself
            HERE.referents[key] = target


def lock(reentrant: bool) -> Any:
    """Make a lock that nobody holds."""
    import threading

    return threading.RLock() if reentrant else threading.Lock()


def nothing() -> None:
    """Stand for an object that can't be carried, while the others are looked at."""


def bare(cls: type) -> Any:
    """Make an instance without running its `__new__` or `__init__`."""
    return object.__new__(cls)


def namedtuple(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    """Make a class of named tuples, of the notebook."""
    return collections.namedtuple(name, fields, defaults=defaults, module="__main__")  # pyright: ignore[reportUntypedNamedTuple]


# Arrays of NumPy -----------------------------------------------------------------------------------------


def stored(number: int, dtype: Any, axes: tuple[int, ...], shape: tuple[int, ...], writeable: bool) -> Any:
    """Read an array from its file, by memory mapping: nothing is read before it is used.

    `axes` is how the axes lie in the file, the slowest first. An axis that was broadcast has length 1 there.
    """
    import numpy as np

    path = HERE.folder / "arrays" / f"{number}.npy"
    mapped: Any = np.load(path, mmap_mode="c" if writeable else "r", allow_pickle=False)
    array = np.asarray(mapped).view(dtype).transpose(np.argsort(axes))
    return array if array.shape == shape else np.broadcast_to(array, shape)


def read_only(array: Any) -> Any:
    """Let nobody write to an array."""
    array.flags.writeable = False
    return array


def subclass(array: Any, cls: type) -> Any:
    """Make an array one of a subclass, of the same memory."""
    return array.view(cls)


def user_file(path: str, dtype: Any, writeable: bool, offset: int, shape: tuple[int, ...], order: str) -> Any:
    """Map a file of the user's, as the notebook does; what is written to it stays in this process."""
    import numpy as np

    mode: Any = "c" if writeable else "r"
    return np.memmap(path, dtype, mode, offset, shape, order)  # pyright: ignore[reportCallIssue, reportArgumentType]


def part(base: Any, dtype: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Make a view of a memory-mapped array."""
    import numpy as np

    return np.ndarray(shape, dtype, base, offset, strides)


def made_up(shape: tuple[int, ...], dtype: Any, order: Any, how: str) -> Any:
    """Make an array of zeros, or of random numbers from 0 to 1 if `how` says so and the type is floating."""
    import numpy as np

    if how == "random" and np.dtype(dtype).kind == "f":
        numbers = np.random.default_rng(0).random(shape, np.float32)
        return np.asarray(numbers, dtype, order=order)
    return np.zeros(shape, dtype, order)
