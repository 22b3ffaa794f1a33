"""An error in a sentence."""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last)"


def described(error: BaseException) -> str:
    """Give an error's type and text.

    JAX puts a callback's whole traceback, our own frames in it, into the text of the error that it makes of
    it: of that, what the callback raised is given.
    """
    text = str(error).strip()
    if _TRACEBACK in text:
        before, _, traceback = text.partition(_TRACEBACK)
        raised = next((line for line in reversed(traceback.splitlines()) if _is_told(line)), "")
        text = before + raised.strip()
    return type(error).__name__ + (f": {text}" if text else "")


def _is_told(line: str) -> bool:
    """Whether a line of a traceback's text is none of its frames."""
    return bool(line.strip()) and not line.startswith(" ")
