"""Protobuf messages without their schema: fields, and the text at a place.

The wire format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from mmap import mmap

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_DEPTH = 12
#: What texts hold none of; a null ends each variable of an environment.
_NO_TEXT = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Field:
    """One field. One with a length (`value`) holds the bytes from `start` to `end`; others have a `value`."""

    number: int
    start: int
    end: int
    value: int
    is_bytes: bool


def varint(data: bytes | mmap, place: int, end: int) -> tuple[int, int]:
    """Read a number of up to ten bytes; gives it and where it ends, (-1, end) where there is none."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= end:
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    return -1, end


def fields(data: bytes | mmap, start: int, end: int) -> list[Field] | None:
    """Read the fields of the message from `start` to `end`; None where it is no message."""
    found: list[Field] = []
    place = start
    while place < end:
        tag, place = varint(data, place, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            return None
        value, first = 0, place
        if kind == _VARINT:
            value, place = varint(data, place, end)
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        elif kind == _BYTES:
            value, first = varint(data, place, end)
            place = first + value
        else:
            return None
        if value < 0 or place > end:
            return None
        found.append(Field(number, first, place, value, kind == _BYTES))
    return found


class Texts:
    """Finds texts in a message, or in messages each after its length; a field may hold either too."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fields = cache(self._read_fields)
        self._chain = cache(self._read_chain)

    def at(self, place: int) -> tuple[int, int] | None:
        """Give start and end of the text field that holds `place`; None where that can't be told."""
        return self._within(0, len(self._data), place, 0)

    def _within(self, start: int, end: int, place: int, depth: int) -> tuple[int, int] | None:
        if depth > _MOST_DEPTH:
            return None
        found = self._fields(start, end)
        if found is not None:
            holder = _holder(found, place)
            if holder is not None and is_text(self._data[holder[0] : holder[1]]):
                return holder
            within = None if holder is None else self._within(*holder, place, depth + 1)
            if within is not None:
                return within
        holder = _holder(self._chain(start, end), place)
        return None if holder is None else self._within(*holder, place, depth + 1)

    def _read_fields(self, start: int, end: int) -> list[tuple[int, int]] | None:
        """Give where the fields with a length lie; None where it is no message."""
        found = fields(self._data, start, end)
        return None if found is None else [(one.start, one.end) for one in found if one.is_bytes]

    def _read_chain(self, start: int, end: int) -> list[tuple[int, int]]:
        """Give where messages lie that follow each other, each after its length."""
        chain: list[tuple[int, int]] = []
        while start < end:
            length, first = varint(self._data, start, end)
            if not 0 < length <= end - first:
                break
            start = first + length
            chain.append((first, start))
        return chain


def _holder(spans: list[tuple[int, int]], place: int) -> tuple[int, int] | None:
    index = bisect_right(spans, (place, sys.maxsize)) - 1
    return spans[index] if index >= 0 and spans[index][0] <= place < spans[index][1] else None


def is_text(content: bytes) -> bool:
    """Tell whether bytes are a text, rather than a message or numbers."""
    if _NO_TEXT.search(content):
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
