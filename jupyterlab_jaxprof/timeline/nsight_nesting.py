"""How ranges of one thread lie within each other: which is around which, and which is open at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
_OPEN = 1


@dataclass(frozen=True)
class Nest:
    """Ranges that nest, ordered by thread and start; `parent` and `depth` tell how.

    Times are whole nanoseconds. A range's parent is the row of the one right around it; -1: there is none.
    """

    thread: Indices
    start: Indices
    end: Indices
    parent: Indices
    depth: Indices

    def innermost(self, thread: Indices, time: Indices) -> Indices:
        """For each thread and time, give the row of the innermost range that is open then, else -1.

        A range is open from its start to its end, both included: what is done last is still within.
        """
        if not len(self.start):
            return np.full(len(time), -1, dtype=np.int64)
        keys, base, width = _keys(self.thread, self.start, time)
        row = np.searchsorted(keys, _key(thread, time, base, width), side="right") - 1
        known = row >= 0
        known[known] = self.thread[row[known]] == thread[known]
        row = np.where(known, row, -1)
        while len(closed := np.flatnonzero((row >= 0) & (self.end[row] < time))):
            row[closed] = self.parent[row[closed]]
        return row

    def nearest(self, rows: NDArray[np.bool_]) -> Indices:
        """For each range, give the nearest row of `rows` at or around it, else -1."""
        found = np.where(rows, np.arange(len(rows)), -1)
        for depth in range(1, int(self.depth.max(initial=0)) + 1):
            here = np.flatnonzero((self.depth == depth) & (found < 0))
            found[here] = found[self.parent[here]]
        return found


def order(thread: Indices, start: Indices, end: Indices) -> Indices:
    """Give the order in which `nest` wants its ranges: by thread, start, and the longer first."""
    return np.lexsort((-end, start, thread))


def nest(thread: Indices, start: Indices, end: Indices) -> tuple[Nest, Indices]:
    """Find how ranges, ordered as by `order`, nest; also give the rows of those that cross another.

    Those that cross are in the result as if they were closed in the order in which they were opened.
    """
    count = len(start)
    rows = np.arange(count)
    # All beginnings and ends in time; at one time what ends does so before what begins, and the inner first.
    times = np.concatenate([start, end])
    opens = np.concatenate([np.ones(count, np.int8), np.zeros(count, np.int8)])
    opens[count:][start == end] = 2 * _OPEN  # what has no length closes after it has opened
    tie = np.concatenate([rows, -rows])
    events = np.lexsort((tie, opens, times, np.concatenate([thread, thread])))
    is_open = events < count
    level = np.cumsum(np.where(is_open, 1, -1))
    depth = np.empty(count, dtype=np.int64)
    depth[events[is_open]] = level[is_open] - 1
    crossing = _crossing(events, is_open, level, count)
    parent = np.full(count, -1, dtype=np.int64)
    for inner in range(1, int(depth.max(initial=0)) + 1):
        children, around = np.flatnonzero(depth == inner), np.flatnonzero(depth == inner - 1)
        parent[children] = around[np.searchsorted(around, children) - 1]
    return Nest(thread, start, end, parent, depth), crossing


def _crossing(events: Indices, is_open: NDArray[np.bool_], level: Indices, count: int) -> Indices:
    """Give the ranges whose end closes a level that another had opened."""
    at_level = np.where(is_open, level - 1, level)
    by_level = np.argsort(at_level, kind="stable")
    opened, closed = events[by_level][0::2], events[by_level][1::2] - count
    return np.unique(closed[opened != closed])


def _keys(thread: Indices, start: Indices, time: Indices) -> tuple[Indices, int, int]:
    base = int(min(start.min(), time.min(initial=start.min())))
    width = int(max(start.max(), time.max(initial=start.max()))) - base + 1
    return _key(thread, start, base, width), base, width


def _key(thread: Indices, time: Indices, base: int, width: int) -> Indices:
    return thread * width + (time - base)
