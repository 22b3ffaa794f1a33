"""Where the texts of a report, or of a stream, lie: its sections, and the LZ4 blocks of its events.

Seen in files of nsys 2022.4 and 2025.3. The last 16 bytes tell where the list of sections is (a protobuf
message of names, offsets and sizes). The section of the events holds messages, each after its length,
and blocks: the size that they take, the size that they have, then LZ4. There is no checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

from .lz4_blocks import plain_of
from .messages import fields, varint

_END = b"U3w[END]"
_MAGIC = b"QDTEXT00"
_OF_EVENTS = ("Raw Sampling Data", "Raw Events")
#: Large, and of no process.
_OF_OTHERS = ("Kernel Symbols",)
_NAME, _OFFSET, _SIZE = 1, 2, 3
_LARGEST_BLOCK = 1 << 28
_LEAST_BLOCK = 16
#: So many bytes in a row may be neither a block nor a message.
_PATIENCE = 1 << 20


class UnknownLayout(ValueError):
    """The file is laid out in another way than is known here."""


@dataclass(frozen=True)
class Piece:
    """A part of the file. `plain` is what it says: of a block (`packed`), unpacked."""

    offset: int
    size: int
    plain: bytes
    packed: bool


def pieces(file: mmap) -> Iterator[Piece]:
    """Give all parts that may hold texts, in the file's order. Raises UnknownLayout."""
    has_blocks = False
    for name, start, end in sections(file):
        if name in _OF_OTHERS:
            continue
        for piece in _of_section(file, start, end):
            has_blocks |= piece.packed
            yield piece
    if not has_blocks:
        raise UnknownLayout("it holds no block that LZ4 unpacks")


def sections(file: mmap) -> list[tuple[str, int, int]]:
    """Read the list of sections: name, start, end. Raises UnknownLayout."""
    size = len(file)
    place = int.from_bytes(file[size - 16 : size - 8], "little")
    if size < 32 or file[size - 8 :] != _END or not 0 < place < size - 16:
        raise UnknownLayout("it does not end as reports do")
    found: list[tuple[str, int, int]] = []
    for field in fields(file, place, size - 16) or ():
        inner = fields(file, field.start, field.end) if field.is_bytes else None
        entry = {one.number: one for one in inner or ()}
        if _NAME in entry and entry[_NAME].is_bytes:
            name = file[entry[_NAME].start : entry[_NAME].end].decode("utf-8", "replace")
            start = entry[_OFFSET].value if _OFFSET in entry else 0
            end = start + (entry[_SIZE].value if _SIZE in entry else 0)
            if end <= size:
                found.append((name, start, end))
    if not any(name in _OF_EVENTS for name, _, _ in found):
        raise UnknownLayout("it lists no section of events")
    return sorted(found, key=lambda section: section[1])


def _of_section(file: mmap, start: int, end: int) -> Iterator[Piece]:
    place = before = start + (len(_MAGIC) if file[start : start + len(_MAGIC)] == _MAGIC else 0)
    astray = 0
    while place < end and astray < _PATIENCE:
        block = _block(file, place, end)
        if block is None:
            length, after = varint(file, place, end)
            is_message = 1 < length <= end - after and fields(file, after, after + length) is not None
            place = after + length if is_message else place + 1
            astray = 0 if is_message else astray + 1
            continue
        if before < place:
            yield Piece(before, place - before, file[before:place], packed=False)
        yield block
        place = before = block.offset + block.size
        astray = 0
    if before < end:
        yield Piece(before, end - before, file[before:end], packed=False)


def _block(file: mmap, place: int, end: int) -> Piece | None:
    taken, after = varint(file, place, end)
    size, start = varint(file, after, end)
    if not (_LEAST_BLOCK <= taken <= end - start and taken // 2 <= size <= min(taken * 255, _LARGEST_BLOCK)):
        return None
    plain = plain_of(file[start : start + taken], size)
    return None if plain is None else Piece(start, taken, plain, packed=True)
