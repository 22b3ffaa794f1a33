"""Protobuf's wire format read in numpy: a million small messages at once, and none of them trusted.

A trace is nearly all events: messages of some 16 bytes. Python's protobuf makes an object of each, ten times
the file's size and more time than everything after it; here they become columns.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .model import Integers

Words = NDArray[np.uint64]
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
#: No message that `scan` is for has more fields; a limit ends the reading of random bytes.
_MOST_FIELDS = 4096
#: `events` starts to read in so many places at once: every so many bytes, looking so far for a start.
_PIECE_BYTES, _LOOK_BYTES = 8192, 512


class DamagedError(Exception):
    """The bytes are not what the format allows there."""


class Buffer:
    """A file's bytes, with `words[i]` the eight bytes from i on as a number."""

    def __init__(self, content: bytes | NDArray[np.uint8]) -> None:
        self.size = len(content)
        self.bytes = np.zeros(self.size + 24, dtype=np.uint8)
        self.bytes[: self.size] = np.frombuffer(content, dtype=np.uint8)
        self._view = self.bytes.data  # gives single bytes as Python's numbers, three times as fast
        self.words: Words = np.ndarray((self.size + 16,), dtype="<u8", buffer=self.bytes.data, strides=(1,))

    def __getitem__(self, place: int) -> int:
        return self._view[place]

    def text(self, start: int, end: int) -> str:
        """Give some bytes as text; what is not UTF-8 is replaced."""
        return self.bytes[start:end].tobytes().decode(errors="replace")


class Field(NamedTuple):
    """One field of one message: its number, and its value or where its bytes are."""

    number: int
    wire_type: int
    value: int
    start: int
    end: int


class Fields(NamedTuple):
    """A field of each of many messages; `value` is the length where the wire type is LENGTH."""

    rows: NDArray[np.intp]
    number: NDArray[np.uint64]
    wire_type: NDArray[np.uint64]
    value: Words
    start: Integers


def field_at(buffer: Buffer, at: int, end: int) -> Field:
    """Read the field that begins at a place. Raises DamagedError where none can."""
    tag, at = varint(buffer, at, end)
    number, wire_type = divmod(tag, 8)
    if wire_type == VARINT:
        value, at = varint(buffer, at, end)
        field = Field(number, wire_type, value, at, at)
    elif wire_type == LENGTH:
        length, at = varint(buffer, at, end)
        field = Field(number, wire_type, length, at, at + length)
    elif wire_type in (FIXED64, FIXED32):
        length = 8 if wire_type == FIXED64 else 4
        value = int.from_bytes(buffer.bytes[at : at + length].tobytes(), "little")
        field = Field(number, wire_type, value, at, at + length)
    else:
        raise DamagedError
    if not number or field.end > end:
        raise DamagedError
    return field


def fields(buffer: Buffer, start: int, end: int) -> Iterator[Field]:
    """Read the fields of one message. Raises DamagedError at the first that is not whole."""
    while start < end:
        field = field_at(buffer, start, end)
        yield field
        start = field.end


def varint(buffer: Buffer, at: int, end: int) -> tuple[int, int]:
    """Read one number, and tell where it ends. Raises DamagedError."""
    value = shift = 0
    while at < end and shift < 70:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise DamagedError


def varints(buffer: Buffer, at: Integers) -> tuple[Words, Integers]:
    """Read the numbers that begin at these places, and tell how many bytes each takes."""
    words = buffer.words[at]
    ends = ~words & np.uint64(0x8080_8080_8080_8080)
    last = ends & (~ends + np.uint64(1))  # the lowest bit: the top of the last byte
    value = words & ((last << np.uint64(1)) - np.uint64(1)) & np.uint64(0x7F7F_7F7F_7F7F_7F7F)
    for mask, shift in ((0x7F00_7F00_7F00_7F00, 1), (0x3FFF_0000_3FFF_0000, 2), (0x0FFF_FFFF_0000_0000, 4)):
        upper = value & np.uint64(mask)
        value = (value ^ upper) | (upper >> np.uint64(shift))
    sizes = (np.frexp(last.astype(np.float64))[1] >> 3).astype(np.int64)
    long = np.flatnonzero(ends == 0)
    if len(long):  # nine or ten bytes: negative numbers and hashes
        rest = buffer.words[at[long] + 8]
        value[long] |= (rest & np.uint64(0x7F)) << np.uint64(56)
        ten = (rest & np.uint64(0x80)) != 0
        value[long[ten]] |= ((rest[ten] >> np.uint64(8)) & np.uint64(1)) << np.uint64(63)
        sizes[long] = np.where(ten, 10, 9)
    return value, sizes


