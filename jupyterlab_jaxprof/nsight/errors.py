"""An error of the body, told from one process to the other and shown as the cell's own.

In the child `described` makes plain values of an exception; in the kernel `remade` makes an exception of
those, which IPython shows with the cell's own lines.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MOST_FRAMES = 60
_MOST_CHARACTERS = 20_000
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def described(error: BaseException, filename: str) -> dict[str, Any]:
    """Give an exception as plain values, its frames from the first one in `filename` on (a beginning)."""
    links: list[dict[str, Any]] = []
    seen: set[int] = set()
    now, after = error, ""
    while id(now) not in seen:
        seen.add(id(now))
        links.append({"frames": _frames(now, filename), "lines": _lines(now), "after": after})
        if now.__cause__ is not None:
            now, after = now.__cause__, _CAUSE
        elif now.__context__ is not None and not now.__suppress_context__:
            now, after = now.__context__, _CONTEXT
        else:
            break
    links.reverse()
    return {"type": type(error).__name__, "message": _text(error)[:_MOST_CHARACTERS], "links": links}


def _frames(error: BaseException, filename: str) -> list[list[Any]]:
    stack = traceback.extract_tb(error.__traceback__)
    first = next((index for index, frame in enumerate(stack) if frame.filename.startswith(filename)), None)
    if first is None:  # an error that the body did not reach: a link in the chain, or a failed wait
        first = next((i + 1 for i in reversed(range(len(stack))) if _is_ours(stack[i].filename)), 0)
    kept = stack[first:]
    if len(kept) > _MOST_FRAMES:  # a recursion
        kept = kept[: _MOST_FRAMES // 2] + kept[-_MOST_FRAMES // 2 :]
    return [[frame.filename, frame.lineno, frame.name, frame.line or ""] for frame in kept]


def _is_ours(filename: str) -> bool:
    return filename.startswith(__file__.rpartition("/")[0])


def _lines(error: BaseException) -> list[str]:
    try:
        return "".join(traceback.format_exception_only(error))[:_MOST_CHARACTERS].splitlines()
    except Exception:  # noqa: BLE001 - the user's own class may raise in __str__
        return [type(error).__name__]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the same
        return ""


class BodyError(Exception):
    """An error that the body raised in the other process; IPython shows `_render_traceback_`."""

    lines: Sequence[str] = ()

    def _render_traceback_(self) -> list[str]:
        return list(self.lines)


def remade(said: Mapping[str, Any], label: Callable[[str], str | None]) -> BodyError:
    """Make an exception of what `described` gave, of a class that has the name of the original's.

    `label` gives what the notebook calls a file: `Cell In[3]`; None for a file on disk.
    """
    cls = type(str(said["type"]), (BodyError,), {"__module__": "builtins"})
    error = cls(said["message"])
    lines = ["-" * 75]
    for link in said["links"]:
        lines.append("Traceback (most recent call last), in the process under nsys:")
        for filename, line, name, text in link["frames"]:
            place = label(filename)
            shown = f"{place}, line {line}" if place else f"File {filename}:{line}"
            lines.append(f"{shown}, in {name}" if name != "<module>" else shown)
            if text:
                lines.append(f"    {text}")
        lines += [_labelled(text, label) for text in link["lines"]]
        if link["after"]:
            lines += ["", link["after"], ""]
    error.lines = lines
    return error


def _labelled(text: str, label: Callable[[str], str | None]) -> str:
    """A line of a syntax error names a file in quotes."""
    parts = text.split('"')
    if len(parts) >= 3 and text.lstrip().startswith("File "):
        place = label(parts[1])
        if place:
            return f"{place}{''.join(parts[2:])}"
    return text
