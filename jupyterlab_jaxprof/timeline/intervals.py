"""Sets of time intervals: union, gaps, overlap, and how much of each range they cover; all in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .model import Floats


@dataclass(frozen=True)
class Intervals:
    """Disjoint half-open intervals in ascending order, none empty; what touches is one interval.

    Make them with `union` or `union_of`, which bring anything into this form.
    """

    start_ns: Floats
    end_ns: Floats

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def lengths_ns(self) -> Floats:
        """How long each is."""
        return self.end_ns - self.start_ns

    @property
    def total_ns(self) -> float:
        """How long they are together."""
        return float(self.lengths_ns.sum())

    def __or__(self, other: Intervals) -> Intervals:
        """Give the time that is in either."""
        return union(
            np.concatenate([self.start_ns, other.start_ns]), np.concatenate([self.end_ns, other.end_ns])
        )

    def __and__(self, other: Intervals) -> Intervals:
        """Give the time that is in both."""
        first = np.searchsorted(other.end_ns, self.start_ns, side="right")
        last = np.searchsorted(other.start_ns, self.end_ns, side="left")
        counts = np.maximum(last - first, 0)
        own = np.repeat(np.arange(len(self)), counts)
        # The others that meet interval i are first[i], first[i] + 1, ...
        others = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first, counts)
        return Intervals(
            np.maximum(self.start_ns[own], other.start_ns[others]),
            np.minimum(self.end_ns[own], other.end_ns[others]),
        )

    def __sub__(self, other: Intervals) -> Intervals:
        """Give the time that is in this and not in the other."""
        if not len(self):
            return self
        return self & other.gaps(float(self.start_ns[0]), float(self.end_ns[-1]))

    def clip(self, start_ns: float, end_ns: float) -> Intervals:
        """Give what lies within a window."""
        starts, ends = np.maximum(self.start_ns, start_ns), np.minimum(self.end_ns, end_ns)
        inside = starts < ends
        return Intervals(starts[inside], ends[inside])

    def gaps(self, start_ns: float, end_ns: float) -> Intervals:
        """Give the time of a window that is in none of them."""
        inside = self.clip(start_ns, end_ns)
        starts = np.concatenate([[start_ns], inside.end_ns])
        ends = np.concatenate([inside.start_ns, [end_ns]])
        empty = starts >= ends
        return Intervals(starts[~empty], ends[~empty])

    def before(self, time_ns: ArrayLike) -> Floats:
        """For each time, how much of them lies before it."""
        times = np.asarray(time_ns, dtype=np.float64)
        if not len(self):
            return np.zeros(times.shape)
        lengths = self.lengths_ns
        index = np.searchsorted(self.start_ns, times, side="right") - 1
        known = np.maximum(index, 0)
        within = np.minimum(times - self.start_ns[known], lengths[known])
        return np.where(index < 0, 0.0, np.cumsum(lengths)[known] - lengths[known] + within)

    def covered(self, start_ns: ArrayLike, end_ns: ArrayLike) -> Floats:
        """For each range, how much of it they cover (the device's busy time of each step, say)."""
        return self.before(end_ns) - self.before(start_ns)

    def contain(self, time_ns: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """For each time, whether it is in one of them."""
        times = np.asarray(time_ns, dtype=np.float64)
        if not len(self):
            return np.zeros(times.shape, dtype=np.bool_)
        index = np.searchsorted(self.start_ns, times, side="right") - 1
        return (index >= 0) & (times < self.end_ns[np.maximum(index, 0)])


def union(start_ns: ArrayLike, end_ns: ArrayLike) -> Intervals:
    """Unite ranges in any order, overlapping or not; empty ones are left out."""
    starts, ends = np.asarray(start_ns, dtype=np.float64), np.asarray(end_ns, dtype=np.float64)
    real = starts < ends
    starts, ends = starts[real], ends[real]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    begins = np.ones(len(starts), dtype=np.bool_)
    begins[1:] = starts[1:] > reached[:-1]
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:] - 1, len(starts) - 1) if len(firsts) else firsts
    return Intervals(starts[firsts], reached[lasts])


def union_of(start_ns: ArrayLike, duration_ns: ArrayLike) -> Intervals:
    """Unite ranges given by start and duration, as the timeline's columns are."""
    starts = np.asarray(start_ns, dtype=np.float64)
    return union(starts, starts + np.asarray(duration_ns, dtype=np.float64))


NONE = Intervals(np.zeros(0), np.zeros(0))


def united(sets: Sequence[Intervals]) -> Intervals:
    """Unite any number of sets."""
    if len(sets) <= 1:
        return sets[0] if sets else NONE
    return union(np.concatenate([s.start_ns for s in sets]), np.concatenate([s.end_ns for s in sets]))
