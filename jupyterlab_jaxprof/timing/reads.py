"""Reads of device arrays by the host: each place where Python waits for a value and copies it.

All of `float(x)`, `x.item()`, `print(x)`, `if x:`, `np.asarray(x)` on an accelerator and their like end in
one of three methods of JAX's array class, which are wrapped for the time of the measurement. Observing them
by `sys.monitoring` (from Python 3.12 on) takes longer: it gives no arguments and takes two calls.

NumPy reads an array that lies in the host's memory (on a CPU) in place, without asking: that copies nothing,
and is not seen.
"""

from __future__ import annotations

import inspect
import math
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from jupyterlab_jaxprof.timing.lines import pause
from jupyterlab_jaxprof.timing.monitoring import array_class, is_on_host

METHODS = ("_value", "__array__", "item")

#: How a read looks in the user's code, by the method that made it.
WAYS = {
    "__float__": "float",
    "__int__": "int",
    "__bool__": "bool",
    "__complex__": "complex",
    "__index__": "index",
    "__hex__": "hex",
    "__oct__": "oct",
    "__format__": "format",
    "__repr__": "print",
    "__str__": "print",
    "__array__": "numpy",
    "item": "item",
    "tolist": "tolist",
    "tobytes": "tobytes",
    "__reduce__": "pickle",
    "device_get": "device_get",
    "_device_get": "device_get",
}

_BETWEEN = frozenset(WAYS) | {"wrapper"}  # newer versions of JAX annotate some methods for its profiler

#: Called with the frame that reads, the way, the array's bytes and the time waited in ns.
Seen = Callable[[FrameType, str, int, int], None]


def way_of(method: str, caller: FrameType | None) -> str:
    """Name the way in which a value is read: by the outermost of the array's methods that call each other."""
    way = WAYS.get(method, "read")
    while caller is not None and caller.f_code.co_name in _BETWEEN:
        way, caller = WAYS.get(caller.f_code.co_name, way), caller.f_back
    return way


def _size_bytes(array: Any) -> int:
    return math.prod(array.shape) * array.dtype.itemsize  # a third of the time that array.nbytes takes


class ReadObserver:
    """Observes reads by wrappers around the methods, which are put back at the end.

    Where the user's lines are followed by `sys.settrace`, that pauses in all methods that read: it would be
    called for each of the ten or more functions of JAX's that a read calls.
    """

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._inside = _Inside()
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> ReadObserver:
        kind = array_class()
        for name in METHODS:
            method = vars(kind).get(name)
            if method is None:
                continue
            self._kept[name] = method
            wrapped = self._wrapped(name, getattr(method, "fget", method))
            setattr(kind, name, property(wrapped) if isinstance(method, property) else wrapped)
        for name in WAYS.keys() - set(METHODS) if sys.gettrace() is not None else ():
            if inspect.isfunction(method := vars(kind).get(name)):
                self._kept[name] = method
                setattr(kind, name, _untraced(method))
        return self

    def __exit__(self, *_: object) -> None:
        for name, method in self._kept.items():
            setattr(array_class(), name, method)
        self._kept.clear()

    def _wrapped(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        inside, seen = self._inside, self._seen

        def observed(array: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if inside.now or is_on_host(array):
                return method(array, *args, **kwargs)
            inside.now = True
            follower = pause()
            began_ns = time.perf_counter_ns()
            try:
                value = method(array, *args, **kwargs)
                waited_ns = time.perf_counter_ns() - began_ns
                caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
                seen(caller, way_of(name, caller), _size_bytes(array), waited_ns)
            finally:
                inside.now = False
                if follower is not None:
                    sys.settrace(follower)
            return value

        return observed


class _Inside(threading.local):
    """Whether this thread is in one of the methods: they call each other."""

    def __init__(self) -> None:
        self.now = False


def _untraced(method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(array: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        follower = pause()
        if follower is None:
            return method(array, *args, **kwargs)
        try:
            return method(array, *args, **kwargs)
        finally:
            sys.settrace(follower)

    return wrapper
