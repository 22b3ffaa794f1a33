"""Tracebacks that show the user's own lines, without the frames that brought the cell to run."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PACKAGE = str(Path(__file__).parents[1])


def show_without_our_frames(shell: InteractiveShell, error: BaseException) -> None:
    """Let IPython show this error as if the cell had run without a magic.

    Uses `_render_traceback_`, by which an exception may bring its own rendering. Python prepends a frame to a
    traceback at every level it passes, so that ours can be left out only when it is shown.
    """

    def render() -> list[str]:
        trimmed = without_our_frames(shell, error.__traceback__)
        return shell.InteractiveTB.structured_traceback(type(error), error, trimmed, tb_offset=1)

    if not hasattr(error, "_render_traceback_"):
        try:
            error._render_traceback_ = render  # type: ignore[attr-defined]
        except AttributeError:  # an exception class with slots: shown with our frames
            return


def without_our_frames(shell: InteractiveShell, traceback: TracebackType | None) -> TracebackType | None:
    """A traceback less the frames of this package, and less those that called it from the cell."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    ours = [index for index, entry in enumerate(entries) if _file(entry).startswith(_PACKAGE)]
    if not ours:
        return _chain(entries)
    first, end = ours[0], ours[-1] + 1
    while first > 0 and entries[first - 1].tb_frame.f_code.co_name == "run_cell_magic":
        first -= 1
    if first > 0 and shell.compile.format_code_name(_file(entries[first - 1])) is not None:
        first -= 1
    return _chain(entries[:first] + entries[end:])


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _chain(entries: list[TracebackType]) -> TracebackType | None:
    chained: TracebackType | None = None
    for entry in reversed(entries):
        chained = TracebackType(chained, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chained
