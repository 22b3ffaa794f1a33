"""Python's objects as pickles: what pickle and cloudpickle refuse, or change without a word, done here.

Functions travel as what they are now: their code, their closure, and the globals of the notebook or of their
module. No source of theirs is run again, so nothing is opened, written or printed by it.
"""

from __future__ import annotations

import _thread
import functools
import io
import marshal
import operator
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from jupyterlab_jaxprof.nsight.carry import rebuild
from jupyterlab_jaxprof.nsight.carry.arrays import Reduction
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry

_REFUSED: dict[type, str] = {
    types.GeneratorType: "a generator can't be copied in the middle of its run",
    types.AsyncGeneratorType: "a generator can't be copied in the middle of its run",
    types.CoroutineType: "a coroutine can't be copied in the middle of its run",
    types.FrameType: "it is a running function's frame",
    types.TracebackType: "it is the traceback of an error",
    io.IOBase: "it is an open file, which belongs to the kernel's process",
}
_REFUSED_BY_NAME = {
    ("threading", "Thread"): "a thread runs in the kernel's process only",
    ("threading", "local"): "its values belong to the kernel's threads",
    ("_thread", "_local"): "its values belong to the kernel's threads",
    ("subprocess", "Popen"): "it is a process of the kernel's",
    ("socket", "socket"): "it is a connection of the kernel's process",
    ("sqlite3", "Connection"): "it is a connection of the kernel's process",
    ("multiprocessing.shared_memory", "SharedMemory"): (
        "it is memory that the kernel's process shares, and a process that ends would remove it"
    ),
    ("_asyncio", "Task"): "it belongs to the kernel's event loop",
    ("_asyncio", "Future"): "it belongs to the kernel's event loop",
    ("asyncio.events", "AbstractEventLoop"): "it is the kernel's event loop",
}
_RLOCK = type(_thread.RLock())
_STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
_SPECIAL = ("__defaults__", "__kwdefaults__", "__doc__", "__module__", "__qualname__", "__annotations__")


def reduce_value(obj: Any, namespace: Mapping[str, Any]) -> Reduction | None:
    """Reduce an object of Python; None where pickle and cloudpickle do it well.

    Raises CannotCarry for what belongs to the kernel's process alone.
    """
    kind: type = type(obj)
    if kind is types.ModuleType:
        return _reduce_module(obj, namespace)
    if kind is types.CellType:
        return types.CellType, ()  # its value comes with the functions that hold it
    if kind is types.FunctionType:
        return None if is_importable(obj) else reduce_function(obj, namespace)
    if kind is types.MethodType:
        return _reduce_method(obj)
    reducer = _REDUCERS.get(kind)
    if reducer is not None:
        return reducer(obj)
    if kind.__name__ in ("_lru_cache_wrapper", "lock") or kind is _RLOCK:
        return _reduce_builtin(obj, kind)
    if not isinstance(obj, type):
        _refuse(obj, kind)
        return _by_reference(obj, kind) or _without_setstate(obj, kind)
    return None


def may_need_us(kind: type) -> bool:
    """Whether `reduce_value` may have something to say to an object of a class."""
    return (
        issubclass(kind, (type, *_REFUSED))
        or kind in _REDUCERS
        or any((base.__module__, base.__name__) in _REFUSED_BY_NAME for base in kind.__mro__)
        or any(name in vars(base) for base in kind.__mro__ for name in ("__call__", "__getattr__", "acquire"))
        or kind.__module__ in ("types", "typing", "weakref")
        or kind in (types.ModuleType, types.CellType, types.MethodType)
        or any(isinstance(getattr(sys, name), kind) for name in _STREAMS)
        or (kind.__module__ != "__main__" and kind in _kinds_of_constants(kind.__module__))
    )


def _kinds_of_constants(module: str) -> set[type]:
    return {type(value) for value in vars(sys.modules.get(module, types)).values()}


def is_importable(obj: Any) -> bool:
    """Whether a module other than the notebook has this very object under the object's own name."""
    if isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType):
        module, name = obj.__module__, obj.__qualname__
    else:  # a wrapper that says of what; asking the object itself could run code of the user's
        own = attributes_of(obj)
        module, name = own.get("__module__"), own.get("__qualname__")
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return False
    found: Any = sys.modules.get(module)
    try:
        return found is not None and operator.attrgetter(name)(found) is obj
    except AttributeError:
        return False


def attributes_of(obj: Any) -> Mapping[str, Any]:
    """An object's own attributes, without asking its class for them."""
    try:
        found: Any = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict | types.MappingProxyType) else {}


def reduce_function(function: types.FunctionType, namespace: Mapping[str, Any]) -> Reduction | None:
    """Reduce a function of the notebook, or one made inside a function of a module.

    None for one with other globals (a script that `%run` ran), which cloudpickle carries with a copy of them.
    """
    names = function.__globals__
    if names is namespace:
        module = None
    else:
        module = names.get("__name__")
        if vars(sys.modules.get(module or "", types.ModuleType(""))) is not names:
            return None
    cells = function.__closure__ or ()
    special = {name: getattr(function, name) for name in _SPECIAL}
    if getattr(function, "__type_params__", ()):  # Python 3.12 and later
        special["__type_params__"] = getattr(function, "__type_params__")  # noqa: B009 - not in 3.11
    state = {
        "attributes": dict(function.__dict__),
        "special": {name: value for name, value in special.items() if value},
        "cells": [(cell, _contents(cell)) for cell in cells],
    }
    arguments = (function.__code__, module, function.__name__, cells)
    return rebuild.function, arguments, state, None, None, rebuild.fill_function


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return rebuild.EMPTY_CELL


