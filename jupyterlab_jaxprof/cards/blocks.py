"""What a card's body is made of. Texts are as they are: whoever draws a block makes them printable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


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


@dataclass(frozen=True)
class Download:
    """A small file that a page carries in itself; text has nothing to show of it."""

    name: str
    content: bytes


Level = Literal["problem", "note", "fine"]


@dataclass(frozen=True)
class Finding:
    """One named pattern: what it cost, and what is told of it; its title stands alone until it is opened."""

    title: str
    level: Level
    cost: str
    evidence: Sequence[str] = ()
    meaning: str = ""
    remedies: Sequence[str] = ()
    places: Sequence[str] = ()
    document: str = ""
    """The command that shows the page about it."""
    is_open: bool = False


@dataclass(frozen=True)
class Findings:
    """What was found, the most costly first."""

    title: str
    findings: Sequence[Finding]
    more: str = ""


@dataclass(frozen=True)
class Mark:
    """A named span of a lane, as fractions of the drawing's width; `tone` is a cause's number."""

    start: float
    end: float
    label: str
    tone: int = 0


@dataclass(frozen=True)
class Lane:
    """One row of a drawing: spans (fractions of its width), some of them named, and gaps with their cause.

    `density` is how much of the spans' time was really taken: many short ones are drawn as one.
    """

    label: str
    kind: str
    value: str
    spans: Sequence[tuple[float, float]]
    named: Sequence[Mark]
    gaps: Sequence[Mark]
    density: float = 1.0
    is_part: bool = False
    """Whether it shows a part of what the lane above does, and its label says just which."""


@dataclass(frozen=True)
class Drawing:
    """What happened over time, in lanes; `causes` name the tones of the gaps: cause, value, tone."""

    title: str
    label: str
    lanes: Sequence[Lane]
    low: str
    high: str
    causes: Sequence[tuple[str, str, int]] = ()
    more: str = ""


@dataclass(frozen=True)
class Details:
    """Blocks that are out of the way until they are opened."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Stretch:
    """A named part of a curve's width, as fractions of it; stretches do not overlap."""

    label: str
    start: float
    end: float


@dataclass(frozen=True)
class Curve:
    """A quantity over time, or over values: a fraction of the highest and a label for each column.

    `stretches` are parts of its width: what ran when, or the values from the knee on.
    """

    title: str
    highest: str
    bars: Sequence[tuple[float, str]]
    low: str
    high: str
    stretches: Sequence[Stretch] = ()


Block = (
    Figures | Shares | Chart | Comparison | Table | Remark | Download | Findings | Drawing | Details | Curve
)
