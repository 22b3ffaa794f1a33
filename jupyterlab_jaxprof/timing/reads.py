"""Reads of device arrays by the host: each place where Python waits for a value and copies it.

All of `float(x)`, `x.item()`, `print(x)`, `if x:`, `np.asarray(x)` on an accelerator and their like end in
one of three methods of JAX's array class. From Python 3.12 on these are observed by `sys.monitoring`, with
nothing replaced; on 3.11 they are wrapped for the time of the measurement.

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
from types import CodeType, FrameType
from typing import Any

from jupyterlab_jaxprof.timing.lines import pause
from jupyterlab_jaxprof.timing.monitoring import array_class, free_tool, is_on_host

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


def read_observer(seen: Seen) -> MonitoredReads | PatchedReads:
    """Make the observer that fits this Python; use it as a context manager."""
    tool = free_tool()
    return PatchedReads(seen) if tool is None else MonitoredReads(seen, tool)


def way_of(method: str, caller: FrameType | None) -> str:
    """Name the way in which a value is read: by the outermost of the array's methods that call each other."""
    way = WAYS.get(method, "read")
    while caller is not None and caller.f_code.co_name in _BETWEEN:
        way, caller = WAYS.get(caller.f_code.co_name, way), caller.f_back
    return way


def _size_bytes(array: Any) -> int:
    return math.prod(array.shape) * array.dtype.itemsize  # a third of the time that array.nbytes takes


class _Current(threading.local):
    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.size_bytes = 0
        self.began_ns = 0


class MonitoredReads:
    """Observes reads by `sys.monitoring`, of the methods' own code alone."""

    def __init__(self, seen: Seen, tool: int) -> None:
        self._seen = seen
        self._tool = tool
        self._current = _Current()
        self._methods = {code: name for name in METHODS if (code := _code(name)) is not None}

    def __enter__(self) -> MonitoredReads:
        monitoring: Any = sys.monitoring  # pyright: ignore[reportAttributeAccessIssue] - 3.12 and later
        events = monitoring.events
        monitoring.use_tool_id(self._tool, "jupyterlab-jaxprof")
        monitoring.register_callback(self._tool, events.PY_START, self._on_start)
        monitoring.register_callback(self._tool, events.PY_RETURN, self._on_return)
        for code in self._methods:
            monitoring.set_local_events(self._tool, code, events.PY_START | events.PY_RETURN)
        return self

    def __exit__(self, *_: object) -> None:
        monitoring: Any = sys.monitoring  # pyright: ignore[reportAttributeAccessIssue]
        for code in self._methods:
            monitoring.set_local_events(self._tool, code, 0)
        for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)

    def _on_start(self, code: CodeType, offset: int) -> None:
        current = self._current
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if current.frame is not None and _is_on_stack(current.frame, frame):
            return  # one method calls another
        array = frame.f_locals.get("self")
        if array is None or is_on_host(array):
            current.frame = None
            return
        current.frame, current.size_bytes = frame, _size_bytes(array)
        current.began_ns = time.perf_counter_ns()

    def _on_return(self, code: CodeType, offset: int, value: object) -> None:
        current = self._current
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if current.frame is frame:
            waited_ns = time.perf_counter_ns() - current.began_ns
            current.frame = None
            self._seen(frame, way_of(self._methods[code], frame.f_back), current.size_bytes, waited_ns)


def _is_on_stack(wanted: FrameType, frame: FrameType | None) -> bool:
    for _ in range(6):  # the array's methods call each other directly
        if frame is None:
            return False
        if frame is wanted:
            return True
        frame = frame.f_back
    return False


def _code(name: str) -> CodeType | None:
    method = vars(array_class()).get(name)
    method = getattr(method, "fget", method)
    return getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None


class PatchedReads:
    """Observes reads by wrappers around the methods, which are put back at the end.

    Where the user's lines are followed by `sys.settrace`, that pauses in all methods that read: it would be
    called for each of the ten or more functions of JAX's that a read calls.
    """

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._inside = _Inside()
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> PatchedReads:
        kind = array_class()
        for name in METHODS:
            method = vars(kind).get(name)
            if method is None:
                continue
            self._kept[name] = method
            wrapped = self._wrapped(name, getattr(method, "fget", method))
            setattr(kind, name, property(wrapped) if isinstance(method, property) else wrapped)
        for name in WAYS.keys() - set(METHODS):
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
