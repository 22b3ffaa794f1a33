"""What a card's text is written on: how wide it is, and whether a terminal's colours may be used."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Literal, TextIO

Ink = Literal["bold", "dim", "problem", "fine"]

_CODES: dict[Ink, str] = {"bold": "1", "dim": "2", "problem": "33", "fine": "32"}


@dataclass(frozen=True)
class Paper:
    """`width` in columns; with `colours` a terminal's escape codes stand around some words."""

    width: int = 100
    colours: bool = False

    def paint(self, text: str, ink: Ink) -> str:
        """Give the text in a colour or weight, where this paper has them."""
        return f"\x1b[{_CODES[ink]}m{text}\x1b[0m" if self.colours and text else text

    def indented(self, columns: int) -> Paper:
        """Give what is left of it beside an indent."""
        return Paper(max(self.width - columns, 20), self.colours)


PLAIN = Paper()
_NARROWEST, _WIDEST = 40, 110


def paper_of(stream: TextIO) -> Paper:
    """Give the paper of a stream: a terminal's width and colours, or plain where it is none."""
    if not stream.isatty():
        return PLAIN
    width = shutil.get_terminal_size((PLAIN.width, 24)).columns
    colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paper(min(max(width, _NARROWEST), _WIDEST), colours)
