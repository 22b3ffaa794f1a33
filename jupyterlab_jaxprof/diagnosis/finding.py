"""A finding: one named pattern with its evidence, what it means, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How much a finding matters: it costs time, it is worth knowing, or it says that all is well."""

    PROBLEM = "problem"
    NOTE = "note"
    FINE = "fine"


@dataclass(frozen=True)
class Range:
    """A stretch of time to open a viewer at, in the timeline's own nanoseconds."""

    start_ns: float
    end_ns: float
    label: str

    def to_json(self) -> dict[str, Any]:
        """Give it in the file's own milliseconds."""
        return {
            "start_ms": round(self.start_ns / 1e6, 6),
            "end_ms": round(self.end_ns / 1e6, 6),
            "label": self.label,
        }


@dataclass(frozen=True)
class Finding:
    """One pattern that was found.

    `lost_ms` is the time that fixing this alone would win back, at most; None where it costs no time or
    that can't be told. `rank_ms` orders the findings where `lost_ms` would not do it well.
    """

    id: str
    title: str
    level: Level
    evidence: Sequence[str]
    meaning: str
    next: Sequence[str]
    lost_ms: float | None = None
    share: float | None = None
    ranges: Sequence[Range] = ()
    rank_ms: float | None = None

    @property
    def doc(self) -> str:
        """The page of the documentation that tells about the pattern."""
        return f"patterns/{self.id}"

    @property
    def order(self) -> tuple[int, float]:
        """What findings are sorted by: problems first, or else that all is well; then notes; each by the time
        that they cost."""
        time_ms = self.rank_ms if self.rank_ms is not None else self.lost_ms or 0.0
        return (Level.PROBLEM, Level.FINE, Level.NOTE).index(self.level), -time_ms

    def to_json(self) -> dict[str, Any]:
        """Give the finding as a capture's record holds it."""
        return {
            "id": self.id,
            "title": self.title,
            "level": self.level.value,
            "lost_ms": None if self.lost_ms is None else round(self.lost_ms, 6),
            "share": None if self.share is None else round(min(max(self.share, 0.0), 1.0), 6),
            "evidence": list(self.evidence),
            "ranges": [one.to_json() for one in self.ranges],
            "meaning": self.meaning,
            "next": list(self.next),
            "doc": self.doc,
        }
