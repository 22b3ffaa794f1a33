"""Text of a capture made fit for a line of a card."""

from __future__ import annotations

import unicodedata

from jupyterlab_jaxprof.captures.names import TURNING

MAX_SENTENCE = 1000
MAX_CELL = 160


def printable(text: str, most: int = MAX_SENTENCE) -> str:
    """Put `text` on one line, without what would command a terminal or turn its order; cut a page's worth."""
    shown = "".join(_shown(character) for character in text[: most + 1])
    return shown if len(text) <= most else shown[:most] + "…"


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp") or character in "\n\r\t":
        return " "
    return "\ufffd" if category in ("Cc", "Cs") or character in TURNING else character
