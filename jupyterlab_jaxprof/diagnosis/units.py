"""Numbers in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable


def milliseconds(time_ns: float) -> str:
    """Give a time: `0.034 ms`, `2.43 ms`, `515 ms`, `3.75 s`."""
    value = time_ns / 1e6
    if value >= 999.5:
        return f"{_digits(value / 1e3)} s"
    return f"{_digits(value)} ms" if value >= 1 else f"{value:.2g} ms"


def _digits(value: float) -> str:
    """Three digits of a number from 1 on; all before the point of a larger one."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def microseconds(time_ns: float) -> str:
    """Give a short time: `0.9 us`, `31 us`."""
    value = time_ns / 1e3
    return f"{value:.1f} us" if value < 10 else f"{value:,.0f} us"


def percent(share: float) -> str:
    """Give a share: `92 %`, `2.5 %`, `99.7 %`; never `100 %` of less, or `0 %` of more.

    The cards round likewise (`cards.units.percent`): one figure must not be two on one card.
    """
    value = 100 * share
    if 0 < value < 10:
        return f"{value:.2g} %" if value >= 0.05 else "under 0.1 %"
    if 99 < value < 100:
        return f"{math.floor(value * 10 + 1e-9) / 10:g} %"
    return f"{value:.0f} %"


def size(size_bytes: float) -> str:
    """Give a size in the units that memory is counted in: `4 B`, `1.2 MiB`, `128 MiB`."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            value = size_bytes / factor
            return f"{value:.0f} {unit}" if value >= 10 or value == round(value) else f"{value:.1f} {unit}"
    return f"{size_bytes:.0f} B"


def names(texts: Iterable[str], most: int = 3) -> str:
    """List names as code: `` `a`, `b` and 3 more ``."""
    every = list(texts)
    # 'and 1 more' would be as long as the name
    shown = [f"`{text}`" for text in (every if len(every) == most + 1 else every[:most])]
    if len(every) > len(shown):
        return f"{', '.join(shown)} and {len(every) - len(shown)} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def count(number: int | float, noun: str, plural: str = "") -> str:
    """Give a number with its noun: `1 step`, `1,250 kernels`, `2.5 copies` of `copy` and `copies`."""
    shown = f"{number:,.0f}" if number == int(number) or number >= 10 else f"{number:.1f}"
    return f"{shown} {noun}" if shown == "1" else f"{shown} {plural or noun + 's'}"
