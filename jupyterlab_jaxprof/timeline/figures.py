"""Numbers as files and their texts hold them: none is trusted to be one, or to fit into 64 bits."""

from __future__ import annotations


def whole_number(value: object, missing: int = 0) -> int:
    """Give a value as an integer; `missing` for what is none (NULL, NaN, text), or does not fit."""
    return int(value) if isinstance(value, int | float) and abs(value) < 1 << 63 else missing


def read_number(text: str, missing: int = 0) -> int:
    """Read a number written in decimal digits, perhaps with a minus; `missing` for all else."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else missing
