"""Running a magic's coroutine from a synchronous call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def drive(coroutine: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine that awaits nothing to its end, in this thread and context, without an event loop."""
    __tracebackhide__ = True
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("A coroutine that was said to await nothing has awaited something.")


def drive_on_loop(shell: InteractiveShell, coroutine: Coroutine[Any, Any, object], magic: str) -> object:
    """Run a coroutine whose cell awaits on the shell's own event loop, as a terminal does.

    Raises UsageError where a loop runs already: only the cell itself can await then, and that is arranged
    by the input transformer when the magic is on the cell's first line.
    """
    __tracebackhide__ = True
    if _loop_is_running():
        coroutine.close()
        raise UsageError(
            f"{magic}: the cell awaits, which works in a notebook only when {magic} is the cell's outermost "
            f"magic. Put {magic} on the first line, above any other magic. Nothing has run."
        )
    return shell.loop_runner(coroutine)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
