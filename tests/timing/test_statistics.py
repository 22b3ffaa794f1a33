"""Summaries and ratios, against numpy and against what is known of the spread between runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jupyterlab_jaxprof.captures.samples import BINS, ratio, summarize
from jupyterlab_jaxprof.timing.spans import covered_ns, within, without


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 1001])
def test_quantiles_are_numpys(count):
    samples = list(np.random.default_rng(count).lognormal(size=count))
    summary = summarize(samples)
    expected = np.quantile(samples, [0, 0.2, 0.25, 0.5, 0.75, 1])
    found = [
        summary.minimum, summary.p20, summary.lower_quartile, summary.median, summary.upper_quartile,
        summary.maximum,
    ]  # fmt: skip
    assert found == pytest.approx(list(expected))
    assert summary.count == count


def test_histogram_counts_every_sample_once():
    samples = [*np.random.default_rng(0).normal(10, 1, 500), 1000.0]
    histogram = summarize(samples).histogram
    assert sum(histogram.counts) + histogram.beyond == len(samples)
    assert histogram.beyond == 1  # the straggler does not flatten the picture
    assert len(histogram.counts) == BINS == len(histogram.edges) - 1
    below = np.histogram([s for s in samples if s <= histogram.edges[-1]], bins=np.array(histogram.edges))[0]
    assert list(histogram.counts) == list(below)


@pytest.mark.parametrize("samples", [[3.0] * 9, [3.0], [3.0] * 9 + [4.0]])
def test_equal_samples_have_a_histogram_too(samples):
    histogram = summarize(samples).histogram
    assert sum(histogram.counts) + histogram.beyond == len(samples)


def test_drift_is_told_and_order_matters():
    steady = [1.0, 1.01, 0.99] * 10
    assert summarize(steady).warnings() == []
    slower = [1.0] * 15 + [1.2] * 15
    summary = summarize(slower)
    assert summary.drift == pytest.approx(0.2)
    assert "20% slower" in summary.warnings()[0]
    assert "faster" in summarize(slower[::-1]).warnings()[0]


def test_few_samples_and_wide_spread_are_told():
    assert "Only 1 sample" in summarize([1.0]).warnings()[0]
    wide = [1.0, 2.0, 4.0, 1.0, 2.0, 4.0] * 5
    assert any("spread widely" in warning for warning in summarize(wide).warnings())


def test_no_samples_is_an_error():
    with pytest.raises(ValueError, match="no samples"):
        summarize([])


def test_ratio_covers_the_truth_as_often_as_it_should():
    rng = random.Random(1)

    def run(center):
        shift = rng.gauss(1, 0.015)  # what differs between two runs of one thing
        return summarize([center * shift * rng.gauss(1, 0.05) for _ in range(60)])

    covered = sum(r.low <= 2 <= r.high for r in (ratio(run(2.0), run(1.0)) for _ in range(200)) if r)
    assert covered >= 180
    found = ratio(run(2.0), run(1.0))
    assert found is not None
    assert found.differs


def test_the_same_thing_twice_does_not_differ():
    samples = [1 + 0.01 * (n % 7) for n in range(60)]
    found = ratio(summarize(samples), summarize([s * 1.02 for s in samples]))
    assert found is not None
    assert not found.differs


def test_few_samples_have_no_range_and_wide_ones_a_wide_one():
    few = ratio(summarize([1.0] * 9), summarize([2.0] * 60))
    assert few is not None
    assert (few.value, few.low, few.high, few.differs) == (0.5, None, None, False)
    rng = random.Random(3)

    def run(count):
        return summarize([rng.gauss(1, 0.2) for _ in range(count)])

    for count in (10, 12, 30):  # what the spread of the samples alone does, however few they are
        held = [found.low <= 1 <= found.high for _ in range(200) if (found := ratio(run(count), run(count)))]
        assert sum(held) >= 0.9 * len(held)


def test_no_time_has_no_ratio():
    assert ratio(summarize([1.0]), summarize([0.0])) is None


def test_spans_are_covered_once():
    assert covered_ns([(0, 10), (5, 15), (20, 30), (22, 25)]) == 25
    assert covered_ns([]) == 0
    assert without((0, 10), [(2, 4), (3, 5), (9, 20)]) == [(0, 2), (5, 9)]
    assert without((0, 10), [(-5, 20)]) == []
    assert without((0, 10), []) == [(0, 10)]
    assert within([(0, 10), (20, 30), (40, 50)], (5, 25)) == [(5, 10), (20, 25)]


def test_spans_on_random_input_agree_with_counting():
    rng = random.Random(2)
    for _ in range(200):
        spans = [(a, a + rng.randrange(8)) for a in (rng.randrange(40) for _ in range(rng.randrange(8)))]
        ticks = {tick for began, ended in spans for tick in range(began, ended)}
        assert covered_ns(spans) == len(ticks)
        left = {tick for began, ended in without((5, 30), spans) for tick in range(began, ended)}
        assert left == set(range(5, 30)) - ticks
