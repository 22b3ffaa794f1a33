"""Building timelines: texts told once, columns with their types and defaults, several files as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .model import (
    AllocatorSamples,
    ApiCalls,
    Collectives,
    Columns,
    Compiles,
    Counters,
    DeviceOps,
    HostRanges,
    Numbers,
    Steps,
    Timeline,
)

C = TypeVar("C", bound=Columns)
#: What a column holds where the recorder tells nothing; any other holds 0.
_NOT_KNOWN: dict[str, Any] = {"program": -1, "fragmentation": np.nan}
#: Columns that hold numbers of texts, devices and threads, by the table that has them.
_TEXTS: dict[type[Columns], tuple[str, ...]] = {
    DeviceOps: ("name", "module", "hlo_op", "scope", "source"),
    HostRanges: ("name", "detail"),
    ApiCalls: ("name",),
    Steps: ("name",),
    Compiles: ("function",),
    AllocatorSamples: (),
    Counters: ("name", "unit"),
    Collectives: ("kind",),
}


class Texts:
    """The texts of a timeline, each kept once; number 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        """Give the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Iterable[str]) -> Numbers:
        """Give the numbers of many texts: told once where there are few different ones, then indexed."""
        return np.fromiter(map(self.number, texts), dtype=np.int32)

    def all(self) -> tuple[str, ...]:
        """Give all texts, each at its number."""
        return tuple(self._numbers)


@cache
def column_types(table: type[Columns]) -> dict[str, np.dtype[Any]]:
    """Give the names and types of a table's columns."""
    hints = get_type_hints(table)
    return {column.name: np.dtype(_scalar_type(hints[column.name])) for column in fields(table)}


def _scalar_type(hint: Any) -> type[np.generic] | None:
    """Give the type of an array's elements from its annotation, which NumPy 2.5 writes in another form."""
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return hint
    return next((found for part in get_args(hint) if (found := _scalar_type(part))), None)


def columns(table: type[C], **given: ArrayLike) -> C:
    """Make a table, sorted by time, from the columns known; the others hold 'not known'.

    A scalar fills its column. At least one column must be an array. Rows of equal times keep their order.
    """
    return by_time(unsorted(table, **given))


def unsorted(table: type[C], **given: ArrayLike) -> C:
    """Make a table as `columns` does, with the rows in the order given."""
    types = column_types(table)
    if unknown := given.keys() - types.keys():
        raise TypeError(f"{table.__name__} has no column {sorted(unknown)}")
    length = max((np.size(values) for values in given.values() if np.ndim(values)), default=0)
    made: dict[str, NDArray[Any]] = {}
    for name, dtype in types.items():
        values = np.asarray(given.get(name, _NOT_KNOWN.get(name, 0)), dtype=dtype)
        made[name] = np.full(length, values, dtype=dtype) if values.ndim == 0 else values
    return table(**made)


def empty(table: type[C]) -> C:
    """Make a table without rows."""
    return columns(table)


def _order(table: Columns) -> NDArray[np.intp] | None:
    """The rows in the order of time; None where they are, or have no time."""
    name = next((name for name in ("start_ns", "time_ns") if hasattr(table, name)), None)
    if name is None:
        return None
    times: NDArray[np.float64] = getattr(table, name)
    if bool(np.all(times[1:] >= times[:-1])):
        return None
    return np.argsort(times, kind="stable")


def concatenate(tables: Sequence[C]) -> C:
    """Put the rows of tables of one type one after the other, as they are."""
    tables = [one for one in tables if len(one)] or tables[:1]
    if len(tables) == 1:
        return tables[0]
    table = type(tables[0])
    names = column_types(table)
    return table(**{name: np.concatenate([getattr(part, name) for part in tables]) for name in names})


