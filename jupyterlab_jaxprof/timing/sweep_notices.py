"""Sentences about a sweep: what may mislead in its figures, and why some of them are missing."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.bodies import Body, names_in
from jupyterlab_jaxprof.timing.holders import enclosed
from jupyterlab_jaxprof.timing.lines import all_codes
from jupyterlab_jaxprof.timing.points import Point, joined
from jupyterlab_jaxprof.timing.swept import SweepResult

#: Values that are named in a sentence; more are counted.
_NAMED = 2
#: How deep the calls of the user's own functions are followed in search of JAX.
_DEPTH = 4


def told_of_runs(result: SweepResult) -> list[str]:
    """Give what the first runs told of themselves: a wait for work of an earlier cell, a failure of it."""
    found: dict[str, list[str]] = {}
    for point in result.points:
        for notice in point.result.notices:
            found.setdefault(notice, []).append(point.label(result.names))
    return [f"At {_listed(labels)}: {notice}" for notice, labels in found.items()]


def unused(body: Body, names: Sequence[str]) -> list[str]:
    """Say which names the cell does not use.

    A word in a text counts as use: IPython passes what stands behind a magic or a `!` on as text.
    """
    codes = list(all_codes(body.codes))
    texts = [text for code in codes for constant in code.co_consts for text in _texts(constant)]
    used = names_in(body.codes) | {word for text in texts for word in re.findall(r"\w+", text)}
    return [
        f"The cell's own lines do not use {name}. A function that reads it as a global sees each value, "
        "but inside jax.jit it stays what it was when the function was traced."
        for name in names
        if name not in used
    ]


def _texts(constant: object) -> list[str]:
    if isinstance(constant, str):
        return [constant]
    if isinstance(constant, tuple | frozenset):
        return [text for part in constant for text in _texts(part)]  # pyright: ignore[reportUnknownVariableType]
    return []


def rebound(names: Sequence[str]) -> list[str]:
    """Say which names the cell assigns to."""
    return [
        f"The cell itself assigns to {name}: its repeats ran with what it assigned. A rate counts the value "
        "that was bound."
        for name in names
    ]


def unrated(text: str, result: SweepResult, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Say at which values the rate's expression gave no number, and why."""

    def where(labels: Sequence[str]) -> str:
        return "" if len(labels) == len(result.points) else f" at {_listed(labels)}"

    return [f"--rate {text} can't be used{where(labels)}: {told}." for told, labels in found.items()]


def compiled_before(points: Sequence[Point]) -> list[str]:
    """Say where JAX compiled nothing, as all that ran had been compiled before."""
    before = [point for point in points if point.compiled_before]
    if not before:
        return []
    where = "Nothing" if len(before) == len(points) else f"At {len(before)} of {len(points)} values nothing"
    unknown = any(point.need_bytes is None for point in before)
    memory = ", and it can't be told which of a function's programs ran, so not its memory" if unknown else ""
    return [
        f"{where} was compiled: what JAX ran had been compiled before, so there is no compiling time{memory}."
        " --fresh empties JAX's caches before each value, and tells both."
    ]


def read_from_disk(points: Sequence[Point]) -> list[str]:
    """Say where programs were not compiled but read from the persistent compilation cache."""
    read = [point for point in points if point.cache_read_ms]
    if not read:
        return []
    return [
        f"At {units.count(len(read), 'value')} programs were read from the persistent compilation cache: "
        "compiling is only tracing and lowering there."
    ]


def peaks(points: Sequence[Point]) -> list[str]:
    """Say what the allocator's peaks count, and which of them are an earlier value's."""
    notices: list[str] = []
    raised = [point for point in points if any(peak.raised for peak in point.peaks)]
    if any(point.compiling_ms for point in raised):
        notices.append(
            "A peak counts all that the process had in memory, and what XLA took while it compiled and "
            "autotuned: the largest program's need is the cell's own."
        )
    if len(raised) < sum(bool(point.peaks) for point in points):
        notices.append(
            "A peak behind ≤ was reached before that value ran: it is the whole process's, and can't be "
            "reset. In a fresh kernel, with the smallest values first, each value shows its own."
        )
    return notices


def uses_jax(values: Iterable[Any], depth: int = _DEPTH) -> bool:
    """Tell whether something of JAX's, or of a library built on it, is among values or what they call."""
    return any(_is_of_jax(value) or (depth > 0 and uses_jax(_called(value), depth - 1)) for value in values)


def _is_of_jax(value: Any) -> bool:
    if isinstance(value, ModuleType):
        name = value.__name__
    elif inspect.isfunction(value) or isinstance(value, type):
        name = str(value.__module__)
    else:
        name = type(value).__module__
    if name.partition(".")[0] in ("jax", "jaxlib"):
        return True
    module = sys.modules.get(name)
    jax = sys.modules.get("jax")
    # The user's own module imports JAX for other cells, too: there each function is looked at.
    return name != "__main__" and jax is not None and getattr(module, "jax", None) is jax


def _called(value: Any) -> list[Any]:
    """Give the values that a function of the user's uses."""
    function = inspect.unwrap(value) if inspect.isfunction(value) else value
    code: CodeType | None = getattr(function, "__code__", None) if inspect.isfunction(function) else None
    if code is None:
        return []
    names: Mapping[str, Any] = function.__globals__
    return [names[name] for name in names_in([code]) if name in names] + list(enclosed(function).values())


def _listed(labels: Sequence[str]) -> str:
    if len(labels) <= _NAMED + 1:
        return joined(labels)
    return f"{', '.join(labels[:_NAMED])} and {len(labels) - _NAMED} more values"
