"""Two or more captures of any kinds, each compared with the first: what they share, side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jupyterlab_jaxprof.captures import Record, Store

from .around import differences
from .compare import TABLES, Comparison, compare_reports, has_timeline, is_alike, is_one, same
from .compare_steps import compare_steps
from .find import ReportError
from .measures import judge, measures
from .report import Report, report

Data = Mapping[str, Any]

MOST = 12
"""So many captures are compared at a time: more would fit no screen."""
_ROWS = 60
_DIFF_LINES = 400
_UNTOLD: Data = {"ratio": None, "low": None, "high": None, "verdict": "unknown", "reason": ""}
_PARTS = {
    "compute_ms": "devices computing",
    "copy_ms": "copies",
    "collective_ms": "collectives",
    "host_ms": "host",
    "idle_ms": "idle",
}


@dataclass(frozen=True)
class SideBySide:
    """Captures side by side; the first is the baseline, which all others are compared with.

    `pairs` has what the timelines of the baseline and of each other tell, None where not both have one; by
    step where all have steps. Lists below have an entry for each capture, None for what it doesn't have.
    `steps`: of each other, what `compare_steps` says; None where neither has steps.
    `measures`: `{group, label, unit, values, judgements}`, a judgement as `measures.judge` gives it.
    `findings`: `{id, once, cells}`; a cell is `{level, lost_ms, state, title}`, its cost that of a mean step.
    `tables`: of each name, `{name, ms, counts, changes_ms, alike}`, those that lost most time first.
    `differences`: what is not alike around the two. `cells`: `{same, diff}`, `same` None where not told.
    `shares_nothing`, `not_compared`: sentences, empty where there is something to compare.
    """

    reports: Sequence[Report]
    pairs: Sequence[Comparison | None]
    per_step: bool
    steps: Sequence[Data | None]
    measures: Sequence[Data]
    findings: Sequence[Data]
    tables: Mapping[str, Sequence[Data]]
    differences: Sequence[Sequence[str]]
    cells: Sequence[Data | None]
    shares_nothing: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Give all of it as plain values; of the reports only what tells which they are."""
        return {
            "captures": [_named(one) for one in self.reports],
            "per_step": self.per_step,
            "steps": list(self.steps),
            "measures": list(self.measures),
            "findings": list(self.findings),
            "tables": dict(self.tables),
            "tables_left_out": [
                dict(one.record.summary.get("tables_left_out") or {}) for one in self.reports
            ],
            "not_compared": ["", *(pair.not_compared if pair else "" for pair in self.pairs)],
            "differences": list(self.differences),
            "cells": list(self.cells),
            "shares_nothing": list(self.shares_nothing),
        }


def side_by_side(store: Store, targets: Sequence[str]) -> SideBySide:
    """Compare captures or paths with the first of them; raises ReportError, also for one named twice."""
    if not 2 <= len(targets) <= MOST:
        raise ReportError(f"From 2 to {MOST} captures can be compared at a time, not {len(targets)}.")
    reports = [report(store, target) for target in targets]
    for number, (one, target) in enumerate(zip(reports, targets, strict=True)):
        if any(is_one(one, earlier) for earlier in reports[:number]):
            raise ReportError(same(one, target))
    baseline, *others = reports
    both = [has_timeline(baseline) and has_timeline(other) for other in others]
    per_step = _all_have_steps([baseline, *(other for other, told in zip(others, both, strict=True) if told)])
    pairs = [
        compare_reports(baseline, other, per_step=per_step, most=_ROWS) if told else None
        for other, told in zip(others, both, strict=True)
    ]
    steps = [_steps(baseline.record, other.record) for other in others]
    rows = [*_of_steps(reports, pairs, steps), *_of_records(reports)]
    return SideBySide(
        reports=reports,
        pairs=pairs,
        per_step=per_step and any(both),
        steps=steps,
        measures=rows,
        findings=list(_findings(pairs)),
        tables={table: _table(pairs, table) for table in TABLES},
        differences=[
            [],
            *(_around(baseline, other, pair) for other, pair in zip(others, pairs, strict=True)),
        ],
        cells=[None, *(_cell(baseline.record, other.record) for other in others)],
        shares_nothing=["", *(_nothing(reports, pairs, rows, number) for number in range(1, len(reports)))],
    )


def _named(one: Report) -> dict[str, Any]:
    record = one.record
    kept = ("name", "kind", "created", "status", "reason", "magic", "notebook")
    told = {key: str(getattr(record, key)) for key in kept}
    return told | {"id": record.id or None, "directory": str(one.directory)}


def _all_have_steps(reports: Sequence[Report]) -> bool:
    every = [one.record.summary.get("steps") or {} for one in reports]
    return all(steps.get("count") and steps.get("median_ms") is not None for steps in every)


def _steps(before: Record, after: Record) -> Data | None:
    found = compare_steps(before.summary, after.summary)
    return found if found["before"] or found["after"] else None


