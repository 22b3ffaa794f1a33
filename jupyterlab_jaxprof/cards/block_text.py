"""Blocks of a card as lines of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from .blocks import Block, Chart, Comparison, Figures, Remark, Row, Shares, Table
from .printable import MAX_CELL, printable

_WIDTH = 100
_BAR = 40
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_FILLS = "░▒▓▚█"


def lines_of(block: Block) -> list[str]:
    """Write one block; nothing in it commands a terminal."""
    match block:
        case Figures():
            figures = [f"{label} {value}" for label, value in block.figures]
            return [printable(block.title), *_wrapped(", ".join(figures))]
        case Shares():
            return [printable(block.title), *_shares(block)]
        case Chart():
            bars = "".join(_HEIGHTS[-(-int(fraction * 1000) * 8 // 1000)] for fraction, _ in block.bars)
            return [printable(f"  {block.low} {bars} {block.high}")]
        case Comparison():
            return [printable(block.title), *_comparison(block)]
        case Table():
            return [printable(block.title), *_table(block)]
        case Remark():
            return _wrapped(block.text)


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        printable(text), _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _shares(block: Shares) -> list[str]:
    bar = "".join(
        _FILLS[share.tone % len(_FILLS)] * max(round(share.fraction * _BAR), 1) for share in block.shares
    )
    legend = [f"{_FILLS[share.tone % len(_FILLS)]} {share.label} {share.value}" for share in block.shares]
    return [f"  {bar}", *_wrapped(", ".join(legend))]


def _comparison(block: Comparison) -> list[str]:
    lines: list[str] = []
    labels = _padded([row[0] for row in block.rows])
    values = _padded([row[1] for row in block.rows], right=True)
    for label, value, (_, _, fraction, remark) in zip(labels, values, block.rows, strict=True):
        lines.append(f"  {label}  {value}  {'█' * max(round(fraction * _BAR), 1)}")
        lines += _wrapped(remark, "      ") if remark else []
    return lines


def _table(block: Table) -> list[str]:
    columns = [
        _padded([title, *(row.cells[number] for row in block.rows)], right=number > 0)
        for number, title in enumerate(block.columns)
    ]
    head, *rows = (f"  {'  '.join(cells)}".rstrip() for cells in zip(*columns, strict=True))
    lines = [head]
    for line, row in zip(rows, block.rows, strict=True):
        lines += [line, *_note(row)]
    return lines + ([f"  {printable(block.more)}"] if block.more else [])


def _note(row: Row) -> list[str]:
    return _wrapped(row.note, "      ") if row.note else []


def _padded(texts: Sequence[str], *, right: bool = False) -> list[str]:
    shown = [printable(text, MAX_CELL) for text in texts]
    width = max((len(text) for text in shown), default=0)
    return [text.rjust(width) if right else text.ljust(width) for text in shown]