def scan(buffer: Buffer, starts: Integers, ends: Integers) -> Iterator[Fields]:
    """Read many messages side by side: first the first field of each, then the second, and so on.

    Raises DamagedError where a field is not whole.
    """
    rows = np.flatnonzero(starts < ends)
    at, stop = starts[rows], ends[rows]
    for _ in range(_MOST_FIELDS):
        if not len(rows):
            return
        tag, sizes = buffer.bytes[at].astype(np.uint64), np.int64(1)
        if bool((tag > 0x7F).any()):
            tag, sizes = varints(buffer, at)
        wire_type, place = tag & np.uint64(7), np.minimum(at + sizes, buffer.size)
        value, sizes = varints(buffer, place)
        start = place + sizes
        has_length = wire_type == LENGTH
        if bool(((wire_type != VARINT) & ~has_length).any()):
            start = _read_fixed(buffer, wire_type, place, value, start)
        if bool((tag < 8).any()) or bool((value[has_length] > np.uint64(buffer.size)).any()):
            raise DamagedError
        at = start + np.where(has_length, value, 0).astype(np.int64)
        if bool((at > stop).any()):
            raise DamagedError
        yield Fields(rows, tag >> np.uint64(3), wire_type, value, start)
        left = at < stop
        rows, at, stop = rows[left], at[left], stop[left]
    raise DamagedError


def _read_fixed(
    buffer: Buffer, wire_type: NDArray[np.uint64], place: Integers, value: Words, start: Integers
) -> Integers:
    """Put the numbers of fixed size into `value`, and give where each field's bytes begin or end."""
    fixed = np.flatnonzero((wire_type == FIXED64) | (wire_type == FIXED32))
    if len(fixed) < np.count_nonzero((wire_type != VARINT) & (wire_type != LENGTH)):
        raise DamagedError
    small = wire_type[fixed] == FIXED32
    words = buffer.words[place[fixed]]
    value[fixed] = np.where(small, words & np.uint64(0xFFFF_FFFF), words)
    start = start.copy()
    start[fixed] = place[fixed] + np.where(small, 4, 8)
    return start


def events(buffer: Buffer, start: int, end: int) -> tuple[Integers, Integers, int]:
    """Find the events of a line: messages of one repeated field, from here up to the first other field.

    Gives where each begins and ends, and where the last ended. The place of each follows from the length of
    the one before. So that this needn't go one by one, the reading starts in many places at once, each a
    guess; a guess was right if the reading before it arrives there. So what is given is certain.
    """
    tag = buffer[start]
    firsts = _guess_starts(buffer, start, end, tag)
    begins, ends, at = _read_from(buffer, firsts, end, tag)
    chain_of = {int(first): chain for chain, first in enumerate(firsts)}
    counts = (begins >= 0).sum(axis=1)
    pieces: list[tuple[Integers, Integers]] = []
    chain = 0
    while True:
        pieces.append((begins[chain, : counts[chain]], ends[chain, : counts[chain]]))
        place = int(at[chain])
        if place not in chain_of:  # the next guess was wrong: read one by one as far as one that wasn't
            piece, place = _read_singly(buffer, place, end, tag, chain_of)
            pieces.append(piece)
        if place not in chain_of or chain_of[place] == chain:
            break
        chain = chain_of[place]
    return (
        np.concatenate([piece[0] for piece in pieces]),
        np.concatenate([piece[1] for piece in pieces]),
        place,
    )


def _guess_starts(buffer: Buffer, start: int, end: int, tag: int) -> Integers:
    """Places where an event seems to begin: its tag, then its first fields, the name's number and the offset.

    An event's own stats have the same tag, but nothing of that number second.
    """
    places = np.arange(start + _PIECE_BYTES, end - _LOOK_BYTES, _PIECE_BYTES, dtype=np.int64)
    around = places[:, None] + np.arange(_LOOK_BYTES)
    seems = buffer.bytes[around] == tag
    rows, columns = np.nonzero(seems)
    candidates = around[rows, columns]
    begin = candidates + 2 + (buffer.bytes[candidates + 1] > 0x7F)
    _, sizes = varints(buffer, begin + 1)
    fits = (buffer.bytes[begin] == 0x08) & (buffer.bytes[np.minimum(begin + 1 + sizes, end)] == 0x10)
    _, chosen = np.unique(rows[fits], return_index=True)
    return np.concatenate([[start], candidates[fits][chosen]])


def _read_from(buffer: Buffer, firsts: Integers, end: int, tag: int) -> tuple[Integers, Integers, Integers]:
    """Read on from each of these places as far as the next; a row each, filled up with -1."""
    stops = np.append(firsts[1:], end)
    at = firsts.copy()
    begins, ends = [np.full(len(at), -1)], [np.full(len(at), -1)]
    while True:
        active = (at < stops) & (buffer.bytes[at] == tag)
        length = buffer.bytes[at + 1].astype(np.int64)
        begin = at + 2
        if bool((length[active] > 0x7F).any()):
            value, sizes = varints(buffer, np.minimum(at + 1, buffer.size))
            length = np.minimum(value, np.uint64(buffer.size + 1)).astype(np.int64)
            begin = at + 1 + sizes
        stop = begin + length
        active &= stop <= end
        if not active.any():
            break
        begins.append(np.where(active, begin, -1))
        ends.append(np.where(active, stop, -1))
        at = np.where(active, stop, at)
    columns = slice(1, None) if len(begins) > 1 else slice(None)
    return np.stack(begins)[columns].T, np.stack(ends)[columns].T, at


def _read_singly(
    buffer: Buffer, at: int, end: int, tag: int, known: Container[int]
) -> tuple[tuple[Integers, Integers], int]:
    begins: list[int] = []
    ends: list[int] = []
    while at < end and at not in known and buffer[at] == tag:
        try:
            field = field_at(buffer, at, end)
        except DamagedError:
            break
        begins.append(field.start)
        ends.append(field.end)
        at = field.end
    return (np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64)), at
