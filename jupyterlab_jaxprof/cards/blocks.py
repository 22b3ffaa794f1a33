"""What a card's body is made of. Texts are as they are: whoever draws a block makes them printable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Some numbers, the first of them large."""

    title: str
    figures: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Share:
    """A part of a whole, as a fraction of it; `tone` (from 0) is its colour's number."""

    label: str
    value: str
    fraction: float
    tone: int


@dataclass(frozen=True)
class Shares:
    """A whole in its parts, as one bar."""

    title: str
    shares: Sequence[Share]


@dataclass(frozen=True)
class Chart:
    """A histogram: a fraction of the highest and a label for each bar, and what its ends stand for."""

    label: str
    bars: Sequence[tuple[float, str]]
    low: str
    high: str


@dataclass(frozen=True)
class Comparison:
    """Values as bars below each other: label, value, fraction of the longest, and a remark on each."""

    title: str
    rows: Sequence[tuple[str, str, float, str]]


@dataclass(frozen=True)
class Row:
    """A row of a table, and what is said below it."""

    cells: Sequence[str]
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table: the first column is text, the others are numbers; `more` tells of rows left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    more: str = ""


@dataclass(frozen=True)
class Remark:
    """A sentence."""

    text: str


Block = Figures | Shares | Chart | Comparison | Table | Remark
