"""A cell's history: the captures that were taken of it, and what of each can be drawn as one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, cast

from .record import Record, Status
from .store import Store

Match = Literal["this", "same", "similar", ""]

SEARCHED = 300
"""So many of a notebook's newest captures are looked through."""
#: Cells are similar from this share of equal lines or, short ones, of equal characters on.
_ALIKE_LINES = 0.6
_ALIKE_CHARACTERS = 0.8
_SHORT = 1500


@dataclass(frozen=True)
class Entry:
    """One capture of the cell. `left_out` says why its value is not comparable with this capture's."""

    record: Record
    match: Match
    value: float | None
    left_out: str

    def to_json(self) -> dict[str, Any]:
        """Give the entry as the REST route does."""
        record = self.record
        told = {key: getattr(record, key) for key in ("id", "name", "kind", "created", "pinned")}
        rest = {"match": self.match, "value": self.value, "left_out": self.left_out}
        return told | {"status": str(record.status)} | rest


@dataclass(frozen=True)
class History:
    """The captures of a cell, newest first; `label` and `unit` are those of all values that are compared.

    `searched` is how many captures of the notebook were looked through, where it has more than that.
    """

    entries: Sequence[Entry]
    label: str
    unit: str
    searched: int | None

    def to_json(self) -> dict[str, Any]:
        """Give the history as the REST route does."""
        entries = [entry.to_json() for entry in self.entries]
        return {"captures": entries, "label": self.label, "unit": self.unit, "searched": self.searched}


def history(store: Store, capture_id: str) -> History:
    """Find the captures of the same cell in the same notebook; raises as `Store.get` does.

    Without a notebook only those of just the same code are of the same cell; without code only itself is.
    """
    own = store.get(capture_id)
    what = _measured(own)
    page = store.list(limit=SEARCHED, notebook=own.notebook or None)
    records = [row.record for row in page.rows if row.record is not None]
    if not any(record.id == own.id for record in records):
        records.append(own)  # it is older than all those
    entries: list[Entry] = []
    for record in records:
        match = _match(own, record)
        if match:
            value, left_out = _value(own, record, what)
            entries.append(Entry(record, match, value, left_out))
    label, unit = what or ("", "")
    return History(entries, label, unit, SEARCHED if page.matched > SEARCHED else None)


def _match(own: Record, other: Record) -> Match:
    if own.id == other.id:
        return "this"
    if own.notebook != other.notebook or not own.cell.strip():
        return ""
    mine, theirs = _lines(own.cell), _lines(other.cell)
    if mine == theirs:
        return "same" if mine else ""
    return "similar" if own.notebook and _similar(mine, theirs) else ""


def _lines(cell: str) -> list[str]:
    """Give the lines that count: neither blank ones nor comments, nor spaces at their ends."""
    lines = (line.rstrip() for line in cell.splitlines())
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def _similar(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    equal = (Counter(mine) & Counter(theirs)).total()  # at most so many match in order
    most = len(mine) + len(theirs)
    if 2 * equal >= _ALIKE_LINES * most and SequenceMatcher(None, mine, theirs).ratio() >= _ALIKE_LINES:
        return True
    one, other = "\n".join(mine), "\n".join(theirs)
    if max(len(one), len(other)) > _SHORT:
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= _ALIKE_CHARACTERS and matcher.ratio() >= _ALIKE_CHARACTERS


def _measured(record: Record) -> tuple[str, str] | None:
    """Tell what a record's number is of: its label and unit."""
    steps = record.steps or {}
    if steps.get("median_ms") is not None and not steps.get("marks_dispatch"):
        return f"median step, {steps.get('name')}", "ms"
    headline = _headline(record)
    if headline.get("value") is None:
        return None
    return str(headline.get("label")), str(headline.get("unit"))


def _headline(record: Record) -> Mapping[str, Any]:
    headline = record.summary.get("headline")
    return cast("Mapping[str, Any]", headline) if isinstance(headline, Mapping) else {}


def _number(record: Record) -> float | None:
    steps = record.steps or {}
    if steps.get("median_ms") is not None and not steps.get("marks_dispatch"):
        return steps["median_ms"]
    return _headline(record).get("value")


def _value(own: Record, other: Record, what: tuple[str, str] | None) -> tuple[float | None, str]:
    """Give a capture's number, and why it can't be compared with this one's (else an empty text)."""
    number, its = _number(other), _measured(other)
    if what is None:
        return number, "This capture has no number to compare with."
    if other.status in (Status.FAILED, Status.INTERRUPTED):
        return number, "It failed." if other.status is Status.FAILED else "It was interrupted."
    if its is None:
        return None, "It has no number."
    if own.kind != other.kind:
        return number, f"It is of another kind ({other.kind})."
    if its != what:
        return number, f"Its number is of something else ({its[0]})."
    mine, theirs = _devices(own), _devices(other)
    if mine and theirs and mine != theirs:
        return number, f"It ran on other devices ({theirs})."
    return number, ""


def _devices(record: Record) -> str:
    listed = record.environment.get("devices")
    devices = cast("Sequence[Any]", listed) if isinstance(listed, (list, tuple)) else ()
    kinds = Counter(str(device.get("kind")) for device in devices if isinstance(device, Mapping))
    return ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))
