"""Numbers as people read them: times, sizes, counts and percentages, to three significant digits."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TypeGuard

_NONE = "–"
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
#: Numbers from here on are written with an exponent.
_UNCOUNTED = 1e9
_MINUTE_S, _HOUR_S = 60, 3600


def duration(milliseconds: float | None) -> str:
    """Write a time given in milliseconds: '850 ns', '12.3 µs', '4.50 ms', '3 min 20 s', '2 h 5 min'."""
    if not _finite(milliseconds):
        return _NONE
    sign = "-" if milliseconds < 0 else ""
    value = abs(float(milliseconds))
    if value == 0:
        return "0 ms"
    for factor, unit, limit in ((1e6, "ns", 1e3), (1e3, "µs", 1e3), (1.0, "ms", 1e3), (1e-3, "s", 60.0)):
        if _rounded(value * factor) < limit:
            return f"{sign}{_digits(value * factor)} {unit}"
    seconds = round(value / 1000)
    if seconds < _HOUR_S:
        return sign + _two(seconds // _MINUTE_S, "min", seconds % _MINUTE_S, "s")
    minutes = round(value / 60_000)
    if minutes < 48 * 60:
        return sign + _two(minutes // 60, "h", minutes % 60, "min")
    return sign + _two(minutes // 1440, "d", minutes % 1440 // 60, "h")


def size(number_of_bytes: float | None) -> str:
    """Write a number of bytes, in powers of 1,000: '0 B', '999 B', '1.50 kB', '2.15 GB'."""
    if not _finite(number_of_bytes):
        return _NONE
    sign = "-" if number_of_bytes < 0 else ""
    value = abs(float(number_of_bytes))
    if value < 1000:
        return f"{sign}{value:.0f} B"
    for unit in _SIZES[1:]:
        value /= 1000
        if _rounded(value) < 1000 or unit == _SIZES[-1]:
            return f"{sign}{_digits(value)} {unit}"
    raise AssertionError("the last unit takes every size")


def count(number: float | None, noun: str = "", plural: str = "") -> str:
    """Write a number with thousands set apart, and its noun: '1 step', '1,000,000 steps', '2 indices'."""
    if not _finite(number):
        return _NONE
    if abs(number) >= _UNCOUNTED**2:
        return f"{rate(number)} {plural or noun + 's'}" if noun else rate(number)
    is_whole = float(number).is_integer() or _rounded(abs(number)) >= 1000
    written = f"{number:,.0f}" if is_whole else f"{number:.3g}"
    if not noun:
        return written
    return f"{written} {noun if number == 1 else plural or noun + 's'}"


def rate(number: float | None) -> str:
    """Write how many a second, to three digits: '81,200', '0.25', '3.83e12' where nobody counts digits."""
    if not _finite(number):
        return _NONE
    if abs(number) >= _UNCOUNTED:
        mantissa, _, exponent = f"{number:.2e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{_rounded(number):,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def factor(ratio: float | None) -> str:
    """Write how many times as much, to three digits and without an exponent: '14,600', '3.99', '< 0.0001'."""
    if not _finite(ratio):
        return _NONE
    return "< 0.0001" if 0 < ratio < 1e-4 else rate(ratio)


def percent(value: float | None) -> str:
    """Write a percentage: '0 %', '0.35 %', '92 %', '100 %'; never '100 %' for less, or '0 %' for more."""
    if not _finite(value):
        return _NONE
    if 0 < abs(value) < 10:
        return f"{value:.2g} %" if abs(value) >= 0.01 else "< 0.01 %"
    if 99 < value < 100:
        return f"{math.floor(value * 10 + 1e-9) / 10:g} %"
    return f"{value:.0f} %"


def quantity(value: float | None, unit: str) -> str:
    """Write a value with a record's unit: `ms`, `us`, `ns`, `s`, `bytes`, `percent`, a rate or any other."""
    to_ms = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
    if unit in to_ms:
        return duration(value * to_ms[unit] if value is not None else None)
    if unit == "bytes":
        return size(value)
    if unit == "percent":
        return percent(value)
    is_huge = unit.endswith("/s") and _finite(value) and abs(value) >= _UNCOUNTED
    return f"{rate(value) if is_huge else count(value)} {unit}".strip()


def instant(milliseconds: float | None, window_ms: float) -> str:
    """Write a point in time so that a thousandth of the window can be told: '1,204.35 ms', '0.4 ms'."""
    if not _finite(milliseconds):
        return _NONE
    fine = math.isfinite(window_ms) and window_ms > 0
    decimals = min(max(3 - math.ceil(math.log10(window_ms)), 0), 6) if fine else 3
    return f"{milliseconds:,.{decimals}f} ms"


def share(fraction: float | None) -> str:
    """Write a fraction of 1 as a percentage."""
    return percent(fraction * 100 if fraction is not None else None)


def moment(created: str) -> str:
    """Write an ISO 8601 time (UTC where it names no zone): '2026-11-30 09:41 UTC'; '–' when it is none."""
    try:
        parsed = datetime.fromisoformat(created)
    except ValueError:
        return _NONE
    parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    return f"{parsed:%Y-%m-%d %H:%M} UTC"


def _finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _digits(value: float) -> str:
    """Write three significant digits of a value below 1,000, without an exponent."""
    value = _rounded(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit}" + (f" {small} {small_unit}" if small else "")
