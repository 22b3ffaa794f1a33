"""The messages of an XPlane file as columns: planes, lines, events and their stats.

https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .build import Texts
from .figures import read_number
from .model import Floats, Integers, Numbers
from .wire import LENGTH, Buffer, DamagedError, Field, events, field_at, fields, scan

#: Events read at once: their columns stay in the processor's cache.
_BLOCK = 32_768
#: A line's events are looked for in so many bytes at once.
_SPAN_BYTES = 8 << 20
#: Numbers of names above this are none that XLA gives.
_MOST_NAMES = 1 << 24
_EVENT_TAG = 4 << 3 | LENGTH
#: A text among an event's stats is kept as one number, its place in the file times this plus its length.
_LONGEST_TEXT = 1 << 24
#: Stats that tell nothing of what a timeline holds; half of a kernel's.
_UNUSED_STATS = re.compile(
    r"kernel_details|theoretical_occupancy_pct|occupancy_\w+|scope_range_id|context_id|cuda_graph_node_id"
    r"|unique_hlo_op_id|requested_bytes|allocation_bytes|bytes_reserved|addr|id|data_type"
)
#: Planes that hold nothing but thousands of stats, none of which a timeline has.
_PLANES_OF_STATS = ("/host:__ScopeRangeCallStack__",)
#: A line that begins after this many ns goes by the unix clock, and not by the recording's begin: 1990.
_UNIX_TIME_NS = 631_152_000 * 10**9
#: As far as these, the sum of a line's begin and an event's offset fits into 64 bits as picoseconds.
_EXACT_NS, _EXACT_PS = 1 << 52, 1 << 62
_NO_NUMBER = -(1 << 63)
_DOUBLE, _UNSIGNED, _SIGNED, _TEXT, _BYTES, _REFERENCE = 2, 3, 4, 5, 6, 7

Value = int | float | str | bytes


@dataclass
class Plane:
    """One plane: a device, the host, or what is known of programs. `lines` tells where its lines are."""

    name: str = ""
    number: int = 0
    lines: list[Field] = field(default_factory=lambda: [])
    stats: dict[str, Value] = field(default_factory=lambda: {})
    stat_names: dict[int, str] = field(default_factory=lambda: {})
    event_names: dict[int, str] = field(default_factory=lambda: {})
    event_stats: dict[int, list[Field]] = field(default_factory=lambda: {})
    """Where the stats are that belong to a name, not to one event."""


@dataclass(frozen=True)
class Line:
    """One line of a plane: a device's stream or a host's thread."""

    number: int
    name: str
    events: Events


@dataclass(frozen=True)
class Events:
    """The events of one line, in the file's order, with times since the recording's begin."""

    name: Numbers
    start_ns: Floats
    duration_ns: Floats
    stats: Stats

    def __len__(self) -> int:
        return len(self.name)


class Stats:
    """The stats of a line's events: a row each, in no order."""

    def __init__(
        self, buffer: Buffer, plane: Plane, count: int, parts: list[tuple[NDArray[Any], ...]]
    ) -> None:
        self._buffer, self._count = buffer, count
        self._names = plane.stat_names
        none = np.zeros(0, dtype=np.int64)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [none] * 4
        self._event, self._name, self._kind, self._value = columns

    def has(self, wanted: Iterable[str]) -> NDArray[np.bool_]:
        """Tell which events have any stat of these names."""
        found = np.zeros(self._count, dtype=np.bool_)
        found[self._event[np.isin(self._name, self._numbers(wanted))]] = True
        return found

    def integers(self, name: str, missing: int = 0) -> Integers:
        """Give a stat of every event as an integer."""
        result = np.full(self._count, missing, dtype=np.int64) if missing else np.zeros(self._count, np.int64)
        for row, value in self._numeric(name):
            result[row] = value.astype(np.int64)
        return result

    def floats(self, name: str) -> Floats:
        """Give a stat of every event as a float; NaN where an event has none."""
        result = np.full(self._count, np.nan)
        for row, value in self._numeric(name):
            result[row] = value
        return result

    def texts(self, name: str, texts: Texts) -> Numbers:
        """Give a stat of every event as a text."""
        result = np.zeros(self._count, dtype=np.int32)
        rows = self._rows(name)
        kind, values = self._kind[rows], self._value[rows]
        references = (kind == _REFERENCE) & (values >= 0) & (values < _MOST_NAMES)
        if references.any():
            used = np.flatnonzero(np.bincount(values[references]))
            table = np.zeros(int(used[-1]) + 1, dtype=np.int32)
            table[used] = texts.numbers(self._names.get(value, "") for value in used.tolist())
            result[self._event[rows[references]]] = table[values[references]]
        others = rows[~references]
        result[self._event[others]] = texts.numbers(str(self._read(row)) for row in others)
        return result

    def of(self, event: int) -> dict[str, Value]:
        """Give all stats of one event."""
        rows = np.flatnonzero(self._event == event)
        return {self._names.get(int(self._name[row]), ""): self._read(row) for row in rows}

    def grouped(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, dict[str, Value]]]:
        """Give the stats of each of the events that a mask selects and that have any."""
        rows = np.flatnonzero(wanted[self._event])
        rows = rows[np.argsort(self._event[rows], kind="stable")]
        for part in np.split(rows, np.flatnonzero(np.diff(self._event[rows])) + 1):
            if len(part):
                names = (self._names.get(int(name), "") for name in self._name[part])
                yield int(self._event[part[0]]), dict(zip(names, map(self._read, part), strict=True))

    def _numbers(self, names: Iterable[str]) -> list[int]:
        wanted = set(names)
        return [number for number, name in self._names.items() if name in wanted]

    def _rows(self, name: str) -> NDArray[np.intp]:
        numbers = self._numbers([name])
        if not numbers:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(np.isin(self._name, numbers) if len(numbers) > 1 else self._name == numbers[0])

    def _numeric(self, name: str) -> Iterator[tuple[Integers, NDArray[np.int64] | Floats]]:
        rows = self._rows(name)
        kind = self._kind[rows]
        whole, broken = rows[(kind == _SIGNED) | (kind == _UNSIGNED)], rows[kind == _DOUBLE]
        yield self._event[whole], self._value[whole]
        yield self._event[broken], self._value[broken].view(np.float64)
        for row in rows[kind >= _TEXT]:  # XLA writes some numbers as text
            number = read_number(str(self._read(row)), _NO_NUMBER)
            if number != _NO_NUMBER:
                yield self._event[row : row + 1], np.array([number])

    def _read(self, row: np.intp) -> Value:
        kind, value = int(self._kind[row]), int(self._value[row])
        if kind == _REFERENCE:
            return self._names.get(value, "")
        if kind in (_TEXT, _BYTES):
            start, length = divmod(value, _LONGEST_TEXT)
            return self._buffer.text(start, start + length)
        return float(self._value[row : row + 1].view(np.float64)[0]) if kind == _DOUBLE else value


