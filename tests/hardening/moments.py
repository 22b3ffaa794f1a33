"""Interrupts at any line of this package: each is a moment at which a user's Ctrl-C may arrive."""

from __future__ import annotations

import signal
import sys
from random import Random
from types import FrameType
from typing import Any, Self

import jupyterlab_jaxprof

_PACKAGE = jupyterlab_jaxprof.__file__.removesuffix("__init__.py")
_MAGICS = f"{_PACKAGE}magics/"


class Moments:
    """Counts the lines of this package that a magic runs, each once, and interrupts at the one numbered `at`.

    `again`: after so many more lines comes a second interrupt, where the first was held back. (Python stops
    tracing where a tracer raises: what follows a raised interrupt can't be counted.)
    """

    def __init__(self, at: int = -1, again: int = -1) -> None:
        self.count = 0
        self.struck: list[str] = []
        self._at = at
        self._again = again
        self._seen: set[tuple[str, int]] = set()
        self._magic: FrameType | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._magic = None

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return None
        # Around the magic itself stands what gives the sentence, and around that nothing.
        is_magic = code.co_name in ("cell_magic", "line_magic") and code.co_filename.startswith(_MAGICS)
        if self._magic is None and is_magic and not self._is_over:
            self._magic = frame
        return self._line if self._magic is not None else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return" and frame is self._magic:
            self._magic, self._is_over = None, True
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event != "line" or place in self._seen or self._magic is None:
            return self._line
        self._seen.add(place)
        self.count += 1
        if self.count - 1 in (self._at, self._at + self._again if self.struck else -1):
            self.struck.append(f"{place[0].removeprefix(_PACKAGE)}:{place[1]}")
            signal.raise_signal(signal.SIGINT)  # raises here, unless the interrupt is held
        return self._line


def spread(count: int, tries: int, chance: Random) -> list[int]:
    """Choose `tries` of `count` moments: one at random in each of as many equal parts."""
    if tries >= count:
        return list(range(count))
    return [int((part + chance.random()) * count / tries) for part in range(tries)]
