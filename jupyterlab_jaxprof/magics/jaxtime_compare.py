"""Comparing a timing with earlier ones: which those are, by how much they differ, and what else does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from jupyterlab_jaxprof.captures import Record, Status, Store
from jupyterlab_jaxprof.captures.samples import Summary, ratio, summary_from
from jupyterlab_jaxprof.reports import differences
from jupyterlab_jaxprof.timing import TimedResult

from .arguments import usage_error

KIND = "time"
_PAGE = 200
_NAMED = 8


def find(store: Store, names: Sequence[str], magic: str) -> list[Record]:
    """Give the newest timing of each name, failed ones aside; raises UsageError where there is none."""
    if not names:
        return []
    found: dict[str, Record] = {}
    for record in _timings(store):
        found.setdefault(record.name, record)
        if all(name in found for name in names):
            break
    for name in names:
        if name not in found:
            there = ", ".join(repr(known) for known in list(found)[:_NAMED])
            hint = f"There are: {there}." if there else "There is none yet: %%jaxtime NAME makes one."
            raise usage_error(magic, f"--compare: no timing is called {name!r}. {hint}")
    return [found[name] for name in names]


def _timings(store: Store) -> Iterator[Record]:
    offset = 0
    while True:
        rows = store.list(offset=offset, limit=_PAGE, kind=KIND).rows
        yield from (row.record for row in rows if row.record is not None and _is_whole(row.record))
        if len(rows) < _PAGE:
            return
        offset += _PAGE


def _is_whole(record: Record) -> bool:
    """Tell whether its first run, at least, came to its end."""
    ended = record.status not in (Status.FAILED, Status.INTERRUPTED)
    return ended or record.summary.get("cached") is not None


def compare(
    result: TimedResult, environment: Mapping[str, Any], others: Sequence[Record]
) -> list[dict[str, Any]]:
    """Compare a result with each of the others, as plain values.

    Where both have cached runs those are compared, by their 20th percentiles (`basis` is "p20"). Else the
    first runs are ("first"), which tells no uncertainty: then `ratio` has neither `low` nor `high`.
    """
    return [_compared(result, environment, other) for other in others]


def _compared(result: TimedResult, environment: Mapping[str, Any], other: Record) -> dict[str, Any]:
    mine, theirs = result.cached, _cached(other)
    row: dict[str, Any] = {"name": other.name, "id": other.id}
    if mine is not None and theirs is not None:
        found = ratio(mine, theirs)
        row |= {"basis": "p20", "value_ms": theirs.p20, "own_ms": mine.p20}
        row["ratio"] = None if found is None else found.to_dict()
    else:
        first = cast("Mapping[str, Any]", other.summary.get("first") or {})
        total_ms = first.get("total_ms")
        row |= {"basis": "first", "value_ms": total_ms, "own_ms": result.first_ms}
        row["ratio"] = {"value": result.first_ms / total_ms} if total_ms else None
    return row | {"differences": differences(environment, other.environment, ("here", "there"))}


def _cached(record: Record) -> Summary | None:
    data = record.summary.get("cached")
    return summary_from(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else None