def read_plane(buffer: Buffer, place: Field) -> Plane:
    """Read a plane without its events. Raises DamagedError."""
    plane = Plane()
    own_stats: list[Field] = []
    event_names: list[Field] = []
    stat_names: list[Field] = []
    lists = {3: plane.lines, 4: event_names, 5: stat_names, 6: own_stats}
    for part in fields(buffer, place.start, place.end):
        if part.number == 1:
            plane.number = part.value
        elif part.number == 2:
            plane.name = buffer.text(part.start, part.end)
        elif part.number in lists and part.wire_type == LENGTH:
            lists[part.number].append(part)
    plane.event_names, plane.event_stats = _names(buffer, event_names, stats_field=5)
    plane.stat_names, _ = _names(buffer, stat_names, stats_field=0)
    if plane.name in _PLANES_OF_STATS:
        return plane
    plane.stats = dict(read_stat(buffer, part, plane.stat_names) for part in own_stats)
    return plane


def _names(
    buffer: Buffer, entries: list[Field], stats_field: int
) -> tuple[dict[int, str], dict[int, list[Field]]]:
    """Read a map from numbers to names; and the stats that belong to a name, by its number."""
    numbers, starts, ends = (np.zeros(len(entries), dtype=np.int64) for _ in range(3))
    places = [np.array([place(entry) for entry in entries], dtype=np.int64) for place in (_start, _end)]
    for found in scan(buffer, *places):
        is_number, is_value = found.number == 1, found.number == 2
        numbers[found.rows[is_number]] = found.value[is_number].view(np.int64)
        starts[found.rows[is_value]] = found.start[is_value]
        ends[found.rows[is_value]] = (found.start + found.value.view(np.int64))[is_value]
    names: dict[int, str] = {}
    stats: dict[int, list[Field]] = {}
    for found in scan(buffer, starts, ends):
        for number, field_number, length, start in zip(
            *(column.tolist() for column in (numbers[found.rows], found.number, found.value, found.start)),
            strict=True,
        ):
            if field_number == 2:
                names[number] = buffer.text(start, start + length)
            elif field_number == stats_field:
                stats.setdefault(number, []).append(Field(stats_field, LENGTH, length, start, start + length))
    return names, stats