def merge(timelines: Sequence[Timeline], problems: Sequence[str] = ()) -> Timeline:
    """Make one timeline of several files of one run, one a process, in the order given.

    Clocks are aligned by each file's own unix time of its origin. Processes, devices, threads and
    correlations are numbered anew, so that those of two files stay apart. What one file could not see is
    blind for all. `problems` are sentences about files that couldn't be read.
    """
    if len(timelines) == 1:
        return replace(timelines[0], notices=(*problems, *timelines[0].notices))
    texts = Texts()
    origin_ns = min(timeline.origin_ns for timeline in timelines)
    parts: list[Timeline] = []
    devices = threads = processes = correlations = 0
    for timeline in timelines:
        part = _renumbered(timeline, texts, devices, threads, processes, correlations)
        parts.append(_shifted(part, float(timeline.origin_ns - origin_ns)))
        devices += len(part.devices)
        threads += len(part.threads)
        processes += _processes(timeline)
        correlations = max(
            [correlations, *(int(table.correlation.max(initial=0)) for table in (part.ops, part.calls))]
        )
    ops, collectives = _merged_ops(parts)
    versions = {key: value for part in reversed(parts) for key, value in part.versions.items()}
    return replace(
        parts[0],
        files=tuple(file for part in parts for file in part.files),
        origin_ns=origin_ns,
        texts=texts.all(),
        devices=tuple(device for part in parts for device in part.devices),
        threads=tuple(thread for part in parts for thread in part.threads),
        ops=ops,
        collectives=collectives,
        ranges=by_time(concatenate([part.ranges for part in parts])),
        calls=by_time(concatenate([part.calls for part in parts])),
        steps=by_time(concatenate([part.steps for part in parts])),
        compiles=by_time(concatenate([part.compiles for part in parts])),
        allocator=by_time(concatenate([part.allocator for part in parts])),
        counters=_merged_counters(parts),
        recorded_ns=(
            min(part.recorded_ns[0] for part in parts),
            max(part.recorded_ns[1] for part in parts),
        ),
        blind=frozenset[str]().union(*(part.blind for part in parts)),
        notices=tuple(dict.fromkeys([*problems, *(notice for part in parts for notice in part.notices)])),
        dropped_events=sum(part.dropped_events for part in parts),
        versions=versions,
    )


def _merged_counters(parts: Sequence[Timeline]) -> Counters | None:
    tables = [part.counters for part in parts if part.counters is not None]
    return by_time(concatenate(tables)) if tables else None


def _processes(timeline: Timeline) -> int:
    used = [place.process for place in (*timeline.devices, *timeline.threads)]
    return max(used, default=0) + 1


def by_time(table: C) -> C:
    """Give a table in the order of time; rows of equal times keep theirs."""
    order = _order(table)
    return table if order is None else table.take(order)


def _merged_ops(parts: Sequence[Timeline]) -> tuple[DeviceOps, Collectives]:
    """Merge the operations, and let the collectives point at their new rows."""
    ops = concatenate([part.ops for part in parts])
    first_rows = np.cumsum([0, *(len(part.ops) for part in parts)])
    collectives = concatenate(
        [
            replace(part.collectives, op=part.collectives.op + first)
            for part, first in zip(parts, first_rows, strict=False)
        ]
    )
    order = _order(ops)
    if order is None:
        return ops, collectives
    new_row = np.empty(len(ops), dtype=np.int64)
    new_row[order] = np.arange(len(ops))
    rows = new_row[collectives.op]
    return ops.take(order), replace(collectives, op=rows).take(np.argsort(rows, kind="stable"))


def _renumbered(
    timeline: Timeline, texts: Texts, devices: int, threads: int, processes: int, correlations: int
) -> Timeline:
    new_text = texts.numbers(timeline.texts)

    def table(old: C) -> C:
        changes: dict[str, Any] = {name: new_text[getattr(old, name)] for name in _TEXTS[type(old)]}
        for name, first in (("device", devices), ("thread", threads)):
            if hasattr(old, name):
                changes[name] = (getattr(old, name) + first).astype(np.int32)
        if isinstance(old, DeviceOps | ApiCalls):
            known = old.correlation
            changes["correlation"] = np.where(known != 0, known + correlations, 0)
        return replace(old, **changes)

    return replace(
        timeline,
        devices=tuple(replace(one, process=one.process + processes) for one in timeline.devices),
        threads=tuple(replace(one, process=one.process + processes) for one in timeline.threads),
        ops=table(timeline.ops),
        ranges=table(timeline.ranges),
        calls=table(timeline.calls),
        steps=table(timeline.steps),
        compiles=table(timeline.compiles),
        allocator=table(timeline.allocator),
        collectives=table(timeline.collectives),
        counters=None if timeline.counters is None else table(timeline.counters),
    )


def _shifted(timeline: Timeline, shift_ns: float) -> Timeline:
    def table(old: C) -> C:
        name = "time_ns" if hasattr(old, "time_ns") else "start_ns"
        return replace(old, **{name: getattr(old, name) + shift_ns})

    return replace(
        timeline,
        ops=table(timeline.ops),
        ranges=table(timeline.ranges),
        calls=table(timeline.calls),
        steps=table(timeline.steps),
        compiles=table(timeline.compiles),
        allocator=table(timeline.allocator),
        counters=None if timeline.counters is None else table(timeline.counters),
        recorded_ns=(timeline.recorded_ns[0] + shift_ns, timeline.recorded_ns[1] + shift_ns),
    )
