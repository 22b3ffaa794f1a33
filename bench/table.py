"""A figure, its limit, and the table of all of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

HEADINGS = ("figure", "here", "peer", "ratio", "limit", "of the limit", "")
MISSED = "✗ missed"
_SCALES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
}


@dataclass(frozen=True)
class Limit:
    """At most so much: of the value itself, of its ratio to the peer's, or of what it is above the peer's."""

    of: Literal["value", "ratio", "above"]
    most: float


@dataclass(frozen=True)
class Figure:
    """One row. `value` and `peer_value` are medians, in `unit`: `s`, `bytes` or `%`.

    `ratio` and `above` (the difference) are medians of pairs that were measured in turns, else those
    of the two values. `problem` says why nothing could be measured.
    """

    name: str
    value: float = float("nan")
    unit: str = "s"
    limits: tuple[Limit, ...] = ()
    peer: str = ""
    peer_value: float | None = None
    ratio: float | None = None
    above: float | None = None
    samples: int = 1
    problem: str = ""
    group: str = ""

    @classmethod
    def of_pairs(
        cls, name: str, ours: Sequence[float], peer: str, theirs: Sequence[float], unit: str, *limits: Limit
    ) -> Figure:
        """Medians of what was measured in turns, and of the ratio and the difference of each pair."""
        pairs = list(zip(ours, theirs, strict=True))
        return cls(
            name,
            statistics.median(ours),
            unit,
            limits,
            peer,
            statistics.median(theirs),
            statistics.median(a / b for a, b in pairs) if all(theirs) else None,
            statistics.median(a - b for a, b in pairs),
            len(pairs),
        )

    @classmethod
    def of_values(cls, name: str, values: Sequence[float], unit: str, *limits: Limit) -> Figure:
        """The median of several values, held against a limit alone."""
        return cls(name, statistics.median(values), unit, limits, samples=len(values))

    def measured(self, of: str) -> float:
        """What a limit of this sort bears on."""
        if of == "value":
            return self.value
        if self.peer_value is None:
            raise ValueError(f"{self.name} has no peer")
        if of == "ratio":
            return self.value / self.peer_value if self.ratio is None else self.ratio
        return self.value - self.peer_value if self.above is None else self.above

    @property
    def share(self) -> float | None:
        """How much of its (narrowest) limit it takes: above 1 it misses it. None without a limit."""
        return max((self.measured(limit.of) / limit.most for limit in self.limits), default=None)

    @property
    def ok(self) -> bool:
        """Whether it was measured and keeps its limits."""
        return not self.problem and not (self.share is not None and not self.share <= 1)

    def to_json(self) -> dict[str, object]:
        """All of it, with what follows from it."""
        limits = [{"of": limit.of, "most": limit.most} for limit in self.limits]
        measured = {} if self.problem else {"value": self.value, "share": self.share}
        if self.peer_value is not None:
            measured |= {"peer_value": self.peer_value, "above": self.measured("above")}
            measured |= {"ratio": self.measured("ratio") if self.peer_value else None}
        return {
            "group": self.group,
            "name": self.name,
            "unit": self.unit,
            "peer": self.peer,
            "samples": self.samples,
            "limits": limits,
            "ok": self.ok,
            "problem": self.problem,
            **measured,
        }

    def cells(self) -> tuple[str, ...]:
        """The row of the table, one text for each of `HEADINGS`."""
        if self.problem:
            return self.name, "", "", "", "", "", f"✗ {self.problem}"
        with_peer = self.peer_value is not None
        share = self.share
        return (
            self.name,
            quantity(self.value, self.unit),
            f"{quantity(self.peer_value, self.unit)} {self.peer}" if self.peer_value is not None else "",
            f"{self.measured('ratio'):.2f}" if with_peer and self.peer_value else "",
            " and ".join(self._limit(limit) for limit in self.limits),
            "" if share is None else f"{max(share, 0):.0%}",
            "" if self.ok else MISSED,
        )

    def _limit(self, limit: Limit) -> str:
        if limit.of == "ratio":
            return f"{limit.most:.4g} × peer"
        return ("peer + " if limit.of == "above" else "") + quantity(limit.most, self.unit)


def quantity(value: float, unit: str) -> str:
    """A number of three digits with a unit that suits it."""
    scales = _SCALES.get(unit, ((1, unit),))
    factor, name = next((scale for scale in scales if abs(value) >= scale[0] * 0.9995), scales[-1])
    scaled = value / factor
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    return f"{scaled:,.{digits}f} {name}"


def text_table(figures: Iterable[Figure]) -> str:
    """All rows in columns, for a terminal."""
    rows = [HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS) - 1)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    lines.insert(1, "-" * (sum(widths) + 2 * len(widths)))
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(figures: Iterable[Figure]) -> str:
    """All rows in Markdown."""
    headings = [*HEADINGS[:-1], "kept"]
    lines = [
        "| " + " | ".join(headings) + " |",
        "| --- | ---: | --- | ---: | --- | ---: | --- |",
    ]
    for figure in figures:
        *cells, mark = figure.cells()
        kept = mark or ("yes" if figure.limits else "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in [*cells, kept]) + " |")
    return "\n".join(lines)
