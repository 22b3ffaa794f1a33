"""Captures side by side as blocks, and by those as text and HTML: a column for each.

Two that both have a timeline are told at length (`compared`), all others in columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from jupyterlab_jaxprof.cards import PLAIN, Paper, findings, units
from jupyterlab_jaxprof.cards.blocks import Block, Details, Remark, Row, Table

from . import compared
from .side_by_side import SideBySide

Data = Mapping[str, Any]

_NOTHING = "–"
_MOST = 12
_GROUPS = {
    "steps": "Steps",
    "parts": "Where the time of a step goes",
    "run": "Runs",
    "memory": "Memory",
    "sweep": "Sweep",
}
_TABLES = {"kernels": "Kernels", "hlo_ops": "HLO operations", "copies": "Copies"}
_ALIKE = "no difference that can be told"


def text(found: SideBySide, paper: Paper = PLAIN) -> str:
    """Write it for a terminal."""
    pair = found.pairs[0]
    if len(found.pairs) == 1 and pair is not None:
        return compared.text(pair, paper)
    return compared.text_of(_title(found), list(blocks(found)), paper)


def html(found: SideBySide) -> str:
    """Write it for a notebook: one element, no script."""
    pair = found.pairs[0]
    if len(found.pairs) == 1 and pair is not None:
        return compared.html(pair)
    return compared.html_of(_title(found), list(blocks(found)))


def blocks(found: SideBySide) -> Iterator[Block]:
    """Give what there is to say, a column for each capture."""
    names = compared.names_of(found.reports)
    for sentence in filter(None, found.shares_nothing):
        yield Remark(sentence)
    for group, rows in groupby(found.measures, lambda row: row["group"]):
        shown = [_measure(row, names) for row in rows]
        yield Table(_GROUPS[group], ["", *names], shown)
    per = "per step" if found.per_step else "in the whole trace"
    if found.findings:
        average = " on average" if found.per_step else ""
        yield Table(
            f"Findings, {per}{average}", ["", *names], [_finding(row, names) for row in found.findings]
        )
    for key, title in _TABLES.items():
        yield from _table(found, key, f"{title}, {per}: what got slower first", names)
    yield from _around(found, names)


def _title(found: SideBySide) -> str:
    baseline, *others = compared.names_of(found.reports)
    return f"{baseline} → {', '.join(others)}"


def _measure(row: Data, names: Sequence[str]) -> Row:
    values = [_NOTHING if value is None else units.quantity(value, row["unit"]) for value in row["values"]]
    told = [
        compared.ratio_told(name, judgement, _ALIKE, unit=row["unit"])
        for name, judgement in zip(names, row["judgements"], strict=True)
        if judgement and judgement["ratio"] is not None
    ]
    return Row([row["label"], *values], "; ".join(told))


def _finding(row: Data, names: Sequence[str]) -> Row:
    titles = [(name, (cell or {}).get("title", "")) for name, cell in zip(names, row["cells"], strict=True)]
    costs = (_cell(cell, once=row["once"]) for cell in row["cells"])
    return Row([row["id"], *costs], compared.titles_told(titles))


def _cell(cell: Data | None, *, once: bool) -> str:
    if cell is None:
        return _NOTHING
    if cell["level"] is None:
        return "can't be told" if cell["state"] == "unknown" else cell["state"] or _NOTHING
    cost = findings.cost({"lost_ms": cell["lost_ms"]}) or str(cell["level"])
    state = f" ({cell['state']})" if cell["state"] == "new" else ""
    return f"{cost}{' in all' if once else ''}{state}"


def _table(found: SideBySide, key: str, title: str, names: Sequence[str]) -> Iterator[Block]:
    rows = [row for row in found.tables[key] if not all(alike in (None, True) for alike in row["alike"])]
    if rows:
        shown = [Row([row["name"], *(units.duration(value) for value in row["ms"])]) for row in rows[:_MOST]]
        more = f"and {len(rows) - _MOST} more" if len(rows) > _MOST else ""
        yield Details(f"{title} ({len(rows)})", [Table("", ["name", *names], shown, more)])


def _around(found: SideBySide, names: Sequence[str]) -> Iterator[Block]:
    for name, pair, listed, cell in zip(
        names[1:], found.pairs, found.differences[1:], found.cells[1:], strict=True
    ):
        if pair is not None and pair.not_compared:
            yield Remark(f"{name}: {pair.not_compared}")
        for difference in listed:
            yield Remark(f"Not alike with {name}: {difference}.")
        if cell is not None and cell["same"] is False:
            yield Remark(f"Not alike with {name}: the cell's code.")
