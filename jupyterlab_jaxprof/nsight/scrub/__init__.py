"""Removing secrets from what nsys has written, in place and without changing any size.

nsys writes the environments and the command lines of all processes that it may read into its reports. Each
byte of a secret becomes `*`; nothing moves, so that the file stays as valid as it was.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyterlab_jaxprof.environment.secrets import is_secret, is_telling

from .layout import Piece, UnknownLayout, pieces
from .lz4_blocks import packed
from .texts import Found, blanked

__all__ = ["Scrubbed", "scrub"]


@dataclass(frozen=True)
class Scrubbed:
    """The names of what was removed. `problem` says why something may be left; empty where all is well."""

    names: tuple[str, ...] = ()
    problem: str = ""


def scrub(
    path: Path,
    environ: Mapping[str, str],
    keep: frozenset[str] = frozenset(),
    on_part: Callable[[float], None] = lambda part: None,
) -> Scrubbed:
    """Remove secrets from a report or a stream; the values of `environ` are known, wherever they stand.

    Variables named in `keep` stay. `on_part` is told how much is done (0 to 1). Raises OSError.
    """
    found = Found()
    for name, value in environ.items():
        if is_secret(name) and name not in keep and is_telling(value):
            found.values.add(value.encode("utf-8", "surrogateescape"))
    if not path.stat().st_size:
        return Scrubbed(problem="it is empty")
    left = 0
    with path.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as file:
        try:
            # Once to learn all values: one may stand before what tells that it is a secret.
            for turn in range(2):
                for piece in pieces(file):
                    on_part((turn + (piece.offset + piece.size) / len(file)) / 2)
                    plain = blanked(piece.plain, found, keep)
                    if turn and plain != piece.plain:
                        left += not _put(file, piece, plain)
        except UnknownLayout as error:
            return Scrubbed(_sorted(found.names), f"its layout is not known here ({error})")
        file.flush()
    problem = f"{left} of its parts can't be packed as they were" if left else ""
    return Scrubbed(_sorted(found.names), problem)


def _put(file: mmap.mmap, piece: Piece, plain: bytes) -> bool:
    """Write a part as it is now; False where it does not fit."""
    content = packed(plain, piece.size) if piece.packed else plain
    if content is None:
        return False
    file[piece.offset : piece.offset + piece.size] = content
    return True


def _sorted(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
