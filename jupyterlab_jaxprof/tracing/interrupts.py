"""Keeping Ctrl-C from tearing apart what must be finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self


class HeldInterrupts:
    """Within it SIGINT is counted in `count` instead of raising KeyboardInterrupt; whoever holds it decides.

    Only the main thread can change how a signal is handled; elsewhere nothing is held, and no interrupt
    arrives.
    """

    def __init__(self) -> None:
        self.count = 0
        self._previous: Any = None
        self._held = False
        self._lets_through = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._arrived)
            self._held = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held:
            # None: a handler that C code had set; Python can't put it back, so its own default stands in.
            previous = signal.default_int_handler if self._previous is None else self._previous
            signal.signal(signal.SIGINT, previous)

    @contextmanager
    def let_through(self) -> Generator[None]:
        """Within it the first SIGINT raises KeyboardInterrupt; others can't disturb what cleans up then."""
        self._lets_through = True
        try:
            yield
        finally:
            self._lets_through = False

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._lets_through:
            self._lets_through = False
            raise KeyboardInterrupt
