"""LZ4 blocks of an exact size: a block that is changed must take the very bytes in the file that it took.

The format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lz4.block

_LEAST_MATCH = 4
_NIBBLE = 15
#: The best first; where that leaves no copy to stretch, another does.
_LEVELS: tuple[dict[str, Any], ...] = (
    {"mode": "high_compression", "compression": 12},
    {"mode": "high_compression", "compression": 9},
    {"mode": "default"},
)
#: The last copy of a block begins at least so many bytes before its end.
_LAST_COPY = 12


@dataclass
class _Sequence:
    """Bytes that are given, `start` to `end` of the text, then `match` bytes copied from `offset` before."""

    start: int
    end: int
    match: int
    offset: int

    def size(self, given: int = 0) -> int:
        """Give the bytes that it takes, with `given` bytes of its copy given instead."""
        literals, match = self.end - self.start + given, self.match - given
        taken = 1 + _extra(literals) + literals
        return taken + (2 + _extra(match - _LEAST_MATCH) if self.match else 0)


def plain_of(block: bytes, size: int) -> bytes | None:
    """Unpack a block that must hold exactly `size` bytes; None where it is no such block."""
    try:
        plain = lz4.block.decompress(block, uncompressed_size=size)
    except (lz4.block.LZ4BlockError, MemoryError, OverflowError, ValueError):
        return None
    return plain if len(plain) == size else None


def packed(plain: bytes, size: int) -> bytes | None:
    """Pack into exactly `size` bytes: smaller than that, then less well; None where that can't be."""
    for level in _LEVELS:
        block: bytes = lz4.block.compress(plain, store_size=False, **level)
        if len(block) <= size:
            sequences = _stretched(_parsed(block), len(plain), size - len(block))
            fitted = b"".join(_encoded(sequence, plain) for sequence in sequences)
            if len(fitted) == size and plain_of(fitted, len(plain)) == plain:
                return fitted
    return None


def _stretched(sequences: list[_Sequence], plain_size: int, missing: int) -> list[_Sequence]:
    """Give bytes of copies rather than copy them, until the block has grown by `missing` bytes.

    A copy of 4 bytes is given whole where that is not enough: its sequence becomes part of the next.
    """
    stretched: list[_Sequence] = []
    for number, sequence in enumerate(sequences):
        if stretched and not stretched[-1].match:
            sequence.start = stretched.pop().start
        if missing and sequence.match:
            missing -= _stretch(sequence, missing, plain_size - _LAST_COPY - sequence.end)
        following = sequences[number + 1 : number + 2]
        if missing and sequence.match == _LEAST_MATCH and following:
            whole = _Sequence(sequence.start, sequence.end + _LEAST_MATCH, 0, 0)
            joined = _Sequence(whole.start, following[0].end, following[0].match, following[0].offset)
            grown = joined.size() - sequence.size() - following[0].size()
            if 0 <= grown <= missing:
                missing -= grown
                sequence = whole
        stretched.append(sequence)
    return stretched


def _stretch(sequence: _Sequence, missing: int, room: int) -> int:
    """Let a copy begin later, by at most `room` bytes, so that it takes up to `missing` bytes more."""
    before, given = sequence.size(), min(sequence.match - _LEAST_MATCH, missing, room)
    while given > 0 and sequence.size(given) - before > missing:
        given -= 1
    if given <= 0:
        return 0
    grown = sequence.size(given) - before
    sequence.end += given
    sequence.match -= given
    return grown


def _extra(length: int) -> int:
    """Give the bytes that a length takes besides its half of the token."""
    return 0 if length < _NIBBLE else 1 + (length - _NIBBLE) // 255


def _parsed(block: bytes) -> list[_Sequence]:
    sequences: list[_Sequence] = []
    place = at = 0
    while place < len(block):
        token = block[place]
        literals, place = _length(block, place + 1, token >> 4)
        place += literals
        if place >= len(block):
            sequences.append(_Sequence(at, at + literals, 0, 0))
            break
        offset = int.from_bytes(block[place : place + 2], "little")
        match, place = _length(block, place + 2, token & _NIBBLE)
        match += _LEAST_MATCH
        sequences.append(_Sequence(at, at + literals, match, offset))
        at += literals + match
    return sequences


def _length(block: bytes, place: int, length: int) -> tuple[int, int]:
    if length == _NIBBLE:
        while True:
            more = block[place]
            place += 1
            length += more
            if more != 255:
                break
    return length, place


def _encoded(sequence: _Sequence, plain: bytes) -> bytes:
    literals, match = sequence.end - sequence.start, sequence.match - _LEAST_MATCH
    has_match = sequence.match > 0
    token = min(literals, _NIBBLE) << 4 | (min(match, _NIBBLE) if has_match else 0)
    head = bytes([token]) + _rest(literals) + plain[sequence.start : sequence.end]
    return head + sequence.offset.to_bytes(2, "little") + _rest(match) if has_match else head


def _rest(length: int) -> bytes:
    if length < _NIBBLE:
        return b""
    full, last = divmod(length - _NIBBLE, 255)
    return b"\xff" * full + bytes([last])