class _Rows:
    """The measures by their keys, in the order in which they came."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._rows: dict[str, dict[str, Any]] = {}

    def put(
        self, key: str, kind: tuple[str, str, str], number: int, value: Any, judgement: Data | None = None
    ) -> None:
        """Enter a value of the capture `number`; `kind` is group, label and unit."""
        if value is None:
            return
        group, label, unit = kind
        empty = [None] * self._count
        row = self._rows.setdefault(
            key, {"group": group, "label": label, "unit": unit, "values": [*empty], "judgements": [*empty]}
        )
        row["values"][number] = value
        if judgement is not None:
            row["judgements"][number] = {key: judgement.get(key, told) for key, told in _UNTOLD.items()}

    def list(self) -> list[dict[str, Any]]:
        """Give them all."""
        return list(self._rows.values())


def _of_steps(
    reports: Sequence[Report], pairs: Sequence[Comparison | None], steps: Sequence[Data | None]
) -> list[dict[str, Any]]:
    """Give the steps, their parts, and how busy the devices were."""
    rows = _Rows(len(reports))
    for number, found in enumerate(steps, 1):
        for place, side in ((0, "before"), (number, "after")):
            told: Data = (found or {}).get(side) or {}
            name, parts = str(told.get("name")), told.get("parts") or {}
            judgement = found if place else None
            for key, label in (("median_ms", "median"), ("min_ms", "shortest"), ("max_ms", "longest")):
                judged = judgement if key == "median_ms" else None
                rows.put(f"{name} {key}", ("steps", f"{name}, {label}", "ms"), place, told.get(key), judged)
            rows.put(f"{name} count", ("steps", f"{name}, how many", ""), place, told.get("count"))
            rows.put("device", ("parts", "device busy, per step", "ms"), place, told.get("device_ms"))
            for key, label in _PARTS.items():
                rows.put(key, ("parts", label, "ms"), place, parts.get(key))
    for number, pair in enumerate(pairs, 1):
        for place, side in ((0, "before"), (number, "after")):
            busy = pair.busy[side] if pair else None
            percent = None if busy is None else busy * 100
            rows.put("busy", ("run", "devices busy", "percent"), place, percent)
    return [row for row in rows.list() if any(row["values"]) or row["group"] != "parts"]


def _of_records(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Give what at least one of the others has in common with the baseline, or any two with one another."""
    rows = _Rows(len(reports))
    found = [measures(one.record) for one in reports]
    for number, own in enumerate(found):
        for key, one in own.items():
            base = found[0].get(key)
            same_kind = reports[0].record.kind == reports[number].record.kind
            judgement = judge(base, one, same_kind=same_kind) if number and base else None
            rows.put(key, (one.group, one.label, one.unit), number, one.value, judgement)
    return rows.list()


def _findings(pairs: Sequence[Comparison | None]) -> Iterator[dict[str, Any]]:
    """Give every finding of any of them, those that are there after first."""
    ids = dict.fromkeys(row["id"] for pair in pairs if pair for row in pair.findings)
    for name in ids:
        cells: list[dict[str, Any] | None] = [None]
        once = False
        for pair in pairs:
            row: Data = next((row for row in (pair.findings if pair else ()) if row["id"] == name), {})
            once = once or bool(row.get("once"))
            if cells[0] is None and row.get("before"):
                cells[0] = _finding(row, "before")
            cells.append(_finding(row, "after") if row else None)
        yield {"id": name, "once": once, "cells": cells}


def _finding(row: Data, side: str) -> dict[str, Any]:
    finding: Data = row.get(side) or {}
    return {
        "level": finding.get("level"),
        "lost_ms": row.get(f"{side}_ms"),
        "state": row["state"] if side == "after" else "",
        "title": str(finding.get("title") or ""),
    }


def _table(pairs: Sequence[Comparison | None], table: str) -> list[dict[str, Any]]:
    """Merge the rows of all pairs by their names, those that lost most time first."""
    count = len(pairs) + 1
    rows: dict[str, dict[str, Any]] = {}
    for number, pair in enumerate(pairs, 1):
        for row in getattr(pair, table) if pair else ():
            empty = [None] * count
            lists = {key: [*empty] for key in ("ms", "counts", "changes_ms", "alike")}
            merged = rows.setdefault(row["name"], {"name": row["name"]} | lists)
            merged["ms"][0], merged["counts"][0] = row["before_ms"], row["before_count"]
            merged["ms"][number], merged["counts"][number] = row["after_ms"], row["after_count"]
            merged["changes_ms"][number], merged["alike"][number] = row["change_ms"], is_alike(row)
    return sorted(rows.values(), key=_worst)


def _worst(row: Data) -> float:
    return -max(change for change in row["changes_ms"] if change is not None)


def _around(baseline: Report, other: Report, pair: Comparison | None) -> list[str]:
    if pair is not None:
        return list(pair.differences)
    return differences(baseline.record.environment, other.record.environment)


def _cell(before: Record, after: Record) -> dict[str, Any]:
    """Tell how the code differs: `{same, diff}`, the diff in the unified form."""
    if not before.cell.strip() or not after.cell.strip():
        return {"same": None, "diff": ""}
    old, new = ([line.rstrip() for line in one.cell.strip().splitlines()] for one in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    shown = lines[:_DIFF_LINES]
    if len(lines) > _DIFF_LINES:
        shown.append(f"… and {len(lines) - _DIFF_LINES} lines more")
    return {"same": old == new, "diff": "\n".join(shown)}


def _nothing(
    reports: Sequence[Report], pairs: Sequence[Comparison | None], rows: Sequence[Data], number: int
) -> str:
    """Say that a capture has nothing in common with the baseline; empty where it has."""
    if pairs[number - 1] or any(None not in (row["values"][0], row["values"][number]) for row in rows):
        return ""
    baseline, other = reports[0].record, reports[number].record
    why = [f" {one.notices[-1]}" for one in (baseline, other) if not one.summary and one.notices]
    return (
        f"{other.name!r} (of kind {other.kind!r}) and {baseline.name!r} (of kind {baseline.kind!r}) measured "
        f"nothing that both have.{''.join(dict.fromkeys(why))}"
    )
