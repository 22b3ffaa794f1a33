"""Errors shown as if the cell had run without a magic: the user's own lines, none of ours.

Python adds an entry to a traceback at every level that an exception passes, so ours can be taken out only
where the exception has arrived: where IPython shows it. That one method of the shell is wrapped.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PACKAGE = str(Path(__file__).parents[1])


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
            BaseException.with_traceback(value, without_our_frames(self._shell, value.__traceback__))
            if exc_tuple:
                exc_tuple = (exc_tuple[0], value, value.__traceback__)
        self._show(exc_tuple, *args, **kwargs)

    def remove(self) -> None:
        """Give the shell its own method back; if someone has wrapped ours since, stay and do nothing."""
        self._active = False
        if vars(self._shell).get("showtraceback") is self:
            del self._shell.showtraceback
            if self._show != self._shell.showtraceback:  # someone had wrapped it before us
                self._shell.showtraceback = self._show


def without_our_frames(shell: InteractiveShell, traceback: TracebackType | None) -> TracebackType | None:
    """A traceback less the frames of this package and those of the cell and of IPython that called it."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    ours = [index for index, entry in enumerate(entries) if _file(entry).startswith(_PACKAGE)]
    if not ours:
        return entries[0] if entries else None
    first, end = ours[0], ours[-1] + 1
    if first > 0 and entries[first - 1].tb_frame.f_code.co_name == "run_cell_magic":
        first -= 1
    if first > 0 and shell.compile.format_code_name(_file(entries[first - 1])) is not None:
        first -= 1
    kept = entries[:first] + entries[end:]
    return _chain(kept if len(kept) > 1 else entries)


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _chain(entries: list[TracebackType]) -> TracebackType | None:
    chained: TracebackType | None = None
    for entry in reversed(entries):
        chained = TracebackType(chained, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chained
