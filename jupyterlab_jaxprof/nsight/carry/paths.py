"""Where in a variable an object is, written as the user would write it."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from jupyterlab_jaxprof.nsight.carry.values import attributes_of

_MOST_OBJECTS = 20_000


def path_to(wanted: Any, root: Any) -> str:
    """Give the way from a variable to an object in it, as `['log'].stream`; empty for the variable itself.

    Empty as well when it is not found within 20,000 objects.
    """
    pending = deque([(root, "")])
    seen = {id(root)}
    while pending and len(seen) < _MOST_OBJECTS:
        value, path = pending.popleft()
        if value is wanted:
            return path
        for inner, step in _steps(value):
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append((inner, path + step))
    return ""


def _steps(value: Any) -> Iterator[tuple[Any, str]]:
    match value:
        case dict():
            yield from (
                (inner, f"[{key!r}]") for key, inner in list(value.items()) if isinstance(key, str | int)
            )
        case list() | tuple():
            yield from ((inner, f"[{number}]") for number, inner in enumerate(value[:1000]))
        case types.FunctionType():
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                try:
                    yield cell.cell_contents, f" (its {name})"
                except ValueError:  # a cell without a value
                    continue
        case types.MethodType():
            yield value.__self__, ".__self__"
        case _:
            yield from ((inner, f".{name}") for name, inner in list(attributes_of(value).items()))
