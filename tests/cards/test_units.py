"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from jupyterlab_jaxprof.cards import units


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"), (1e-9, "0.00 ns"), (0.000_85, "850 ns"), (0.000_999_6, "1.00 µs"), (0.0123, "12.3 µs"),
        (0.9996, "1.00 ms"), (0.9994, "999 µs"), (4.5, "4.50 ms"), (999.4, "999 ms"), (999.6, "1.00 s"),
        (59_940, "59.9 s"), (59_960, "1 min"), (200_000, "3 min 20 s"), (3_599_600, "1 h"),
        (7_500_000, "2 h 5 min"), (200_000_000, "2 d 7 h"), (-4.5, "-4.50 ms"), (7, "7.00 ms"),
        (None, "–"), (math.nan, "–"), (math.inf, "–"),
    ],
)  # fmt: skip
def test_duration(milliseconds: float | None, text: str) -> None:
    assert units.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("number_of_bytes", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
        (2_147_483_648, "2.15 GB"), (123_456_789_012, "123 GB"), (10**21, "1000000 PB"), (-1500, "-1.50 kB"),
        (None, "–"),
    ],
)  # fmt: skip
def test_size(number_of_bytes: float | None, text: str) -> None:
    assert units.size(number_of_bytes) == text


def test_count() -> None:
    assert units.count(1, "step") == "1 step"
    assert units.count(0, "step") == "0 steps"
    assert units.count(1_000_000, "step") == "1,000,000 steps"
    assert units.count(2, "index", "indices") == "2 indices"
    assert units.count(2.5) == "2.5"
    assert units.count(None, "step") == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"), (0.004, "< 0.01 %"), (0.35, "0.35 %"), (9.96, "10 %"), (92.4, "92 %"), (99.97, "99.9 %"),
        (100, "100 %"), (250, "250 %"), (None, "–"),
    ],
)  # fmt: skip
def test_percent(value: float | None, text: str) -> None:
    assert units.percent(value) == text


def test_shares_of_whole_tenths_are_written_as_they_are() -> None:
    for tenths in range(991, 1000):
        assert units.share(tenths / 1000) == f"{tenths / 10:.1f} %".replace(".0", "")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "ms", "1.50 ms"), (12.0, "us", "12.0 µs"), (3, "ns", "3.00 ns"), (2, "s", "2.00 s"),
        (1e6, "bytes", "1.00 MB"), (50, "percent", "50 %"), (1234, "examples/s", "1,234 examples/s"),
        (3.83e12, "n/s", "3.83e12 n/s"), (1e300, "n/s", "1.00e300 n/s"), (1e300, "n", "1.00e300 n"),
        (1.23456, "", "1.23"), (None, "ms", "–"), (None, "x", "– x"),
    ],
)  # fmt: skip
def test_quantity(value: float | None, unit: str, text: str) -> None:
    assert units.quantity(value, unit) == text


def test_moment() -> None:
    assert units.moment("2026-11-30T09:41:02.123Z") == "2026-11-30 09:41 UTC"
    assert units.moment("2026-11-30T09:41:02+02:00") == "2026-11-30 07:41 UTC"
    assert units.moment("") == "–"
