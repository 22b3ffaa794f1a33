"""A timeline's drawing in a terminal's characters: a block's height is how much of its time is taken."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from .blocks import Drawing, Lane
from .paper import Paper
from .printable import printable

_HEIGHTS = "▁▂▃▄▅▆▇█"
_STEP = "|"
_LETTERS = "abcde"
_MAX_LABEL = 24
_MAX_CELLS = 72


def lines_of(drawing: Drawing, paper: Paper) -> list[str]:
    """Write a line for each lane, the axis, and which letter stands for which cause of a gap."""
    labels = [f"{'  ' if lane.is_part else ''}{_shortened(printable(lane.label))}" for lane in drawing.lanes]
    letters = {tone: letter for (_, _, tone), letter in zip(drawing.causes, _LETTERS, strict=False)}
    width = max(map(len, labels))
    cells = max(min(paper.width - width - 14, _MAX_CELLS), 8)
    lines = [
        f"  {label:<{width}}  {_cells(lane, cells, letters)}  {printable(lane.value)}".rstrip()
        for label, lane in zip(labels, drawing.lanes, strict=True)
    ]
    low, high = printable(drawing.low), printable(drawing.high)
    lines.append(f"  {'':<{width}}  {low}{high:>{max(cells - len(low), len(high) + 1)}}")
    indent = " " * (width + 4)
    for cause, value, tone in drawing.causes:
        told = f"{letters[tone]} idle: {printable(cause)}, {printable(value)}"
        lines += textwrap.wrap(
            told, paper.width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
        )
    return lines + ([f"  {printable(drawing.more)}"] if drawing.more else [])


def _cells(lane: Lane, number: int, letters: Mapping[int, str]) -> str:
    if lane.kind == "steps":
        return _starts(lane.spans, number)
    taken = [part * lane.density for part in _taken(lane.spans, number)]
    shown = [
        _HEIGHTS[min(int(part * len(_HEIGHTS)), len(_HEIGHTS) - 1)] if part > 0 else " " for part in taken
    ]
    for gap in lane.gaps:
        for cell in range(int(gap.start * number), min(int(gap.end * number) + 1, number)):
            inside = gap.start <= (cell + 0.5) / number <= gap.end
            shown[cell] = (
                letters.get(gap.tone, _LETTERS[-1]) if shown[cell] == " " and inside else shown[cell]
            )
    return "".join(shown)


def _starts(spans: Sequence[tuple[float, float]], number: int) -> str:
    """Mark where each step begins; the rest of it is a line."""
    shown = [" "] * number
    for start, end in spans:
        for cell in range(int(start * number), min(int(end * number) + 1, number)):
            shown[cell] = "─" if shown[cell] == " " else shown[cell]
    for start, _ in spans:
        shown[min(int(start * number), number - 1)] = _STEP
    return "".join(shown)


def _taken(spans: Sequence[tuple[float, float]], number: int) -> list[float]:
    """Give the fraction of each cell that the spans cover; they do not overlap."""
    taken = [0.0] * number
    for start, end in spans:
        first, last = int(start * number), min(int(end * number), number - 1)
        for cell in range(first, last + 1):
            covered = min(end * number, cell + 1) - max(start * number, cell)
            taken[min(cell, number - 1)] += max(covered, 1e-6)
    return taken


def _shortened(label: str) -> str:
    """Take out the middle of what is too long: devices differ at the end of their names, steps anywhere."""
    if len(label) <= _MAX_LABEL:
        return label
    head = _MAX_LABEL // 2
    return f"{label[:head]}…{label[head + 1 - _MAX_LABEL :]}"
