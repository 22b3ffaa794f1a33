"""A quantity over time, or over values, as columns, with named stretches below them."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from .blocks import Curve
from .printable import printable

_HEIGHTS = " ▁▂▃▄▅▆▇█"
_CELLS = 60


def html(curve: Curve) -> str:
    """Write the columns and the stretches as boxes whose widths are their shares of the time."""
    columns = "".join(
        f'<span style="height:{max(fraction * 100, 3 if fraction else 0):.0f}%" title="{_text(label)}">'
        "</span>"
        for fraction, label in curve.bars
    )
    label = f"{curve.title} from {curve.low} to {curve.high}: {curve.highest}"
    return (
        f'<div class="jx-curve"><div class="jx-ends"><span>{_text(curve.highest)}</span></div>'
        f'<div class="jx-chart" role="img" aria-label="{_text(label)}">{columns}</div>{_stretches(curve)}'
        f'<div class="jx-ends"><span>{_text(curve.low)}</span> <span>{_text(curve.high)}</span></div></div>'
    )


def _stretches(curve: Curve) -> str:
    if not curve.stretches:
        return ""
    boxes: list[str] = []
    reached = 0.0
    for stretch in curve.stretches:
        name = _text(stretch.label)
        boxes.append(f'<span style="width:{(stretch.start - reached) * 100:.2f}%"></span>')
        boxes.append(
            f'<span class="jx-stretch" style="width:{(stretch.end - stretch.start) * 100:.2f}%" '
            f'title="{name}">{name}</span>'
        )
        reached = stretch.end
    return f'<div class="jx-stretches" aria-hidden="true">{"".join(boxes)}</div>'


def lines_of(curve: Curve) -> list[str]:
    """Write the columns as blocks of a terminal's characters, and the stretches as letters below them."""
    shown = _rebinned([fraction for fraction, _ in curve.bars])
    bars = "".join(_HEIGHTS[-(-int(fraction * 1000) * 8 // 1000)] for fraction in shown)
    low, high = printable(curve.low), printable(curve.high)
    lines = [f"  {printable(curve.highest)}", f"  {bars}"]
    if curve.stretches:
        lines.append(f"  {_ruled(curve, len(shown))}".rstrip())
    return [*lines, f"  {low}{high:>{max(len(shown) - len(low), len(high) + 1)}}"]


def _rebinned(fractions: list[float]) -> list[float]:
    """Take the highest of neighbours where a line has no room for all columns; few of them are wide."""
    if not fractions:
        return []
    if len(fractions) <= _CELLS:
        wide = max(_CELLS // 2 // len(fractions), 1)
        return [fraction for fraction in fractions for _ in range(wide)]
    bounds = [number * len(fractions) // _CELLS for number in range(_CELLS + 1)]
    return [max(fractions[low:high]) for low, high in pairwise(bounds)]


def _ruled(curve: Curve, width: int) -> str:
    cells = [" "] * width
    for stretch in curve.stretches:
        first = min(int(stretch.start * width), width - 1)
        last = min(max(int(stretch.end * width), first + 1), width)
        name = printable(stretch.label).replace("In ", "")
        text = name if len(name) <= last - first else ""
        cells[first:last] = text.center(last - first, "─")
    return "".join(cells)


def _text(text: str) -> str:
    return escape(printable(text))
