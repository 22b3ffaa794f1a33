"""The settings' default options of each magic, put before what a line itself says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from IPython.core.error import UsageError

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.settings import read_settings

from .arguments import Complaint, complaint_of, written_words

A = TypeVar("A")
_OPTION = re.compile(r"--?[a-zA-Z]")


@dataclass(frozen=True)
class Given(Generic[A]):
    """What a line asks for, default options included.

    `line` is the line with those defaults that make a difference; `notices` say which those are, and what is
    wrong with others.
    """

    arguments: A
    line: str
    notices: list[str]


def with_defaults(
    name: str,
    magic: str,
    line: str,
    parse: Callable[[str], A],
    check: Callable[[A], None] | None = None,
) -> Given[A]:
    """Read a line with the default options of the magic `name`; raises what `parse` raises for the line.

    A default that is wrong, or that `check` refuses (both raise UsageError), is left out and told. One that
    is right and does not go with this line, such as --steps with --remote, is left out in silence. `parse`
    gives values that compare equal where they ask for the same.
    """
    arguments = parse(line)
    settings = read_settings(Store.default().root)
    notices = [settings.problem] if settings.problem else []
    try:
        waiting = _options(magic, settings.defaults.get(name, ""))
    except UsageError as error:
        told = _left_out(settings.defaults[name], magic, complaint_of(error))
        return Given(arguments, line, [*notices, told])
    used: list[str] = []
    refused: dict[str, Complaint] = {}
    is_new = True
    while is_new:  # an option may need another that stands behind it: --warmup needs -r
        is_new = False
        for option in list(waiting):
            try:
                found = parse(" ".join([*used, option, line]))
                if check is not None and found != arguments:
                    check(found)
            except UsageError as error:
                refused[option] = complaint_of(error)
                continue
            waiting.remove(option)
            is_new = True
            if found != arguments:
                arguments = found
                used.append(option)
    notices += [
        _left_out(option, magic, refused[option]) for option in waiting if not refused[option].conflict
    ]
    if used:
        notices.append(f"From the settings' default options of {magic}: {' '.join(used)}.")
    return Given(arguments, " ".join([*used, line]).strip(), notices)


def _options(magic: str, text: str) -> list[str]:
    """Part a text into options, each with its value as it was written."""
    found: list[str] = []
    for word in written_words(magic, text):
        if _OPTION.match(word) or not found:
            found.append(word)
        else:
            found[-1] += f" {word}"
    return found


def _left_out(option: str, magic: str, complaint: Complaint) -> str:
    return f"The settings' default {option} of {magic} was left out: {complaint.sentence}"
