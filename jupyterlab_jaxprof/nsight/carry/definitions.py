"""The notebook's classes: defined again in the child process by their own statements.

Only so do they get what their metaclasses and decorators set up elsewhere: registrations as pytrees, the
transforms of flax and equinox. What the notebook changed of a class since then follows as data.
"""

from __future__ import annotations

import abc
import ast
import builtins
import enum
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupyterlab_jaxprof.nsight.carry.effects import effect_of
from jupyterlab_jaxprof.nsight.carry.names import Names, names_in, nested_codes
from jupyterlab_jaxprof.nsight.carry.refusal import CannotCarry
from jupyterlab_jaxprof.nsight.carry.sources import Sources, Statement, same_code

_PLAIN_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta, type(typing.Protocol), type(typing.NamedTuple))
_GENERATED = ("<string>", "<attrs", "<dataclass")
_SCALARS = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Definition:
    """A class of the notebook with the statement that defines it again."""

    number: int
    cls: type
    statement: Statement
    names: Names


class Definitions:
    """The classes that have been met, each with its statement."""

    def __init__(self, namespace: Mapping[str, Any], sources: Sources) -> None:
        self._namespace = namespace
        self._sources = sources
        self._numbers: dict[type, int | str] = {}
        self.found: list[Definition] = []
        self.by_value: list[type] = []

    def number(self, cls: type) -> int | None:
        """Give a class's number; None for one that is carried by value, as a plain one made in a function.

        Raises CannotCarry when it can't be defined again and is more than a plain class.
        """
        if cls not in self._numbers:
            self._numbers[cls] = self._look_at(cls)
        known = self._numbers[cls]
        if isinstance(known, str):
            if known:
                raise CannotCarry(known)
            return None
        return known

    def _look_at(self, cls: type) -> int | str:
        statement = None if "<locals>" in cls.__qualname__ else self._sources.statement(cls)
        if statement is None:
            reason = _reason_against_value(cls)
            if not reason:
                self.by_value.append(cls)
            return reason
        effect = effect_of(statement.node, self._namespace)
        if effect is not None:
            return f"the definition of class {cls.__name__} would have to run again, and {effect}"
        stale = _stale_base(statement.node, cls, self._namespace)
        if stale is not None:
            return (
                f"class {cls.__name__} was made with an earlier {stale}, which the notebook has defined anew "
                f"since; run the cell of {cls.__name__} again"
            )
        number = len(self.found)
        self.found.append(Definition(number, cls, statement, names_in(statement.compile())))
        return number


def is_namedtuple_only(cls: type) -> bool:
    """Whether a class is what `collections.namedtuple` makes."""
    own = [value for value in vars(cls).values() if isinstance(value, types.FunctionType)]
    return (
        cls.__bases__ == (tuple,)
        and hasattr(cls, "_fields")
        and all(
            function.__globals__.get("__name__") in ("collections", f"namedtuple_{cls.__name__}")
            for function in own
        )
    )


def changes(definition: Definition) -> dict[str, Any]:
    """What a class has now that its statement may not give it: methods and plain values set since.

    Containers only where the statement itself writes them down and they have changed.
    """
    cls = definition.cls
    if issubclass(cls, enum.Enum):
        return {}
    written = list(_all_codes(definition.statement.compile()))
    values = _values_in(definition.statement.node)
    found: dict[str, Any] = {}
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            code, names = function.__code__, function.__globals__
            own = names.get("__name__") == "__main__" and not code.co_filename.startswith(_GENERATED)
            if own and not any(same_code(code, other) for other in written):
                found[name] = value
        elif name.startswith("__"):
            continue
        elif isinstance(value, _SCALARS):
            if name in values or not name.startswith("_"):
                found[name] = value
        elif isinstance(value, list | dict | set) and name in values and _differs(values[name], value):
            found[name] = value
    return found


def registration_of(cls: type) -> dict[str, Any] | None:
    """What registers a class as a pytree; None when it is none, or JAX is not imported."""
    if "jax" not in sys.modules:
        return None
    from jupyterlab_jaxprof.nsight.carry.internals import registration

    return registration(cls)


def _reason_against_value(cls: type) -> str:
    """Why a class can't be rebuilt from its parts; empty when it can."""
    for kind in cls.__mro__[1:]:
        hook = vars(kind).get("__init_subclass__")
        if hook is not None and kind.__module__ not in ("builtins", "typing", "abc", "enum"):
            break
    else:
        if type(cls) in _PLAIN_METACLASSES:
            return ""
    base = cls.__mro__[1].__name__
    name = cls.__name__ if base == "object" else f"{cls.__name__}, a {base},"
    if "<locals>" in cls.__qualname__:
        return (
            f"class {name} was made inside a function, and only a class at the top level of "
            "a cell can be defined again"
        )
    return f"no cell of this kernel's history has the statement that made class {name.rstrip(',')}"


def _stale_base(node: ast.ClassDef, cls: type, names: Mapping[str, Any]) -> str | None:
    for base in node.bases:
        written = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(written, ast.Name):
            value = names.get(written.id, getattr(builtins, written.id, None))
            if isinstance(value, type) and value not in cls.__mro__:
                return written.id
    return None


def _values_in(node: ast.ClassDef) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            found |= {
                target.id: statement.value for target in statement.targets if isinstance(target, ast.Name)
            }
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value
        ):
            found[statement.target.id] = statement.value
    return found


def _differs(written: ast.expr, value: Any) -> bool:
    try:
        return bool(ast.literal_eval(written) != value)
    except (ValueError, TypeError):
        return False  # made by a call, which the statement makes again


def _all_codes(code: types.CodeType) -> list[types.CodeType]:
    return [code, *(inner for nested in nested_codes(code) for inner in _all_codes(nested))]