_start, _end = attrgetter("start"), attrgetter("end")


def read_stat(buffer: Buffer, place: Field, names: dict[int, str]) -> tuple[str, Value]:
    """Read one stat, those with many bytes too. Raises DamagedError."""
    name, value = "", 0
    for part in fields(buffer, place.start, place.end):
        if part.number == 1:
            name = names.get(part.value, "")
        elif part.number == _DOUBLE:
            value = float(np.array([part.value], dtype=np.uint64).view(np.float64)[0])
        elif part.number == _SIGNED:
            value = part.value - (1 << 64) if part.value >> 63 else part.value
        elif part.number == _TEXT:
            value = buffer.text(part.start, part.end)
        elif part.number == _BYTES:
            value = buffer.bytes[part.start : part.end].tobytes()
        elif part.number == _REFERENCE:
            value = names.get(part.value, "")
        else:
            value = part.value
    return name, value


def has_unix_times(timestamp_ns: int) -> bool:
    """Tell whether a line goes by the unix clock, as from recorders that do not make times relative."""
    return timestamp_ns > _UNIX_TIME_NS


def timestamp_of(buffer: Buffer, place: Field) -> int:
    """Read when a line begins, without reading its events. Raises DamagedError."""
    for part in fields(buffer, place.start, place.end):
        if part.number >= 3:
            return part.value if part.number == 3 else 0
    return 0


def read_line(buffer: Buffer, place: Field, plane: Plane, texts: Texts, unix_origin_ns: int) -> Line:
    """Read a line with its events, unix times counted from an origin. Raises DamagedError."""
    number = timestamp_ns = 0
    name = display_name = ""
    reader = _EventReader(buffer, plane, texts)
    at = place.start
    while at < place.end:
        if buffer[at] == _EVENT_TAG:
            at = reader.read(at, place.end)
            continue
        part = field_at(buffer, at, place.end)
        at = part.end
        if part.number == 1:
            number = part.value - (1 << 64) if part.value >> 63 else part.value
        elif part.number == 2:
            name = buffer.text(part.start, part.end)
        elif part.number == 3:
            timestamp_ns = part.value
        elif part.number == 11:
            display_name = buffer.text(part.start, part.end)
    begin_ns = timestamp_ns - (unix_origin_ns if has_unix_times(timestamp_ns) else 0)
    return Line(number, display_name or name, reader.events(begin_ns))


