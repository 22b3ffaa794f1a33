"""Blocks of a card as lines of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from . import curve, drawing_text
from .blocks import (
    Block,
    Chart,
    Comparison,
    Curve,
    Details,
    Download,
    Drawing,
    Figures,
    Finding,
    Findings,
    Level,
    Remark,
    Shares,
    Table,
)
from .paper import PLAIN, Ink, Paper
from .printable import MAX_CELL, printable

MAX_DETAILS = 5
"""Rows that are shown of a table which HTML shows only when it is opened."""

_BAR = 40
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_FILLS = "░▒▓▚█·"
_LEAST_CELL = 12
_LEVELS: dict[Level, tuple[str, Ink]] = {
    "problem": ("!", "problem"),
    "note": ("·", "dim"),
    "fine": ("✓", "fine"),
}


def lines_of(block: Block, paper: Paper = PLAIN) -> list[str]:
    """Write one block; nothing in it commands a terminal but the paper's own colours."""
    match block:
        case Figures():
            figures = [f"{label} {value}" for label, value in block.figures]
            return [*_heading(block.title, paper), *_wrapped(", ".join(figures), paper)]
        case Shares():
            return [*_heading(block.title, paper), *_shares(block, paper)]
        case Chart():
            bars = "".join(_HEIGHTS[-(-int(fraction * 1000) * 8 // 1000)] for fraction, _ in block.bars)
            return [printable(f"  {block.low} {bars} {block.high}")]
        case Comparison():
            return [*_heading(block.title, paper), *_comparison(block, paper)]
        case Table():
            return [*_heading(block.title, paper), *_table(block, paper)]
        case Remark():
            return _wrapped(block.text, paper)
        case Download():
            return []
        case Findings():
            return [*_heading(block.title, paper), *_findings(block, paper)]
        case Drawing():
            return [*_heading(block.title, paper), *drawing_text.lines_of(block, paper)]
        case Details():
            inner = [line for one in block.blocks for line in lines_of(_brief(one), paper)]
            return [*_heading(block.title, paper), *inner]
        case Curve():
            return [*_heading(block.title, paper), *curve.lines_of(block)]


def _heading(title: str, paper: Paper) -> list[str]:
    return [paper.paint(printable(title), "bold")] if title else []


def _wrapped(text: str, paper: Paper, indent: str = "  ", first: str | None = None) -> list[str]:
    return textwrap.wrap(
        printable(text),
        paper.width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _findings(block: Findings, paper: Paper) -> list[str]:
    lines = [line for finding in block.findings for line in _finding(finding, paper)]
    return lines + ([f"  {printable(block.more)}"] if block.more else [])


def _finding(finding: Finding, paper: Paper) -> list[str]:
    mark, ink = _LEVELS[finding.level]
    cost = f"  ({finding.cost})" if finding.cost else ""
    title = _wrapped(finding.title + cost, paper, "    ", f"  {mark} ")
    lines = [paper.paint(line, "bold" if finding.level == "problem" else ink) for line in title]
    for sentence in (*finding.evidence, finding.meaning):
        lines += _wrapped(sentence, paper, "    ") if sentence else []
    more = [finding.document] if finding.document else []
    places = [f"{'; '.join(finding.places)} in the trace"] if finding.places else []
    for label, sentences in (("try:", finding.remedies), ("see:", places), ("more:", more)):
        for number, sentence in enumerate(sentences):
            lines += _wrapped(sentence, paper, "          ", f"    {'' if number else label:<5} ")
    return lines


def _brief(block: Block) -> Block:
    """Leave of a table the rows that a reader wants first."""
    if not isinstance(block, Table) or len(block.rows) <= MAX_DETAILS:
        return block
    return Table(block.title, block.columns, block.rows[:MAX_DETAILS], "…")


def _shares(block: Shares, paper: Paper) -> list[str]:
    bar = "".join(
        _FILLS[share.tone % len(_FILLS)] * max(round(share.fraction * _BAR), 1) for share in block.shares
    )
    legend = [f"{_FILLS[share.tone % len(_FILLS)]} {share.label} {share.value}" for share in block.shares]
    return [f"  {bar}", *_wrapped(" ".join(f"{item};" for item in legend).rstrip(";"), paper)]


def _comparison(block: Comparison, paper: Paper) -> list[str]:
    lines: list[str] = []
    values = _padded([row[1] for row in block.rows], right=True)
    room = max(paper.width - _BAR - len(values[0] if values else "") - 6, _LEAST_CELL)
    labels = _padded([_shortened(row[0], room) for row in block.rows])
    for label, value, (_, _, fraction, remark) in zip(labels, values, block.rows, strict=True):
        lines.append(f"  {label}  {value}  {'█' * max(round(fraction * _BAR), 1)}")
        lines += _wrapped(remark, paper, "      ") if remark else []
    return lines


def _table(block: Table, paper: Paper) -> list[str]:
    numbers = [
        _padded([title, *(row.cells[number] for row in block.rows)], right=True)
        for number, title in enumerate(block.columns)
        if number > 0
    ]
    room = max(paper.width - 2 - sum(len(column[0]) + 2 for column in numbers), _LEAST_CELL)
    names = _padded(
        [_shortened(text, room) for text in (block.columns[0], *(row.cells[0] for row in block.rows))]
    )
    head, *rows = (f"  {'  '.join(cells)}".rstrip() for cells in zip(names, *numbers, strict=True))
    lines = [paper.paint(head, "dim")]
    for line, row in zip(rows, block.rows, strict=True):
        lines += [line, *(_wrapped(row.note, paper, "      ") if row.note else [])]
    return lines + ([f"  {printable(block.more)}"] if block.more else [])


def _shortened(text: str, most: int) -> str:
    """Take out the middle of what is too long: names of kernels differ at both ends."""
    shown = printable(text, MAX_CELL)
    if len(shown) <= most:
        return shown
    head = (most - 1) * 2 // 3
    return f"{shown[:head]}…{shown[len(shown) - (most - 1 - head) :]}"


def _padded(texts: Sequence[str], *, right: bool = False) -> list[str]:
    shown = [printable(text, MAX_CELL) for text in texts]
    width = max((len(text) for text in shown), default=0)
    return [text.rjust(width) if right else text.ljust(width) for text in shown]
