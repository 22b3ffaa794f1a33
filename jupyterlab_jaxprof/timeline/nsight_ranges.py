"""The ranges of an Nsight report: NVTX's, of the user and of libraries, and calls of the operating system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .model import Numbers, RangeKind
from .nsight_annotations import LIBRARY_DOMAINS, XlaName, parse
from .nsight_database import NO_TIME, Database, IntegerColumn, timed
from .nsight_places import Places, distinct

# ENUM_NSYS_EVENT_TYPE: NvtxDomainCreate, NvtxPushPopRange, NvtxStartEndRange
_DOMAIN, _PUSH_POP, _START_END = 75, 59, 60
#: ENUM_NSYS_EVENT_CLASS: a call of the operating system's runtime
_SYSTEM_CALL = 27


@dataclass(frozen=True)
class Ranges:
    """Ranges in no order; times in whole nanoseconds. `names` has each different name once."""

    process: IntegerColumn
    thread: Numbers
    kind: NDArray[np.int64]  # RangeKind
    start: IntegerColumn
    end: IntegerColumn
    push_pop: NDArray[np.bool_]  # pushed and popped, so that those of one thread and domain nest
    name: IntegerColumn  # index into names
    names: Sequence[str]
    unended: int  # ranges that were still open when recording ended

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: NDArray[np.bool_]) -> Ranges:
        """Give the ranges that a mask selects."""
        columns = ("process", "thread", "kind", "start", "end", "push_pop", "name")
        return replace(self, **{column: getattr(self, column)[rows] for column in columns})

    def xla_names(self) -> list[XlaName | None]:
        """Take apart those of the names that are XLA's."""
        return [parse(name) for name in self.names]


def read_nvtx(
    database: Database, places: Places, strings: Mapping[int, str], ended: int | None
) -> tuple[Ranges, frozenset[str]]:
    """Read the NVTX ranges and the names of the domains; what never ended does so at `ended`, if known."""
    table = database.table("NVTX_EVENTS")
    columns = ("start", "end", "eventType", "globalTid", "textId", "domainId")
    if table is None or not database.has(table, "start", "end", "eventType", "globalTid"):
        return _no_ranges(), frozenset()
    read = database.integers(table, *columns, start=NO_TIME, end=NO_TIME, textId=-1)
    name, names = _texts(database, table, read["textId"], strings)
    domains = _domains(read, name, names)
    ranged = (read["eventType"] == _PUSH_POP) | (read["eventType"] == _START_END)
    open_at_end = ranged & (read["end"] == NO_TIME)
    ends = np.where(read["end"] == NO_TIME, NO_TIME if ended is None else ended, read["end"])
    keep = np.flatnonzero(ranged & timed(read["start"], ends))
    kind = _kinds(read["globalTid"][keep], read["domainId"][keep], domains)
    global_tid = read["globalTid"][keep]
    ranges = Ranges(
        process=places.processes(global_tid),
        thread=places.threads(global_tid),
        kind=kind,
        start=read["start"][keep],
        end=ends[keep],
        push_pop=read["eventType"][keep] == _PUSH_POP,
        name=name[keep],
        names=names,
        unended=int(open_at_end.sum()),
    )
    return ranges, frozenset(domains.values())


def read_system(database: Database, places: Places, strings: Mapping[int, str]) -> Ranges:
    """Read the calls of the operating system's runtime, where they were recorded."""
    table = database.table("OSRT_API")
    if table is None:
        return _no_ranges()
    columns = ("start", "end", "globalTid", "nameId", "eventClass")
    read = database.integers(table, *columns, start=NO_TIME, end=NO_TIME)
    calls = timed(read["start"], read["end"])
    if database.has(table, "eventClass"):  # there are marks of nsys's own among them
        calls &= read["eventClass"] == _SYSTEM_CALL
    keep = np.flatnonzero(calls)
    found, which = distinct(read["nameId"][keep])
    return Ranges(
        process=places.processes(read["globalTid"][keep]),
        thread=places.threads(read["globalTid"][keep]),
        kind=np.full(len(keep), RangeKind.SYSTEM, dtype=np.int64),
        start=read["start"][keep],
        end=read["end"][keep],
        push_pop=np.zeros(len(keep), dtype=np.bool_),
        name=which.astype(np.int64),
        names=[strings.get(int(one), "") for one in found],
        unended=0,
    )


def _no_ranges() -> Ranges:
    none = np.zeros(0, dtype=np.int64)
    return Ranges(none, none.astype(np.int32), none, none, none, none.astype(np.bool_), none, [], 0)


def _texts(
    database: Database, table: str, text_id: IntegerColumn, strings: Mapping[int, str]
) -> tuple[IntegerColumn, list[str]]:
    """Give each row's text, as a number of the different ones: registered, or in the row itself."""
    found, which = distinct(text_id)
    names = [strings.get(int(one), "") for one in found]
    name = which.astype(np.int64)
    if not database.has(table, "text") or not bool(np.any(text_id < 0)):
        return name, names
    numbers, own = database.texts(table, "text")
    inline = np.full(len(name), -1, dtype=np.int64)
    inline[: len(numbers)] = numbers[: len(name)]
    return np.where(inline >= 0, inline + len(names), name), names + own


def _domains(
    read: Mapping[str, IntegerColumn], name: IntegerColumn, names: Sequence[str]
) -> dict[tuple[int, int], str]:
    """Give the names of the domains, by process and number: each process numbers its own."""
    rows = np.flatnonzero(read["eventType"] == _DOMAIN)
    return {
        (int(read["globalTid"][row]) >> 24, int(read["domainId"][row])): names[int(name[row])] for row in rows
    }


def _kinds(
    global_tid: IntegerColumn, domain_id: IntegerColumn, domains: Mapping[tuple[int, int], str]
) -> NDArray[np.int64]:
    """Tell the user's ranges from those that libraries push, going by their domain."""
    process, which_process = distinct(global_tid >> 24)
    domain, which_domain = distinct(domain_id)
    table = np.full((len(process), max(len(domain), 1)), RangeKind.ANNOTATION, dtype=np.int64)
    for i, one in enumerate(process):
        for j, number in enumerate(domain):
            if LIBRARY_DOMAINS.fullmatch(domains.get((int(one), int(number)), "")):
                table[i, j] = RangeKind.RUNTIME
    return table[which_process, which_domain]
