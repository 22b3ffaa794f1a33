"""One thing that is amiss, what helps, and what is looked at to find it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Found = Mapping[str, Any]
Problem = dict[str, Any]


@dataclass(frozen=True)
class Remedy:
    """What helps, as sentences; and the one command that does it, empty where no command can."""

    sentence: str
    command: str = ""


@dataclass(frozen=True)
class Check:
    """One thing that the doctor looks at.

    `finds` says, for the documentation, what it tells of; `look` gives the problems of an environment's
    report,
    and looks at nothing else.
    """

    name: str
    finds: str
    look: Callable[[Found], Iterable[Problem]]


def problem(what: str, remedy: str | Remedy, *, needed: bool = False) -> Problem:
    """Say what is amiss and what helps; `needed`: something can't work before it is mended."""
    helps = remedy if isinstance(remedy, Remedy) else Remedy(remedy)
    return {
        "what": what,
        "remedy": helps.sentence,
        "command": helps.command,
        "needed": needed,
        "note": False,
    }


def note(purpose: str, what: str, remedy: str | Remedy) -> Problem:
    """Say what is amiss with what is only for `purpose`, beside what is used here already."""
    return problem(f"For {purpose}: {what}", remedy) | {"note": True}


def run(command: str, then: str = "", *, first: str = "") -> Remedy:
    """Tell to run a command, `first` a sentence on when or why, and what to do `then`."""
    begin = f"{first} " if first else ""
    return Remedy(f"{begin}Run: {command}{f', then {then}' if then else ''}.", command)


def pip_install(wanted: str, restart: str, python: str = "", *, first: str = "") -> Remedy:
    """Tell how to install `wanted` (quoted for a shell) with a Python, else with this one."""
    program = shlex.quote(python or sys.executable)
    return run(f"{program} -m pip install {wanted}", f"restart {restart}", first=first)


def pip_uninstall(names: str, then: str, *, first: str = "") -> Remedy:
    """Tell how to take packages out of this Python's environment."""
    return run(f"{shlex.quote(sys.executable)} -m pip uninstall -y {names}", then, first=first)


def unset(name: str, *, first: str = "") -> Remedy:
    """Tell how to be rid of a variable."""
    return run(f"unset {name}", "start Jupyter again from that terminal", first=first)


def export(setting: str, *, first: str = "") -> Remedy:
    """Tell how to set a variable for all kernels."""
    return run(f"export {setting}", "start Jupyter again from that terminal", first=first)
