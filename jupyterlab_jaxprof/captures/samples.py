"""What repeated measurements of one thing say: a summary of the samples, and the ratio of two summaries.

No confidence interval is computed from one run's samples: samples of one run drift together, and such an
interval held the true median in as few as 4 of 20 runs. Results are compared by their 20th percentiles, which
between runs vary least over operations of all sizes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

#: How much the 20th percentile varies between runs (standard deviation, relative), at most: measured over 20
#: runs of 60 samples, from a tiny operation (0.6 to 2.3 %) to a 700x700 matrix product (0.5 to 2.1 %).
P20_SPREAD = 0.023
#: Halves of a run whose medians differ by more than this tell that the machine was not steady.
HALVES_DIFFER = 0.05
#: Below this many samples, quartiles say little.
FEW_SAMPLES = 5
#: Below this many samples in either of two runs, no range is given to their ratio.
LEAST_COMPARED = 10
#: The standard error of the 20th percentile of independent samples, in interquartile ranges over the root of
#: their number: sqrt(0.2 * 0.8) / 0.280 (the normal density there), at 1.349 standard deviations a range.
_P20_ERROR = 1.06
BINS = 20


@dataclass(frozen=True)
class Histogram:
    """How many samples fall between neighbouring edges; what lies above the last edge is in `beyond`."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    beyond: int


@dataclass(frozen=True)
class Summary:
    """Samples of one run, in their own unit."""

    count: int
    minimum: float
    p20: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    halves: tuple[float, float] | None
    histogram: Histogram

    @property
    def interquartile_range(self) -> float:
        """How far apart the quartiles are."""
        return self.upper_quartile - self.lower_quartile

    @property
    def drift(self) -> float | None:
        """By how much the second half's median lies above the first's, relative; None with few samples."""
        if self.halves is None or self.halves[0] <= 0:
            return None
        return self.halves[1] / self.halves[0] - 1

    @property
    def _spreads_widely(self) -> bool:
        return self.median > 0 and self.interquartile_range > self.median / 2

    def warnings(self) -> list[str]:
        """Sentences about what makes the samples doubtful."""
        found: list[str] = []
        if self.count < FEW_SAMPLES:
            samples = "1 sample" if self.count == 1 else f"{self.count} samples"
            found.append(f"Only {samples}: the spread can't be told. Ask for more repeats.")
        drift = self.drift
        if drift is not None and abs(drift) > HALVES_DIFFER:
            direction = "slower" if drift > 0 else "faster"
            found.append(
                f"The second half of the repeats was {abs(drift):.0%} {direction} than the first: the "
                "machine was not steady (other work, clock rates, warming up). Run it again before comparing."
            )
        if self._spreads_widely:
            found.append(
                "The samples spread widely (the interquartile range is over half of the median): compare by "
                "the minimum or the 20th percentile."
            )
        return found

    def doubts(self) -> list[str]:
        """Say in a few words each what `warnings` says in sentences, for a row of many."""
        found: list[str] = []
        if self.count < FEW_SAMPLES:
            found.append("1 sample" if self.count == 1 else f"{self.count} samples")
        drift = self.drift
        if drift is not None and abs(drift) > HALVES_DIFFER:
            found.append(f"second half {abs(drift):.0%} {'slower' if drift > 0 else 'faster'}")
        if self._spreads_widely:
            found.append("wide spread")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self) | {"interquartile_range": self.interquartile_range, "drift": self.drift}


def summarize(samples: Sequence[float]) -> Summary:
    """Summarize samples, in the order in which they were taken. Raises ValueError when there is none."""
    if not samples:
        raise ValueError("There are no samples to summarize.")
    ordered = sorted(float(sample) for sample in samples)
    half = len(samples) // 2
    halves = (
        (statistics.median(samples[:half]), statistics.median(samples[-half:]))
        if half >= FEW_SAMPLES
        else None
    )
    return Summary(
        count=len(ordered),
        minimum=ordered[0],
        p20=quantile(ordered, 0.2),
        lower_quartile=quantile(ordered, 0.25),
        median=quantile(ordered, 0.5),
        upper_quartile=quantile(ordered, 0.75),
        maximum=ordered[-1],
        halves=halves,
        histogram=_histogram(ordered),
    )


def summary_from(data: Mapping[str, Any]) -> Summary | None:
    """Read back what `Summary.to_dict` gave, perhaps from a file; None where something is missing."""
    names = [field.name for field in fields(Summary) if field.name not in ("halves", "histogram")]
    values = {name: data.get(name) for name in names}
    if any(value is None for value in values.values()):
        return None
    histogram: Mapping[str, Any] = data.get("histogram") or {}
    halves = data.get("halves")
    return Summary(
        **cast("Any", values),
        halves=(halves[0], halves[1]) if halves and len(halves) == 2 and None not in halves else None,
        histogram=Histogram(
            tuple(histogram.get("edges") or ()),
            tuple(histogram.get("counts") or ()),
            histogram.get("beyond") or 0,
        ),
    )


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """Give a quantile of ascending values, interpolated between neighbours (as numpy does by default)."""
    position = fraction * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _histogram(ordered: Sequence[float]) -> Histogram:
    """Count in equal bins, up to where stragglers (beyond 5 interquartile ranges) would flatten it."""
    low = ordered[0]
    upper = quantile(ordered, 0.75)
    top = min(ordered[-1], upper + 5 * (upper - quantile(ordered, 0.25))) if upper > low else ordered[-1]
    if top <= low:
        return Histogram(
            (low, low), (sum(value <= low for value in ordered),), sum(value > low for value in ordered)
        )
    width = (top - low) / BINS
    counts = [0] * BINS
    inside = [value for value in ordered if value <= top]
    for value in inside:
        counts[min(int((value - low) / width), BINS - 1)] += 1
    edges = (*(low + width * number for number in range(BINS)), top)
    return Histogram(edges, tuple(counts), len(ordered) - len(inside))


@dataclass(frozen=True)
class Ratio:
    """How many times as long one thing takes as another; the truth most likely lies from `low` to `high`.

    Both are None where there were too few runs to tell.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def differs(self) -> bool:
        """Whether the two differ by more than the same thing does between runs."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self) | {"differs": self.differs}


def ratio(one: Summary, other: Summary) -> Ratio | None:
    """Compare two runs by their 20th percentiles; None where one of them took no time that could be measured.

    The uncertainty is two standard deviations of the ratio, from how much the 20th percentile of the same
    thing varies between runs, or from the drift within these runs where that was worse, and from how far the
    samples of these runs lie apart. With fewer than `LEAST_COMPARED` samples in one of them it is not known.
    """
    if one.p20 <= 0 or other.p20 <= 0:
        return None
    value = one.p20 / other.p20
    if min(one.count, other.count) < LEAST_COMPARED:
        return Ratio(value, None, None)
    factor = math.exp(2 * math.hypot(_p20_spread(one), _p20_spread(other)))
    return Ratio(value, value / factor, value * factor)


def _p20_spread(summary: Summary) -> float:
    """Give the relative standard deviation of a run's 20th percentile."""
    between = max(P20_SPREAD, abs(summary.drift or 0.0) / 2)
    independent = min(summary.count, LEAST_COMPARED)  # more of one run's drift together: it tells no more
    within = _P20_ERROR * summary.interquartile_range / math.sqrt(independent) / summary.p20
    return math.hypot(between, within)
