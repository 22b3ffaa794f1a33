"""One stream of pickles, in which objects that several variables share stay shared."""

from __future__ import annotations

import copyreg
import functools
import io
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from jupyterlab_jaxprof.nsight.carry import definitions as classes
from jupyterlab_jaxprof.nsight.carry import rebuild
from jupyterlab_jaxprof.nsight.carry.arrays import Arrays
from jupyterlab_jaxprof.nsight.carry.jax_values import reduce_jax
from jupyterlab_jaxprof.nsight.carry.names import names_in
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry
from jupyterlab_jaxprof.nsight.carry.values import is_importable, may_need_us, reduce_value


@dataclass
class Needs:
    """What an object leads to: classes (by number) and set-up cells that must come before it, and the names
    that its functions read when they are called; the files of the code in it."""

    classes: set[int] = field(default_factory=lambda: set[int]())
    set_up: set[str] = field(default_factory=lambda: set[str]())
    names: set[str] = field(default_factory=lambda: set[str]())
    files: set[str] = field(default_factory=lambda: set[str]())


class Pickler(cloudpickle.Pickler):
    """Pickles the notebook's objects; `needs` gathers what the last `dump` has led to.

    `set_up` has the objects that set-up cells make, by identity, with their names. Objects in `broken` are
    left out.
    """

    def __init__(
        self,
        file: io.BytesIO,
        namespace: Mapping[str, Any],
        arrays: Arrays,
        definitions: classes.Definitions,
        set_up: Mapping[int, str],
    ) -> None:
        super().__init__(file, protocol=5)
        self._namespace = namespace
        self._arrays = arrays
        self._definitions = definitions
        self._set_up = set_up
        self.needs = Needs()
        self.broken: dict[int, Any] = {}
        self.last: Any = None

    def dump(self, obj: Any) -> None:
        """Pickle an object. Raises CannotCarry, and whatever pickling raises, with the object in `last`."""
        self.last = obj
        super().dump(obj)

    def reducer_override(self, obj: Any) -> Any:
        """Reduce an object: by us where we know better, else by cloudpickle and pickle."""
        self.last = obj
        if id(obj) in self.broken:
            return rebuild.nothing, ()
        name = self._set_up.get(id(obj))
        if name is not None:
            self.needs.set_up.add(name)
            return rebuild.variable, (name,)
        if isinstance(obj, type):
            return self._reduce_class(obj)
        if _is_plain(type(obj)):
            return NotImplemented
        reduction = reduce_jax(obj, self._arrays)
        if reduction is None:
            reduction = reduce_value(obj, self._namespace)
        if reduction is None and _is_numpy_array(obj):
            reduction = self._arrays.reduce_numpy(obj)
        if reduction is not None:
            if reduction[0] is rebuild.function:
                self._read(obj)
            return reduction
        if isinstance(obj, types.FunctionType) and not is_importable(obj):
            self.needs.files.add(obj.__code__.co_filename)
        return super().reducer_override(obj)

    def _reduce_class(self, cls: type) -> Any:
        if cls.__module__ != "__main__" or cls in (type(None), type(NotImplemented), type(...)):
            if type(cls) in copyreg.dispatch_table:
                return NotImplemented  # its library has a way of its own
            return super().reducer_override(cls)
        outer = self._outer(cls)
        if outer is not None:
            return getattr, (outer, cls.__name__)
        number = self._definitions.number(cls)
        if number is not None:
            self.needs.classes.add(number)
            return rebuild.definition, (number,)
        if classes.is_namedtuple_only(cls):
            fields: Any = cls
            defaults = tuple(fields._field_defaults.values())
            return rebuild.namedtuple, (cls.__name__, fields._fields, defaults)
        return super().reducer_override(cls)

    def _outer(self, cls: type) -> type | None:
        """The class in whose body a class stands."""
        root, *path = cls.__qualname__.split(".")[:-1] or [""]
        outer: Any = self._namespace.get(root)
        for name in path:
            outer = getattr(outer, name, None)
        return outer if isinstance(outer, type) and vars(outer).get(cls.__name__) is cls else None

    def _read(self, function: types.FunctionType) -> None:
        self.needs.files.add(function.__code__.co_filename)
        if function.__globals__ is self._namespace:
            self.needs.names |= names_in(function.__code__).all


@functools.lru_cache(maxsize=1024)
def _is_plain(kind: type) -> bool:
    """Whether pickle alone does all objects of a class well: there may be very many of them."""
    numpy: Any = sys.modules.get("numpy")
    is_array = numpy is not None and issubclass(kind, numpy.ndarray)
    return not (is_array or kind.__module__.startswith("jax") or may_need_us(kind))


def _is_numpy_array(obj: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.ndarray)


def why_not(error: Exception) -> str:
    """Say as a clause why an object could not be pickled."""
    if isinstance(error, CannotCarry):
        return str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be pickled"
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return (
        f"it belongs to the kernel's process: {said}"
        if isinstance(error, TypeError)
        else f"pickling it failed: {said}"
    )
