"""Numbers of bytes as users write them."""

from __future__ import annotations

import re

from .errors import InvalidValue

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}


def parse_size(text: str) -> int | None:
    """Read a number of bytes such as '5000000000', '5 GB' or '4.5GiB'; None for an empty text or 0."""
    match = re.fullmatch(
        r"\s*(?:(\d{1,24}(?:\.\d{1,24})?)\s*([kmgt]i?)?b?)?\s*", text, re.ASCII | re.IGNORECASE
    )
    if match is None:
        raise InvalidValue(f"{text!r:.80} is no size: write bytes, or a number with a unit such as '20 GB'.")
    number, unit = match.groups()
    return int(float(number) * _UNITS[(unit or "").lower()]) or None if number else None
