"""How far a sweep is: a bar in a notebook, a line that is written over in a terminal."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING

from .display import Display

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_WIDTH = 24
#: How often the sidebar is told, at most: a point may take no longer than the file does.
_TELL_EACH_S = 0.5
_STOP = "Interrupt the kernel to stop: what is measured is kept."


class Progress:
    """Shows how many of `total` points are measured; `clear` leaves nothing of it in a terminal.

    In a notebook it stands in the display that the card takes afterwards. Where neither is (a log, a pipe)
    it is silent.
    """

    def __init__(self, shell: InteractiveShell, display: Display, total: int) -> None:
        self._in_notebook = getattr(shell, "kernel", None) is not None
        self._display = display
        self._total = total
        self._shown = False
        self._told_s = float("-inf")

    def show(self, done: int, label: str) -> None:
        """Tell that so many are done, and which comes now; to be called while nothing is measured."""
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EACH_S:
            self._told_s = now_s
            self._display.tell(f"{done} of {self._total} measured, now {label}", done / self._total)
        if self._in_notebook:
            sentence = f"{done} of {self._total} measured, now {label}. {_STOP}"
            self._display.show({"text/plain": sentence, "text/html": self._html(done, sentence)})
        elif sys.stderr.isatty():
            filled = _WIDTH * done // self._total
            bar = "█" * filled + "░" * (_WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K{bar} {done}/{self._total}  {label}  (Ctrl-C stops)")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        """Take the line away, for what is printed next."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False

    def _html(self, done: int, sentence: str) -> str:
        percent = 100 * done / self._total
        return (
            '<div style="max-width:46rem;font-family:var(--jp-ui-font-family,sans-serif);font-size:13px;'
            'color:var(--jp-content-font-color1,inherit)">'
            f'<div role="progressbar" aria-valuemin="0" aria-valuemax="{self._total}" aria-valuenow="{done}" '
            'style="height:6px;border-radius:3px;overflow:hidden;background:var(--jp-layout-color3,#bbb)">'
            f'<div style="width:{percent:.1f}%;height:6px;background:#4c8bd6"></div></div>'
            f'<div style="margin-top:4px">{escape(sentence)}</div></div>'
        )
