"""Errors shown as if the cell had run without a magic: the user's own lines, none of ours.

Python adds an entry to a traceback at every level that an exception passes, so ours can be taken out only
where the exception has arrived: where IPython shows it. That one method of the shell is wrapped.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PACKAGE = str(Path(__file__).parents[1])
#: What raises the error of a cell's body again.
_RESULTS = frozenset({"Run.result", "TimedResult.result"})


class TracebackCleaner:
    """Stands in for a shell's `showtraceback` and leaves our frames out of what it shows."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._show = shell.showtraceback
        self._active = True
        shell.showtraceback = self

    def __call__(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Show an exception, by default the one that is being handled."""
        value: BaseException | None = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if self._active and value is not None:
            BaseException.with_traceback(value, without_our_frames(self._shell, value))
            if isinstance(value, KeyboardInterrupt) and _is_within_ours(value.__context__):
                value.__suppress_context__ = True  # what we were dealing with when it came
            shown = _without_our_text(value)
            if exc_tuple or shown is not value:
                exc_tuple = (type(shown), shown, value.__traceback__)
        self._show(exc_tuple, *args, **kwargs)

    def remove(self) -> None:
        """Give the shell its own method back; if someone has wrapped ours since, stay and do nothing."""
        self._active = False
        if vars(self._shell).get("showtraceback") is self:
            del self._shell.showtraceback
            if self._show != self._shell.showtraceback:  # someone had wrapped it before us
                self._shell.showtraceback = self._show


def without_our_frames(shell: InteractiveShell, error: BaseException) -> TracebackType | None:
    """The traceback of an error of the cell's, less the frames of this package and those that called it.

    The cell's own frame stays where no line of its body follows: in the wait for the devices, say. The
    traceback of any other error, a fault of ours among them, is left as it is.
    """
    entries = _entries(error.__traceback__)
    ours = [index for index, entry in enumerate(entries) if _file(entry).startswith(_PACKAGE)]
    if not ours:
        return error.__traceback__
    first, end = ours[0], ours[-1] + 1
    in_body = any(_is_cell(shell, entry) for entry in entries[end:])
    raised_as_result = any(_code(entry).co_qualname in _RESULTS for entry in entries[first:end])
    # Of a line magic's code; that of a cell is reported before the magic is called.
    syntax = isinstance(error, SyntaxError) and _names_cell(shell, error.filename or "")
    if not (in_body or raised_as_result or syntax or isinstance(error, KeyboardInterrupt)):
        return error.__traceback__
    caller = _code(entries[first - 1]).co_name if first > 0 else ""
    if caller in ("run_cell_magic", "run_line_magic"):
        first -= 1
    # A cell's call of a cell magic is not what the user wrote; a line magic's own line is.
    if in_body and caller != "run_line_magic" and first > 0 and _is_cell(shell, entries[first - 1]):
        first -= 1
    return _chain(entries[:first] + entries[end:])


def _without_our_text(error: BaseException) -> BaseException:
    """Give what is shown of an error: JAX puts the stack around a failed callback into its error's text.

    That text can't be changed, so an error of the same name stands in for it where our frames are in it.
    """
    text = str(error)
    if f'File "{_PACKAGE}' not in text:
        return error
    kind = type(error)
    stand_in: type[BaseException] = type(kind.__name__, (Exception,), {"__module__": kind.__module__})
    shown = stand_in(_without_our_lines(text))
    shown.__cause__, shown.__suppress_context__ = error.__cause__, True
    return shown.with_traceback(error.__traceback__)


def _without_our_lines(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(f'File "{_PACKAGE}'))


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def _is_within_ours(error: BaseException | None) -> bool:
    return error is not None and any(
        _file(each).startswith(_PACKAGE) for each in _entries(error.__traceback__)
    )


def _is_cell(shell: InteractiveShell, entry: TracebackType) -> bool:
    return _names_cell(shell, _file(entry))


def _names_cell(shell: InteractiveShell, filename: str) -> bool:
    return shell.compile.format_code_name(filename) is not None


def _code(entry: TracebackType) -> CodeType:
    return entry.tb_frame.f_code


def _file(entry: TracebackType) -> str:
    return _code(entry).co_filename


def _chain(entries: list[TracebackType]) -> TracebackType | None:
    chained: TracebackType | None = None
    for entry in reversed(entries):
        chained = TracebackType(chained, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chained
