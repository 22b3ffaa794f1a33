"""Sets of intervals against counting by single nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union, union_of

SPAN = 80


def cells(intervals: Intervals) -> np.ndarray:
    """Which nanoseconds they hold; they must be in order, apart and not empty."""
    held = np.zeros(SPAN, dtype=bool)
    last = -1.0
    for start, end in zip(intervals.start_ns, intervals.end_ns, strict=True):
        assert last < start < end
        held[int(start) : int(end)] = True
        last = end
    return held


@pytest.fixture(params=range(60))
def ranges(request):
    """Two sets of random ranges, united and by the nanosecond."""
    random = np.random.default_rng(request.param)
    made = []
    for _ in range(2):
        starts = random.integers(0, 60, random.integers(0, 9))
        durations = random.integers(0, 9, len(starts))
        held = np.zeros(SPAN, dtype=bool)
        for start, duration in zip(starts, durations, strict=True):
            held[start : start + duration] = True
        made.append((union_of(starts, durations), held))
    return made


def test_sets_are_united_met_and_taken_away(ranges):
    (a, in_a), (b, in_b) = ranges
    assert (cells(a) == in_a).all()
    assert (cells(a | b) == (in_a | in_b)).all()
    assert (cells(a & b) == (in_a & in_b)).all()
    assert (cells(a - b) == (in_a & ~in_b)).all()
    assert a.total_ns == in_a.sum()


def test_gaps_and_clipping_keep_to_the_window(ranges):
    (a, in_a), _ = ranges
    window = np.zeros(SPAN, dtype=bool)
    window[10:50] = True
    assert (cells(a.gaps(10, 50)) == (~in_a & window)).all()
    assert (cells(a.clip(10, 50)) == (in_a & window)).all()


def test_what_ranges_hold_of_a_set(ranges):
    (a, in_a), _ = ranges
    starts = np.arange(70)
    ends = starts + 7
    assert a.covered(starts, ends).tolist() == [in_a[s:e].sum() for s, e in zip(starts, ends, strict=True)]
    assert a.contain(np.arange(SPAN)).tolist() == in_a.tolist()


def test_nothing():
    assert len(NONE) == NONE.total_ns == 0
    assert len(union([5.0], [5.0])) == 0
    assert NONE.covered([0.0], [9.0]).tolist() == [0.0]
    gaps = NONE.gaps(1, 4)
    assert (gaps.start_ns.tolist(), gaps.end_ns.tolist()) == ([1], [4])
