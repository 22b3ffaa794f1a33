"""What a program was compiled for, and why a function that had been compiled was compiled again.

JAX's own explanation is not used: it reports a changed shape as 'config differs', and says nothing of
static arguments or of operations outside of jit. Two compiles of one function are compared here instead.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from types import CellType
from typing import Any, cast

from jupyterlab_jaxprof.timing.calls import Call
from jupyterlab_jaxprof.timing.monitoring import Argument, Lowering, configuration

_TOLD = 3  # differences of one kind that a reason names
_DEPTH = 5  # levels of functions within functions that are looked at
_ITEMS = 100


class Cause(StrEnum):
    """Why a program was compiled; all but the first three mean that the function had been compiled before."""

    FIRST = "first"
    DEFINED_ANEW = "defined anew"
    TRANSFORMED = "transformed"
    NEW_FUNCTION = "new function object"
    OPERATION = "operation"
    STATIC = "static argument"
    STRUCTURE = "structure"
    SHAPE = "shape"
    DTYPE = "dtype"
    WEAK_TYPE = "weak type"
    SHARDING = "device or sharding"
    CONFIGURATION = "configuration"
    OPTIONS = "options of jit"
    FORGOTTEN = "forgotten"


#: Causes that are no second compile of the same thing.
NOT_AGAIN = frozenset({Cause.FIRST, Cause.DEFINED_ANEW, Cause.TRANSFORMED})


@dataclass(frozen=True)
class Reason:
    """Why something was compiled: the cause, and a sentence for the user."""

    cause: Cause
    text: str

    @property
    def again(self) -> bool:
        """Whether the function had been compiled before."""
        return self.cause not in NOT_AGAIN


FIRST = Reason(Cause.FIRST, "Compiled for the first time.")


@dataclass(frozen=True, eq=False)
class Function:
    """Which function it was, without keeping it alive.

    `key` names it so that its compiles are found again, whichever object it is each time; `content` stands
    for its code and the values that are bound to it or enclosed by it.
    """

    reference: Callable[[], Any]
    key: str
    content: int
    of_jax: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Function:
        """Take a note of a function, a bound method, a `functools.partial` or any other callable."""
        try:
            reference = weakref.ref(function)
        except TypeError:  # nothing can refer to it weakly
            reference = _nothing
        inner = _innermost(function)
        module = str(getattr(inner, "__module__", ""))
        of_jax = module == "jax" or module.startswith("jax.")
        return cls(reference, _key(inner, module), hash(_content(function, _DEPTH)), of_jax)

    def __eq__(self, other: object) -> bool:
        """Whether the two are one object, as JAX asks; where that can't be told, one content.

        The functions' own `==` is not asked: a callable object's may compute with arrays.
        """
        if not isinstance(other, Function):
            return False
        if _nothing in (self.reference, other.reference):
            return self.content == other.content
        noted = self.reference()
        return noted is not None and noted is other.reference()

    def __hash__(self) -> int:
        return hash(self.key)


def _nothing() -> None:
    return None


def _innermost(function: Any) -> Any:
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        else:
            return function


def _key(function: Any, module: str) -> str:
    """Name a function: a lambda by its place, what grad makes of f (with f's name) by its code."""
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{module}.{name}"
    place = f":{code.co_filename}:{code.co_firstlineno}" if "<lambda>" in name else ""
    return f"{module}.{name}:{code.co_name}{place}"


def _content(value: Any, depth: int) -> Hashable:
    """Describe a function by its code and what it encloses: the same for one made anew."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, functools.partial):
        return _content((value.func, value.args, value.keywords), depth)
    if inspect.ismethod(value):
        return _content(value.__func__, depth)
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell)]
        return value.__code__, _content((cells, value.__defaults__), depth - 1)
    if isinstance(value, (tuple, list)):
        items = cast("Sequence[Any]", value)
        return tuple(_content(item, depth - 1) for item in items[:_ITEMS])
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value).items()
        return tuple((str(key), _content(item, depth - 1)) for key, item in islice(entries, _ITEMS))
    return type(value).__qualname__


def _is_empty(cell: CellType) -> bool:
    try:
        return cell.cell_contents is _nothing
    except ValueError:  # a name that is not assigned yet
        return True


@dataclass(frozen=True)
class Signature:
    """All that decides whether JAX can use a compiled program again, as far as it can be seen.

    `arguments` are those of the program (the ones that the function does not use are left out there);
    `leaves` are all that the call passed.
    """

    key: str
    arguments: tuple[Argument, ...] | None
    shardings: tuple[str, ...]
    configuration: Mapping[str, str]
    function: Function | None
    leaves: tuple[Argument, ...]
    placements: tuple[str, ...]
    form: str
    statics: Mapping[str, tuple[str, int]]
    options: Mapping[str, str]
    transformed: bool

    @classmethod
    def of(cls, name: str, call: Call | None, *, hidden: bool = False) -> Signature:
        """Take the signature of a function that is being called, or all that is known without its call.

        `hidden`: there is no such call, so that the program was made by a transformation or ahead of time.
        """
        if call is None:
            return replace(UNSEEN, key=name, configuration=configuration(), transformed=hidden)
        leaves = [] if call.transformed else call.dynamic()
        function = Function.of(call.function)
        return cls(
            key=function.key,
            arguments=None,
            shardings=(),
            configuration=configuration(),
            function=function,
            leaves=tuple(_described(leaf) for leaf in leaves),
            placements=_placements(leaves),
            form=f"{len(call.args)} positional and {', '.join(sorted(call.kwargs)) or 'no'} keyword",
            statics={name: _static(value) for name, value in call.statics().items()},
            options=call.jit_options(),
            transformed=call.transformed,
        )

    def lowered(self, lowering: Lowering | None) -> Signature:
        """Add what JAX tells of the program that it lowers for the call."""
        if lowering is None:
            return self
        return replace(self, arguments=lowering.arguments, shardings=lowering.shardings)

    def may_be_of(self, traced: Signature) -> bool:
        """Whether a program for this signature can have been made of a function traced for the other."""
        if self.function is None or traced.function is None:
            return True
        return self.function == traced.function if self.transformed else self == traced

    @property
    def size(self) -> int:
        """How much it takes in the history, in arguments."""
        return len(self.leaves) + len(self.arguments or ()) + 1

    @property
    def shown(self) -> tuple[Argument, ...] | None:
        """The arguments to show: the program's, else the call's, else None."""
        if self.arguments is not None:
            return self.arguments
        return self.leaves if self.function is not None and not self.transformed else None


#: Of a function that has not been looked at.
UNSEEN = Signature("", None, (), {}, None, (), (), "", {}, {}, transformed=False)


def _described(leaf: Any) -> Argument:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:  # a Python number
        return Argument("", (), type(leaf).__name__, weak=True)
    return Argument(
        "",
        tuple(getattr(leaf, "shape", ())),
        getattr(dtype, "name", str(dtype)),
        bool(getattr(leaf, "weak_type", False)),
    )


def _placements(leaves: Sequence[Any]) -> tuple[str, ...]:
    """Tell where arrays that the user has placed are; JAX places the others."""
    import jax
    from jax.core import Tracer

    arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer)]
    shardings = {array.sharding for array in arrays if array.committed}
    placed = {str(sharding)[:200] for sharding in shardings}
    return tuple(sorted(placed))


def _static(value: Any) -> tuple[str, int]:
    """Give a static argument's text and hash; it is what JAX compares by `==`."""
    try:
        return reprlib.repr(value), hash(value)
    except Exception:  # noqa: BLE001 - the user's own __repr__ or __hash__
        return f"a {type(value).__name__}", id(value)


def explain(earlier: Sequence[Signature], signature: Signature) -> Reason:
    """Say why a function was compiled, given the signatures it had been compiled for, oldest first."""
    if signature.transformed:
        return Reason(
            Cause.TRANSFORMED,
            "A program that grad, vmap or another transformation made of it outside of jit, or one compiled "
            "ahead of time. These are not compared with earlier ones.",
        )
    if not earlier:
        return FIRST
    latest_first = [(_differences(old, signature), old) for old in reversed(earlier)]
    found, _ = min(latest_first, key=lambda item: (len(item[0]), _distance(item[1], signature)))
    if not found:
        return Reason(
            Cause.FORGOTTEN,
            "Compiled before for just this: JAX had forgotten it (jax.clear_caches(), a full cache), or "
            "something changed that can't be seen from here.",
        )
    return Reason(found[0].cause, " ".join(reason.text for reason in found))


def _distance(old: Signature, new: Signature) -> int:
    """Count the properties of arguments that differ."""
    pairs = zip(old.shown or (), new.shown or (), strict=False)
    return sum((a.shape != b.shape) + (a.dtype != b.dtype) + (a.weak != b.weak) for a, b in pairs)


def _differences(old: Signature, new: Signature) -> list[Reason]:
    """List what differs between two signatures, the decisive first."""
    arguments = _argument_differences(old, new)
    return [
        *_function_difference(old, new, alike=not arguments),
        *_mapping_difference(
            Cause.STATIC,
            "static argument",
            {name: text for name, (text, _) in old.statics.items()},
            {name: text for name, (text, _) in new.statics.items()},
            changed=old.statics != new.statics,
        ),
        *arguments,
        *_placement_difference(old, new),
        *_mapping_difference(Cause.CONFIGURATION, "configuration", old.configuration, new.configuration),
        *_mapping_difference(Cause.OPTIONS, "option of jit", old.options, new.options),
    ]


def _function_difference(old: Signature, new: Signature, *, alike: bool) -> list[Reason]:
    if old.function is None or new.function is None or old.function == new.function:
        return []
    if new.function.of_jax:  # one function object for each set of its parameters
        text = "An operation outside of jit, with other parameters than before."
        return [Reason(Cause.OPERATION, text)] if alike else []
    if old.function.content != new.function.content:
        text = "Defined anew since it was last compiled, or made with other values bound to it."
        return [Reason(Cause.DEFINED_ANEW, text)]
    text = (
        "A new function object of the same code: jit is called anew on a lambda, a partial or an inner "
        "function each time, or the cell that defines it ran again. Make the jitted function once and keep "
        "it."
    )
    return [Reason(Cause.NEW_FUNCTION, text)]


def _argument_differences(old: Signature, new: Signature) -> list[Reason]:
    seen = old.arguments is not None and new.arguments is not None
    if seen:
        found = _compare(old.arguments or (), new.arguments or ())
        if found:
            return found
    if old.function is None or new.function is None:
        return []
    found = _compare(old.leaves, new.leaves)
    if found and seen:
        return [Reason(found[0].cause, "In an argument that the function doesn't use: " + found[0].text)]
    if not found and old.form != new.form:
        return [Reason(Cause.STRUCTURE, f"Called with {new.form} arguments, before with {old.form}.")]
    return found


def _compare(old: tuple[Argument, ...], new: tuple[Argument, ...]) -> list[Reason]:
    if old == new:
        return []
    if [argument.name for argument in old] != [argument.name for argument in new]:
        return [Reason(Cause.STRUCTURE, f"{_names(new)}, before {_names(old)}.")]
    changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    if any(a.shape != b.shape for a, b in changed):
        cause = Cause.SHAPE
    elif any(a.dtype != b.dtype for a, b in changed):
        cause = Cause.DTYPE
    else:
        cause = Cause.WEAK_TYPE
    told = ", ".join(f"{b.name or 'argument'}: {a} → {b}" for a, b in changed[:_TOLD])
    more = f" and {len(changed) - _TOLD} more" if len(changed) > _TOLD else ""
    return [Reason(cause, f"Another {cause}: {told}{more}.")]


def _names(arguments: tuple[Argument, ...]) -> str:
    listed = ", ".join(argument.name or str(argument) for argument in arguments[:_TOLD])
    noun = "array" if len(arguments) == 1 else "arrays"
    return f"{len(arguments)} {noun} as arguments ({listed}{', …' if len(arguments) > _TOLD else ''})"


def _placement_difference(old: Signature, new: Signature) -> list[Reason]:
    if old.shardings != new.shardings and old.arguments is not None and new.arguments is not None:
        before, after = _placed(old.shardings), _placed(new.shardings)
    else:
        before, after = _placed(old.placements), _placed(new.placements)
    if before == after:
        return []
    return [Reason(Cause.SHARDING, f"Arguments placed otherwise: {after}, before {before}.")]


def _placed(shardings: tuple[str, ...]) -> str:
    listed = list(dict.fromkeys(sharding for sharding in shardings if sharding))
    return "; ".join(listed[:_TOLD]) or "left to JAX"


def _mapping_difference(
    cause: Cause, what: str, old: Mapping[str, str], new: Mapping[str, str], *, changed: bool | None = None
) -> list[Reason]:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not (changed or names):
        return []
    told = ", ".join(f"{name}: {old.get(name, 'none')} → {new.get(name, 'none')}" for name in names[:_TOLD])
    return [Reason(cause, f"Another {what}: {told}." if told else f"Another {what} that prints alike.")]
