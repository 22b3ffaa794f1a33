"""The cells that the user has run, and the name that a capture has when it is given none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def inputs(shell: InteractiveShell) -> list[str]:
    """Give the cells that the user ran, up to the running one; the first is empty: indices are numbers.

    `shell.execution_count` won't do: IPython raises it before a cell runs or after, by version.
    """
    return shell.history_manager.input_hist_raw if shell.history_manager is not None else []


def default_name(shell: InteractiveShell) -> str:
    """Give the running cell's number, as `In [5]`."""
    number = len(inputs(shell)) - 1
    return f"In [{number}]" if number > 0 else "untitled"
