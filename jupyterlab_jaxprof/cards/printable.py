"""Text of a capture made fit for a line of a card."""

from __future__ import annotations

import unicodedata

MAX_SENTENCE = 1000
MAX_CELL = 160


def printable(text: str, most: int = MAX_SENTENCE) -> str:
    """Put `text` on one line and take out what would command a terminal; cut what would fill a page."""
    shown = "".join(_shown(character) for character in text[: most + 1])
    return shown if len(text) <= most else shown[:most] + "…"


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp") or character in "\n\r\t":
        return " "
    return "\ufffd" if category in ("Cc", "Cs") else character
