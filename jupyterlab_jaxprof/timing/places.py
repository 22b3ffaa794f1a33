"""Lines of the user's own code: where in it something happened that JAX did further down the stack."""

from __future__ import annotations

import functools
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parents[1])
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class Place:
    """A line of a file, or of a cell (whose file name IPython makes up)."""

    file: str
    line: int


class Places:
    """Finds the user's line in a stack: of one file (a cell's), or of any that is not a library's."""

    def __init__(self, filename: str | None = None) -> None:
        self._filename = filename

    def find(self, frame: FrameType | None) -> Place | None:
        """Give the innermost line of the user's; None where there is none, as in other threads."""
        found = self.find_frame(frame)
        return Place(found.f_code.co_filename, found.f_lineno) if found is not None else None

    def find_frame(self, frame: FrameType | None) -> FrameType | None:
        """Give the innermost frame of the user's."""
        own = self._filename
        while frame is not None:
            filename = frame.f_code.co_filename
            if filename == own or (own is None and not _is_library(filename)):
                return frame
            frame = frame.f_back
        return None


@functools.cache
def _is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, to JAX (wherever it lies) or to us."""
    if filename.startswith("<frozen") or filename.startswith(_libraries()):
        return True
    return not _INSTALLED.isdisjoint(Path(filename).parts)


@functools.cache
def _libraries() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} - {None}
    paths |= {str(Path(path).resolve()) for path in paths}
    jax = getattr(sys.modules.get("jax"), "__file__", None)
    return (_OURS, *paths, *([str(Path(jax).parent)] if jax else []))