class _EventReader:
    """Reads a line's events span by span, so that little more is held at once than their columns."""

    def __init__(self, buffer: Buffer, plane: Plane, texts: Texts) -> None:
        self._buffer, self._plane = buffer, plane
        self._numbers = _numbers_by_id(plane.event_names, texts)
        self._unused = [number for number, name in plane.stat_names.items() if _UNUSED_STATS.fullmatch(name)]
        self._count = 0
        # They grow in place: pieces put together at the end would be in memory twice.
        self._name = np.zeros(0, dtype=np.int32)
        self._offset_ps, self._duration_ps = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._stats: list[tuple[NDArray[Any], ...]] = []

    def read(self, at: int, end: int) -> int:
        """Read events from a place on, some or all up to the next other field; tell how far."""
        for span_end in (min(at + _SPAN_BYTES, end), end):
            starts, ends, stop = events(self._buffer, at, span_end)
            if stop > at:
                for first in range(0, len(starts), _BLOCK):
                    self._read_block(starts[first : first + _BLOCK], ends[first : first + _BLOCK])
                return stop
        raise DamagedError

    def _read_block(self, starts: Integers, ends: Integers) -> None:
        first, count = self._count, self._count + len(starts)
        if count > len(self._name):
            for column in (self._name, self._offset_ps, self._duration_ps):
                column.resize(max(count, len(column) * 5 // 4), refcheck=False)
        self._count = count
        name, offset_ps, duration_ps = (
            column[first:count] for column in (self._name, self._offset_ps, self._duration_ps)
        )
        stats: list[tuple[Integers, Integers, Integers]] = []
        for found in scan(self._buffer, starts, ends):
            values = found.value.view(np.int64)
            for number, column in ((1, name), (2, offset_ps), (3, duration_ps)):
                mask = found.number == number
                if number == 1:
                    known = np.minimum(found.value[mask], len(self._numbers) - 1).astype(np.intp)
                    column[found.rows[mask]] = self._numbers[known]
                else:
                    column[found.rows[mask]] = values[mask]
            mask = found.number == 4
            if mask.any():
                place = found.start[mask]
                stats.append((found.rows[mask] + first, place, place + values[mask]))
        if bool((offset_ps < 0).any() | (duration_ps < 0).any()):
            raise DamagedError
        if stats:
            event, begin, end = (np.concatenate(column) for column in zip(*stats, strict=True))
            for at in range(0, len(event), _BLOCK):
                part = slice(at, at + _BLOCK)
                self._stats.append(
                    _read_stats(self._buffer, event[part], begin[part], end[part], self._unused)
                )

    def events(self, begin_ns: int) -> Events:
        """Give all that was read of a line that begins then."""
        for column in (self._name, self._offset_ps, self._duration_ps):
            column.resize(self._count, refcheck=False)
        exact = abs(begin_ns) <= _EXACT_NS and int(self._offset_ps.max(initial=0)) <= _EXACT_PS
        start_ns, duration_ns = self._offset_ps.view(np.float64), self._duration_ps.view(np.float64)
        for row in range(0, self._count, _BLOCK):  # in place
            rows = slice(row, row + _BLOCK)
            offset_ps = self._offset_ps[rows]
            # Nothing is lost before the division, where the sum fits.
            start_ns[rows] = (
                (begin_ns * 1000 + offset_ps) / 1000.0 if exact else begin_ns + offset_ps / 1000.0
            )
            duration_ns[rows] = self._duration_ps[rows] / 1000.0
        stats = Stats(self._buffer, self._plane, self._count, self._stats)
        return Events(self._name, start_ns, duration_ns, stats)


def _read_stats(
    buffer: Buffer, event: Integers, starts: Integers, ends: Integers, unused: list[int]
) -> tuple[NDArray[Any], ...]:
    name, kind = np.zeros(len(event), dtype=np.int32), np.zeros(len(event), dtype=np.int8)
    value = np.zeros(len(event), dtype=np.int64)
    for found in scan(buffer, starts, ends):
        is_name = found.number == 1
        name[found.rows[is_name]] = np.minimum(found.value[is_name], _MOST_NAMES).astype(np.int32)
        rows, number, values = (
            found.rows[~is_name],
            found.number[~is_name],
            found.value[~is_name].view(np.int64),
        )
        is_text = (number == _TEXT) | (number == _BYTES)
        lengths = np.minimum(values, _LONGEST_TEXT - 1)
        kind[rows] = np.minimum(number, 127).astype(np.int8)
        value[rows] = np.where(is_text, found.start[~is_name] * _LONGEST_TEXT + lengths, values)
    kept = ~np.isin(name, unused)
    return event[kept].astype(np.int32), name[kept], kind[kept], value[kept]


def _numbers_by_id(names: dict[int, str], texts: Texts) -> Numbers:
    """A table from a name's number in the file to its number among the texts; the last entry is 'none'."""
    known = {number: name for number, name in names.items() if 0 <= number < _MOST_NAMES}
    table = np.zeros(max(known, default=0) + 2, dtype=np.int32)
    table[np.fromiter(known, dtype=np.int64)] = texts.numbers(known.values())
    return table
