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


@dataclass(frozen=True)
class Changes:
    """What a class has now that its statement may give otherwise, or not at all."""

    attributes: dict[str, Any]
    defaults: dict[str, tuple[Any, Any]]


def changes(definition: Definition) -> Changes:
    """Give the values and default arguments that a class has now, and the methods that were set since.

    The statement's own expressions are evaluated again, with the variables as they are now.
    """
    cls = definition.cls
    attributes: dict[str, Any] = {}
    defaults: dict[str, tuple[Any, Any]] = {}
    if issubclass(cls, enum.Enum):
        return Changes(attributes, defaults)
    written = list(_all_codes(definition.statement.compile()))
    assigned = _assigned_in(definition.statement.node)
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            if function.__defaults__ or function.__kwdefaults__:
                defaults[name] = (function.__defaults__, function.__kwdefaults__)
            code = function.__code__
            own = function.__globals__.get("__name__") == "__main__"
            generated = code.co_filename.startswith(_GENERATED)
            if own and not generated and not any(same_code(code, other) for other in written):
                attributes[name] = value
        elif (
            not name.startswith("__") and not hasattr(type(value), "__get__") and not isinstance(value, type)
        ):
            since = isinstance(value, _SCALARS) and not name.startswith("_")
            if name in assigned or since:
                attributes[name] = value
    return Changes(attributes, defaults)


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


def _assigned_in(node: ast.ClassDef) -> set[str]:
    """The names that a class's body assigns to."""
    targets: list[ast.expr] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets.append(statement.target)
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _all_codes(code: types.CodeType) -> list[types.CodeType]:
    return [code, *(inner for nested in nested_codes(code) for inner in _all_codes(nested))]