def _reduce_module(module: types.ModuleType, namespace: Mapping[str, Any]) -> Reduction | None:
    return (rebuild.main_module, ()) if vars(module) is namespace else None


def _reduce_method(method: types.MethodType) -> Reduction | None:
    """Look a bound method up in its object, so that no second function is made of it."""
    name, owner = method.__func__.__name__, type(method.__self__)
    known = any(vars(kind).get(name) is method.__func__ for kind in owner.__mro__)
    return (getattr, (method.__self__, name)) if known else None


def _reduce_builtin(obj: Any, kind: type) -> Reduction | None:
    if kind.__name__ == "_lru_cache_wrapper":
        if is_importable(obj):
            return rebuild.attribute, (obj.__module__, obj.__qualname__)
        how = obj.cache_parameters()
        attributes = {name: value for name, value in vars(obj).items() if name != "cache_parameters"}
        arguments = (obj.__wrapped__, how["maxsize"], how["typed"])
        return rebuild.lru_cache, arguments, attributes, None, None, rebuild.fill_object
    if kind is not _RLOCK and obj.locked():
        raise CannotCarry("it is a lock that is held just now")
    return rebuild.lock, (kind is _RLOCK,)


def _reduce_weak_reference(reference: Any) -> Reduction:
    target = reference()
    if target is None:
        raise CannotCarry("it is a weak reference to an object that is gone")
    return rebuild.weak_reference, (target,)


def _reduce_weak_container(container: Any, members: list[Any]) -> Reduction:
    return type(container), (), members, None, None, rebuild.fill_weak


_REDUCERS: dict[type, Callable[[Any], Reduction]] = {
    types.CodeType: lambda code: (marshal.loads, (marshal.dumps(code),)),  # cloudpickle forgets its file
    types.MappingProxyType: lambda proxy: (types.MappingProxyType, (dict(proxy),)),
    # their own way is a name in the notebook, which the child process does not have yet
    typing.NewType: lambda new: (typing.NewType, (new.__name__, new.__supertype__)),
    typing.ParamSpec: lambda spec: (typing.ParamSpec, (spec.__name__,)),
    typing.TypeVarTuple: lambda many: (typing.TypeVarTuple, (many.__name__,)),
    memoryview: lambda view: (memoryview, (view.tobytes(),)),
    weakref.ref: _reduce_weak_reference,
    weakref.WeakKeyDictionary: lambda d: _reduce_weak_container(d, list(d.items())),
    weakref.WeakValueDictionary: lambda d: _reduce_weak_container(d, list(d.items())),
    weakref.WeakSet: lambda members: _reduce_weak_container(members, list(members)),
}


def _refuse(obj: Any, kind: type) -> None:
    if kind in (io.StringIO, io.BytesIO):
        return
    for refused, reason in _REFUSED.items():
        if isinstance(obj, refused) and not _stream_name(obj):
            raise CannotCarry(reason)
    for base in kind.__mro__:
        reason = _REFUSED_BY_NAME.get((base.__module__, base.__name__))
        if reason is not None:
            raise CannotCarry(reason)


def _stream_name(obj: Any) -> str | None:
    return next((name.strip("_") for name in _STREAMS if getattr(sys, name) is obj), None)


def _by_reference(obj: Any, kind: type) -> Reduction | None:
    """Refer to what a module has under a name: it is compared by identity, or holds a global state."""
    name = _stream_name(obj)
    if name is not None:
        return rebuild.stream, (name,)
    if is_importable(obj) and not isinstance(obj, types.BuiltinFunctionType):
        return rebuild.attribute, (obj.__module__, obj.__qualname__)
    module = kind.__module__
    if module in ("__main__", "builtins"):
        return None
    name = _constants(module).get(id(obj))
    if name is None or getattr(sys.modules[module], name, None) is not obj:
        return None
    return rebuild.attribute, (module, name)


@functools.lru_cache(maxsize=1024)
def _constants(module: str) -> dict[int, str]:
    """The instances that a module has of its own classes, by identity."""
    names = vars(sys.modules[module]) if module in sys.modules else {}
    return {id(value): name for name, value in names.items() if type(value).__module__ == module}


def _without_setstate(obj: Any, kind: Any) -> Reduction | None:
    """Reduce an object whose class answers for unknown attributes, which it can't before it has its state."""
    plain = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    if not plain or not hasattr(kind, "__getattr__") or hasattr(kind, "__setstate__"):
        return None
    reduction: Any = obj.__reduce_ex__(5)
    if len(reduction) < 3 or reduction[1] != (kind,) or any(part is not None for part in reduction[3:]):
        return None
    return rebuild.bare, (kind,), reduction[2], None, None, rebuild.fill_object
