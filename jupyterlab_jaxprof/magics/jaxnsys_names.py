"""What %%nsys says of names: those that a line gives, before anything runs; those that its cell missed."""

from __future__ import annotations

import re
import types
from collections.abc import Collection, Mapping
from typing import Any

from .arguments import usage_error
from .registry import TABLE

#: With these in it a cell may bind names that can't be read from its text.
_BINDS_UNSEEN = re.compile(r"\bexec\b|\bglobals\b|\blocals\b|\bvars\b|\bsetattr\b|import\s*\*|%|get_ipython")
_NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")
_NO_MAGIC = re.compile(r"[Mm]agic (?:function )?`?(%+)(\w+)`? not found")
_NO_KEYBOARD = frozenset(["EOFError", "BdbQuit", "StdinNotImplementedError"])
_OURS = frozenset(name for magic in TABLE for name in (magic.name, *magic.aliases, *magic.contested))


def check_names(
    magic: str,
    body: str,
    namespace: Mapping[str, Any],
    *,
    dropped: Collection[str],
    returned: Collection[str],
    binds: Collection[str],
) -> None:
    """Raise UsageError for names that can't be meant; `binds` are those that the body binds."""
    for name in sorted(dropped):
        if name not in namespace:
            raise usage_error(magic, f"--drop {name}: the notebook has no variable {name}.")
    for name in returned:
        if name in binds or _BINDS_UNSEEN.search(body):
            continue
        if name in dropped:
            raise usage_error(
                magic,
                f"--return {name} and --drop {name} contradict each other: the cell does not assign to it, "
                "so it can't come back.",
            )
        if name not in namespace and not _may_be_bound_by_a_function(name, namespace):
            raise usage_error(
                magic, f"--return {name}: neither the notebook nor the cell has a variable {name}."
            )


def _may_be_bound_by_a_function(name: str, namespace: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, types.FunctionType) and name in value.__code__.co_names
        for value in namespace.values()
    )


def hint(
    error: Mapping[str, Any], namespace: Mapping[str, Any], carried: Collection[str], dropped: Collection[str]
) -> str:
    """Give a sentence on an error of the body that comes of its process being its own; empty if none."""
    kind, message = str(error["type"]), str(error["message"])
    missing = _NOT_DEFINED.search(message)
    if kind == "NameError" and missing:
        name = missing.group(1)
        if name in dropped:
            return f"{name} was left out by --drop."
        if name in namespace and name not in carried:
            return (
                f"The notebook has {name}, but the cell's code does not name it (only a text does, as for "
                f"eval), so it was not carried: write {name} in the cell."
            )
    if kind == "SystemExit":
        return "This ended the process under nsys alone: the notebook's kernel goes on."
    if kind in _NO_KEYBOARD:
        return (
            "There is no keyboard in the process under nsys: ask for input, or debug, in a cell without "
            "%%nsys."
        )
    magic = _NO_MAGIC.search(message)
    if magic and magic.group(2) in _OURS:
        return (
            f"{magic.group(1)}{magic.group(2)} works in the notebook's kernel: put it in a cell of its own."
        )
    if magic:
        return (
            "The process under nsys has the magics of IPython alone: if an extension has this one, load it "
            "in the cell (%load_ext), or in one marked with --setup."
        )
    return ""
