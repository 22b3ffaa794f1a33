"""Whole columns of integers out of a SQLite file, decoded by numpy from the pages of a table.

A million rows take `sqlite3` several seconds, since each value becomes a Python object; here they take a
fraction of one. Only what an export of Nsight Systems needs is done: integers of ordinary tables. Whatever
else occurs raises `Undecodable`, and the caller asks SQLite itself. The format: https://sqlite.org/fileformat2.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INTERIOR, _LEAF = 5, 13  # kinds of pages of a table's B-tree
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0])  # bytes of a value of each serial type below 12
_FLOAT, _ZERO, _ONE, _FIRST_TEXT = 7, 8, 9, 12  # serial types; 0 is NULL, 1 to 6 are integers
_PAGES_AT_ONCE = 2048  # so that what is worked on stays in the processor's cache

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


class Undecodable(Exception):
    """The table holds something that only SQLite itself can read."""


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Column:
    """One column to read: its place in the table, and what to give for NULL.

    One of texts gives a key for each, which `PageFile.texts` explains; NULL's is 0.
    """

    place: int
    null: int = 0
    is_text: bool = False


class PageFile:
    """A SQLite file, looked at page by page."""

    def __init__(self, path: Path) -> None:
        self._bytes: Bytes = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
        header = self._bytes[:100].tobytes()
        if len(self._bytes) < 512 or not header.startswith(b"SQLite format 3\0") or max(header[18:20]) > 1:
            raise Undecodable("no SQLite file, or one with a write-ahead log")
        size = int.from_bytes(header[16:18], "big")
        self._page_bytes = 65536 if size == 1 else size
        self._usable_bytes = self._page_bytes - header[20]
        self._pages = len(self._bytes) // self._page_bytes
        self.texts: dict[int, bytes] = {}  # each different text that was read, by its key
        # 8 bytes from any place on, as one big-endian integer
        self._words = np.ndarray((len(self._bytes) - 7,), dtype=">i8", buffer=self._bytes.data, strides=(1,))

    def columns(self, root: int, wanted: Sequence[Column]) -> tuple[list[NDArray[np.int64]], bool]:
        """Read columns of the table that begins at page `root`, in the order of its rows.

        Also tells whether the table is whole: pages that lie beyond the file's end are left out.
        """
        try:
            leaves, whole = self._leaves(root)
            parts = [
                self._decode(leaves[first : first + _PAGES_AT_ONCE], wanted)
                for first in range(0, len(leaves), _PAGES_AT_ONCE)
            ]
        except IndexError as error:  # an address outside the file
            raise Undecodable("damaged pages") from error
        none = np.zeros(0, dtype=np.int64)
        return [np.concatenate([none, *(part[i] for part in parts)]) for i in range(len(wanted))], whole

    def _leaves(self, root: int) -> tuple[Indices, bool]:
        """Give the pages that hold the table's rows, in order."""
        level, whole = np.array([root], dtype=np.int64), True
        for _depth in range(20):  # more levels than SQLite allows
            inside = (level >= 1) & (level <= self._pages)
            whole = whole and bool(inside.all())
            level = level[inside]
            if len(level) > self._pages:
                break
            kinds = self._bytes[self._starts(level)]
            if np.all(kinds == _LEAF):
                return level, whole
            if not np.all(kinds == _INTERIOR):
                raise Undecodable("damaged pages")
            level = self._children(level)
        raise Undecodable("pages in a circle")

    def _starts(self, pages: Indices) -> Indices:
        return (pages - 1) * self._page_bytes + np.where(pages == 1, 100, 0)

    def _children(self, pages: Indices) -> Indices:
        starts = self._starts(pages)
        counts = self._unsigned(starts + 3, 2)
        cells, _page = self._cells(pages, starts, counts, header_bytes=12)
        children = np.zeros(len(cells) + len(pages), dtype=np.int64)
        last = np.cumsum(counts + 1) - 1
        others = np.ones(len(children), dtype=np.bool_)
        others[last] = False
        children[others] = self._unsigned(cells, 4)
        children[last] = self._unsigned(starts + 8, 4)
        return children

    def _cells(
        self, pages: Indices, starts: Indices, counts: Indices, header_bytes: int
    ) -> tuple[Indices, Indices]:
        """Give where each cell of these pages begins, and which of the pages it is in."""
        page = np.repeat(np.arange(len(pages)), counts)
        number = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts)
        within = self._unsigned(starts[page] + header_bytes + 2 * number, 2)
        return (pages[page] - 1) * self._page_bytes + within, page

    def _decode(self, pages: Indices, wanted: Sequence[Column]) -> list[NDArray[np.int64]]:
        starts = self._starts(pages)
        cells, page = self._cells(pages, starts, self._unsigned(starts + 3, 2), header_bytes=8)
        page_end = pages[page] * self._page_bytes
        payload_bytes, at = self._varint(cells)
        _row, at = self._varint(at)
        local_end = np.minimum(at + self._local_bytes(payload_bytes), page_end)
        header_bytes, serial_at = self._varint(at)
        value_at = at + header_bytes
        places = {column.place: i for i, column in enumerate(wanted)}
        values: list[Any] = [None] * len(wanted)
        for place, serial in enumerate(self._serials(serial_at, value_at, local_end, max(places) + 1)):
            sizes = _sizes(serial)
            value_end = value_at + sizes
            if (i := places.get(place)) is not None:
                if bool(np.any(value_end > local_end)):
                    raise Undecodable("a row that goes on in an overflow page")
                read = self._text_keys if wanted[i].is_text else self._integers
                values[i] = read(serial, sizes, value_end, wanted[i].null)
            value_at = value_end
        return values

    def _serials(
        self, at: Indices, header_end: Indices, local_end: Indices, count: int
    ) -> Iterator[NDArray[np.integer[Any]]]:
        """Yield the serial types of the first `count` columns."""
        if len(at) and int(at.max()) + count <= len(self._bytes) and bool(np.all(header_end - at >= count)):
            heads = np.lib.stride_tricks.sliding_window_view(self._bytes, count)[at]
            if heads.max() < 0x80:  # as nearly always: each is one byte
                yield from np.ascontiguousarray(heads.T)
                return
        for _ in range(count):
            serial, at = self._varint(np.minimum(at, local_end))
            yield np.where(at <= header_end, serial, 0)  # columns added later are not stored

    def _local_bytes(self, payload_bytes: Indices) -> Indices:
        """How much of each row is in its leaf; the rest is in overflow pages."""
        least = (self._usable_bytes - 12) * 32 // 255 - 23
        most = self._usable_bytes - 35
        kept = least + (payload_bytes - least) % (self._usable_bytes - 4)
        return np.where(payload_bytes <= most, payload_bytes, np.where(kept <= most, kept, least))

    def _integers(
        self, serial: NDArray[np.integer[Any]], sizes: Indices, ends: Indices, null: int
    ) -> NDArray[np.int64]:
        kinds = np.flatnonzero(np.bincount(np.minimum(serial, _FIRST_TEXT), minlength=_FIRST_TEXT + 1))
        if bool(np.any((kinds == _FLOAT) | (kinds >= 10))):
            raise Undecodable("a value that is no integer")
        if len(kinds) == 1 and kinds[0] in (0, _ZERO, _ONE):
            return np.full(len(serial), {0: null, _ZERO: 0, _ONE: 1}[int(kinds[0])], dtype=np.int64)
        shift = np.minimum(64 - 8 * sizes, 63)
        # The value's last byte is the word's last: what stands before it is shifted out, with the sign kept.
        values = (self._words[ends - 8].astype(np.int64) << shift) >> shift
        for kind, value in ((_ZERO, 0), (_ONE, 1), (0, null)):
            if kind in kinds:
                values[serial == kind] = value
        return values

    def _text_keys(
        self, serial: NDArray[np.integer[Any]], sizes: Indices, ends: Indices, null: int
    ) -> NDArray[np.int64]:
        """Give a number of 63 bits for each text, computed from it; two texts share one as good as never."""
        if bool(np.any((serial != 0) & ((serial <= _FIRST_TEXT) | (serial % 2 == 0)))):
            raise Undecodable("a value that is no text")
        key = (sizes + 1).astype(np.uint64)  # so that an empty text is not NULL
        for first in range(0, int(sizes.max(initial=0)) - 7, 8):
            rows = np.flatnonzero(sizes >= first + 8)
            words = self._words[ends[rows] - sizes[rows] + first].astype(np.int64).view(np.uint64)
            key[rows] = _mixed(key[rows], words)
        # What is left over is taken in by the last 8 bytes, of a short text by what there is.
        words = self._words[ends - 8].astype(np.int64)
        last = np.where(sizes > 0, words << np.clip(64 - 8 * sizes, 0, 63), 0)
        keys = (_mixed(key, last.view(np.uint64)) >> np.uint64(1)).astype(np.int64)
        keys[serial == 0] = null
        for number, row in zip(*np.unique(keys, return_index=True), strict=True):
            if serial[row] and int(number) not in self.texts:
                self.texts[int(number)] = self._bytes[ends[row] - sizes[row] : ends[row]].tobytes()
        return keys

    def _unsigned(self, at: Indices, size: int) -> Indices:
        if len(at) and int(at.max()) + size > len(self._bytes):
            raise Undecodable("damaged pages")
        value = np.zeros(len(at), dtype=np.int64)
        for i in range(size):
            value = (value << 8) | self._bytes[at + i]
        return value

    def _varint(self, at: Indices) -> tuple[Indices, Indices]:
        """Read a number of 1 to 9 bytes at each place; returns it and where it ends."""
        if len(at) and int(at.max()) + 9 > len(self._bytes):
            at = np.minimum(at, len(self._bytes) - 9)
        first = self._bytes[at]
        value, end = (first & 0x7F).astype(np.int64), at + 1
        going_on = np.flatnonzero(first & 0x80)
        for length in range(2, 10):
            if not len(going_on):
                return value, end
            byte = self._bytes[at[going_on] + length - 1]
            bits = 8 if length == 9 else 7
            value[going_on] = (value[going_on] << bits) | (byte if length == 9 else byte & 0x7F)
            end[going_on] += 1
            going_on = going_on[(byte & 0x80) != 0]
        return value, end


def _sizes(serial: NDArray[np.integer[Any]]) -> Indices:
    """How many bytes the values of these serial types have."""
    least, most = (int(serial.min()), int(serial.max())) if len(serial) else (0, 0)
    if least == most < _FIRST_TEXT:  # as of most columns in most chunks
        return np.broadcast_to(_SIZES[most], len(serial))
    sizes = _SIZES[np.minimum(serial, 11)]
    return (
        sizes
        if most < _FIRST_TEXT
        else np.where(serial < _FIRST_TEXT, sizes, (serial.astype(np.int64) - 12) // 2)
    )


def _mixed(key: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (key ^ words) * _FACTOR
    return mixed ^ (mixed >> np.uint64(29))
