"""How far a run under nsys is, and who is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class Phase(StrEnum):
    """What a run consists of, in this order."""

    START = "start"
    SET_UP = "set-up"
    WARM_UP = "warm-up"
    CAPTURE = "capture"
    IMPORT = "import"


class Watcher(Protocol):
    """Whoever shows how a run goes, and what its body prints and displays."""

    def enter(self, phase: Phase, doing: str) -> None:
        """Take that a phase begins, and what is done first in it."""
        ...

    def tell(self, doing: str, part: float | None = None) -> None:
        """Take what is done now, and how much of it (0 to 1) where that is known."""
        ...

    def beat(self) -> None:
        """Take that time has passed; several times a second."""
        ...

    def write(self, stream: str, text: str) -> None:
        """Take what the body printed to `stdout` or `stderr`."""
        ...

    def publish(self, shown: Mapping[str, Any]) -> None:
        """Take what the body displayed: the arguments of IPython's `DisplayPublisher.publish`."""
        ...

    def clear(self, *, wait: bool) -> None:
        """Take that the body cleared its output, with the next one if it is to `wait`."""
        ...
