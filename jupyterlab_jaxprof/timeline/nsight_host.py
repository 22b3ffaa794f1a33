"""The host's side of an Nsight report, in the model's columns: ranges that nest, steps, compiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .build import Texts, columns, empty
from .model import Compiles, HostRanges, Phase, RangeKind, Steps, Thread
from .nsight_annotations import numbered
from .nsight_database import IntegerColumn
from .nsight_nesting import nest, order
from .nsight_ranges import Ranges

_COMPILE, _BACKEND = "XlaCompile", "XlaCompileBackend"
#: Words that name a step; of two nested names with numbers the one with such a word is the step.
_STEP_WORD = re.compile(r"step|iter|batch|train", re.IGNORECASE)
_OF_JAX = re.compile(r"(?:p?jit|pmap|xmap)_")


def host_ranges(ranges: Ranges, threads: Sequence[Thread], texts: Texts) -> tuple[HostRanges, list[Thread]]:
    """Give the ranges, and the threads with those added on which ranges are that don't nest.

    Ranges of NVTX that are started and ended, rather than pushed and popped, may cross others.
    """
    thread, lanes = _lanes(ranges, threads)
    xla = ranges.xla_names()
    named = texts.numbers(
        name if one is None else one.kind for name, one in zip(ranges.names, xla, strict=True)
    )
    detail = texts.numbers("" if one is None else one.detail for one in xla)
    table = columns(
        HostRanges,
        thread=thread,
        kind=ranges.kind,
        name=named[ranges.name] if len(ranges) else np.zeros(0, np.int32),
        start_ns=ranges.start,
        duration_ns=ranges.end - ranges.start,
        detail=detail[ranges.name] if len(ranges) else np.zeros(0, np.int32),
    )
    # Of ranges that begin together the outer one comes first
    outer_first = np.lexsort((-table.duration_ns, table.start_ns))
    return table.take(outer_first), lanes


def _lanes(ranges: Ranges, threads: Sequence[Thread]) -> tuple[IntegerColumn, list[Thread]]:
    """Put what crosses others on lanes of its own, so that the ranges of each nest."""
    thread, lanes = ranges.thread.astype(np.int64), list(threads)
    ordered = order(thread, ranges.start, ranges.end)
    crossing = ordered[nest(thread[ordered], ranges.start[ordered], ranges.end[ordered])[1]]
    for number in np.unique(thread[crossing]).tolist():
        own = ordered[thread[ordered] == number]
        lane = np.empty(len(own), dtype=np.int64)
        # What is started and ended, rather than pushed and popped, gives way.
        pushed = ranges.push_pop[own] | (ranges.kind[own] == RangeKind.SYSTEM)
        lane[pushed] = _nesting_lanes(ranges, own[pushed])
        lane[~pushed] = _nesting_lanes(ranges, own[~pushed]) + 1
        for one in np.unique(lane[lane > 0]).tolist():
            thread[own[lane == one]] = len(lanes)
            lanes.append(replace(threads[number], name=f"{threads[number].name} (ranges that cross others)"))
    return thread, lanes


def _nesting_lanes(ranges: Ranges, rows: IntegerColumn) -> IntegerColumn:
    """Give each of the rows, ordered by start, the first lane in which it crosses no other."""
    lanes: list[list[int]] = []  # the ends of what is open in each, the outermost first
    result: list[int] = []
    for start, end in zip(ranges.start[rows].tolist(), ranges.end[rows].tolist(), strict=True):
        for lane in lanes:
            while lane and lane[-1] <= start:
                lane.pop()
        free = (number for number, lane in enumerate(lanes) if not lane or lane[-1] >= end)
        chosen = next(free, len(lanes))
        if chosen == len(lanes):
            lanes.append([])
        lanes[chosen].append(end)
        result.append(chosen)
    return np.array(result, dtype=np.int64)


def find_steps(ranges: Ranges, texts: Texts) -> tuple[Steps, Ranges]:
    """Give the steps, and the ranges without them.

    Takes for steps the user's ranges of one name with a number: those most frequent at the top level.

    A range is at the top level if no other with a number is around it. Where one lies in the other and only
    the inner is called a step, as with `epoch 1` around `step 3`, that one is.
    """
    stems: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, name in enumerate(ranges.names):
        if (split := numbered(name)) is not None:
            stems[split[0]].append((number, split[1]))
    step_number = np.full(len(ranges.names), -1, dtype=np.int64)
    stem_of = np.full(len(ranges.names), -1, dtype=np.int64)
    for stem, members in enumerate(stems.values()):
        for name, number in members:
            step_number[name], stem_of[name] = number, stem
    rows = np.flatnonzero((ranges.kind == RangeKind.ANNOTATION) & (stem_of[ranges.name] >= 0))
    if not len(rows):
        return empty(Steps), ranges
    stem = _steps_stem(ranges, rows, stem_of[ranges.name[rows]], step_number[ranges.name[rows]], list(stems))
    rows = rows[stem_of[ranges.name[rows]] == stem] if stem >= 0 else rows[:0]
    others = np.ones(len(ranges), dtype=np.bool_)
    others[rows] = False
    steps = columns(
        Steps,
        thread=ranges.thread[rows],
        name=texts.number(list(stems)[stem]) if stem >= 0 else 0,
        number=step_number[ranges.name[rows]],
        start_ns=ranges.start[rows],
        duration_ns=ranges.end[rows] - ranges.start[rows],
    )
    return steps, ranges.take(others)


def _steps_stem(
    ranges: Ranges, rows: IntegerColumn, stem: IntegerColumn, number: IntegerColumn, stems: Sequence[str]
) -> int:
    thread, start, end = (
        column[rows].astype(np.int64) for column in (ranges.thread, ranges.start, ranges.end)
    )
    ordered = order(thread, start, end)
    depth = np.empty(len(rows), dtype=np.int64)
    depth[ordered] = nest(thread[ordered], start[ordered], end[ordered])[0].depth
    best: tuple[bool, int, int] | None = None
    chosen = -1
    for one in np.unique(stem).tolist():
        own = stem == one
        worded = _STEP_WORD.search(str(stems[one])) is not None
        count, different = int(own.sum()), len(np.unique(number[own]))
        # A name whose number repeats counts something else, such as a layer's.
        if not worded and (count < 2 or 2 * different < count):
            continue
        rank = (worded, -int(depth[own].min()), count)
        if best is None or rank > best:
            best, chosen = rank, one
    return chosen


def find_compiles(ranges: Ranges, texts: Texts) -> Compiles:
    """Take XLA's ranges of compiling; what autotuning compiles within one belongs to it."""
    xla = ranges.xla_names()
    kinds = np.array([name.kind if name else "" for name in xla] + [""], dtype=object)
    rows = (
        np.flatnonzero(np.isin(kinds, [_COMPILE, _BACKEND])[ranges.name]) if len(ranges) else np.zeros(0, int)
    )
    rows = rows[np.lexsort((-ranges.end[rows], ranges.start[rows]))]
    kept: list[int] = []
    functions: list[str] = []
    for row in rows.tolist():
        name = xla[int(ranges.name[row])]
        module = name.fields.get("module", "") if name else ""
        if name is not None and (name.kind == _COMPILE or not _lies_within(ranges, row, kept)):
            kept.append(row)
            functions.append(_OF_JAX.sub("", module, count=1))
    chosen = np.array(kept, dtype=np.int64)
    return columns(
        Compiles,
        thread=ranges.thread[chosen],
        phase=Phase.COMPILE,
        function=texts.numbers(functions),
        start_ns=ranges.start[chosen],
        duration_ns=ranges.end[chosen] - ranges.start[chosen],
    )


def _lies_within(ranges: Ranges, row: int, others: Iterable[int]) -> bool:
    """Whether a range is within one of others of its process: XLA compiles on several threads at once."""
    return any(
        ranges.process[one] == ranges.process[row]
        and ranges.start[one] <= ranges.start[row]
        and ranges.end[row] <= ranges.end[one]
        for one in others
    )


def merged(first: Ranges, second: Ranges) -> Ranges:
    """Put the ranges of two sources together."""
    both: dict[str, NDArray[np.generic]] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("process", "thread", "kind", "start", "end", "push_pop")
    }
    name = np.concatenate([first.name, second.name + len(first.names)])
    return Ranges(
        **both,  # pyright: ignore[reportArgumentType]
        name=name,
        names=[*first.names, *second.names],
        unended=first.unended + second.unended,
    )
