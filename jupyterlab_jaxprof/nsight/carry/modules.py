"""What the notebook has set in modules: compared with a fresh import, which the child process has.

A module is carried by its name alone. Its plain values travel beside it, only to be compared: a library's may
stand for something that its process has and another has not, so none is set without the user's asking.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

_SCALARS = (bool, int, float, str, type(None))
#: A table of more values than these is data, and nobody's setting.
_MOST_VALUES = 100
_MOST_TOLD = 5
_MOST_CHARACTERS = 40
_NOTEBOOK = "set by the notebook"

Were = dict[str, dict[str, list[Any]]]


def were(modules: Iterable[types.ModuleType]) -> Were:
    """Give, by module and name, the public plain values, and which others are of the notebook's own making.

    The standard library's are left out: they tell of the process, as `sys.ps1` does. All can be JSON.
    """
    found: Were = {}
    for module in modules:
        name = module.__name__
        if name.partition(".")[0] in sys.stdlib_module_names or sys.modules.get(name) is not module:
            continue
        said = {
            attribute: told
            for attribute, value in list(vars(module).items())
            if not attribute.startswith("_") and (told := _told(value)) is not None
        }
        if said:
            found[name] = said
    return found


def differences(found: Mapping[str, Mapping[str, list[Any]]]) -> list[str]:
    """Say in a sentence what is not so in this process's own modules; imports none for it."""
    told: list[str] = []
    for name, values in found.items():
        module = sys.modules.get(name)
        for attribute, (what, shown) in values.items():
            if module is None:
                continue
            now = vars(module).get(attribute)
            here = _told(now)
            if here is not None and here[0] == what and (what == _NOTEBOOK or here[1] == shown):
                continue
            if here is None and attribute in vars(module) and what != _NOTEBOOK:
                continue  # a value of another kind, which may be made when it is first used
            if attribute not in vars(module):
                in_child = "missing"
            else:
                in_child = "the module's own" if here is None or here[0] == _NOTEBOOK else _short(here[1])
            in_notebook = "the notebook's" if what == _NOTEBOOK else _short(shown)
            told.append(f"{name}.{attribute} is {in_notebook} in the notebook, {in_child} there")
    if not told:
        return []
    listed = "; ".join(told[:_MOST_TOLD])
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return [
        f"The process that ran the cell has imported modules anew: {listed}{more}. Where that matters, "
        "set it in the cell itself, or in a cell marked with --setup."
    ]


def _told(value: Any) -> list[Any] | None:
    """Give what is compared of a value: its kind and its text; None for what can't be compared."""
    if _is_plain(value):
        return ["plain", _text(value)]
    makers = {getattr(type(value), "__module__", "")}
    if isinstance(value, type | types.FunctionType):
        makers.add(value.__module__)
    else:
        with suppress(AttributeError, TypeError):  # what a decorator has made says of what
            makers.add(object.__getattribute__(value, "__dict__").get("__module__"))
    return [_NOTEBOOK, ""] if "__main__" in makers else None


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in _SCALARS:
        return kind is not str or len(value) <= _MOST_VALUES
    if kind not in (list, tuple, dict) or len(value) > _MOST_VALUES:
        return False
    inner = [*value, *value.values()] if kind is dict else value
    return all(type(one) in _SCALARS for one in inner)


def _text(value: Any) -> str:
    """A text that is the same for equal values, whatever the order of a dictionary."""
    return repr(dict(sorted(value.items(), key=repr)) if type(value) is dict else value)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
