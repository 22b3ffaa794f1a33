"""Two reports compared, before and after: what got slower and faster, and which findings came and went."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from jupyterlab_jaxprof.captures import Store

from .find import ReportError
from .report import Report, report

Verdict = Literal["faster", "slower", "alike", "unknown"]
Data = Mapping[str, Any]

MAX_ROWS = 30
_FEWEST_STEPS = 4
# Below this change a sum over a trace says nothing: two traces of the same program differ as much.
_ALIKE = 0.05
_ENVIRONMENT = {
    "jax": "jax",
    "jaxlib": "jaxlib",
    "python": "Python",
    "host": "host",
    "platform": "platform",
    "xla_flags": "XLA_FLAGS",
    "cuda": "CUDA",
}


@dataclass(frozen=True)
class Comparison:
    """What changed from one report to another. Times are per step where `per_step`, else of the whole trace.

    `steps`: `{before, after}` (as a record's `steps`, or None), `ratio` (after / before), `verdict`.
    `kernels`, `hlo_ops`, `copies`: rows `{name, before_ms, after_ms, change_ms, before_count, after_count}`,
    the one that lost most time first; a side is None where its table does not list that name, which may be
    there all the same if the table left some out (`left_out`).
    `findings`: `{id, before, after}`, each a finding or None.
    """

    before: Report
    after: Report
    steps: Data
    busy: Data
    per_step: bool
    kernels: Sequence[Data]
    hlo_ops: Sequence[Data]
    copies: Sequence[Data]
    left_out: Data
    findings: Sequence[Data]
    differences: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Give all of it as plain values; of the two reports only what tells which they are."""
        parts = {key: value for key, value in vars(self).items() if key not in ("before", "after")}
        return {"before": _named(self.before), "after": _named(self.after), **parts}


def compare(store: Store, before: str, after: str) -> Comparison:
    """Compare two captures or paths; raises ReportError for one that has nothing to compare."""
    first, second = report(store, before), report(store, after)
    for one in (first, second):
        if "timeline" not in one.record.summary:
            raise ReportError(_no_timeline(one))
    if _is_one(first, second):
        raise ReportError(_one(first, before))
    summaries = first.record.summary, second.record.summary
    steps = _steps(*summaries)
    per_step = bool(steps["before"] and steps["after"])
    counts = [(_count(summary) if per_step else 1) for summary in summaries]
    rows = {
        table: _rows(*summaries, table, counts[0], counts[1]) for table in ("kernels", "hlo_ops", "copies")
    }
    return Comparison(
        before=first,
        after=second,
        steps=steps,
        busy={side: _busy(summary) for side, summary in zip(("before", "after"), summaries, strict=True)},
        per_step=per_step,
        **rows,
        left_out={
            side: dict(summary.get("tables_left_out") or {})
            for side, summary in zip(("before", "after"), summaries, strict=True)
        },
        findings=_findings(first.record.findings, second.record.findings),
        differences=differences(first.record.environment, second.record.environment),
    )


def _is_one(first: Report, second: Report) -> bool:
    if first.record.id or second.record.id:
        return first.record.id == second.record.id
    return first.path.samefile(second.path)


def _one(same: Report, target: str) -> str:
    name = same.record.name
    if not same.record.id:
        return f"Both are {target}: there is nothing to compare."
    return (
        f"Both are the capture {same.record.id}, called {name!r}: there is nothing to compare. `{name}~1` is "
        "the one before the newest of that name, and `jaxprof list` tells the identifiers of all."
    )


def differences(before: Data, after: Data) -> list[str]:
    """Name what differs around the two, as 'jax: 0.9.0 before, 0.10.2 after', where both tell it."""
    pairs = [("devices", _devices(before), _devices(after))]
    pairs += [(label, before.get(key), after.get(key)) for key, label in _ENVIRONMENT.items()]
    return [
        f"{label}: {first or 'none'} before, {second or 'none'} after"
        for label, first, second in pairs
        if first != second and (label == "XLA_FLAGS" or (first and second))
    ]


def _steps(before: Data, after: Data) -> dict[str, Any]:
    first, second = (_told_steps(summary) for summary in (before, after))
    found: dict[str, Any] = {"before": first, "after": second, "ratio": None, "verdict": "unknown"}
    if first and second and first["median_ms"]:
        found["ratio"] = second["median_ms"] / first["median_ms"]
        found["verdict"] = _verdict(before["steps"], after["steps"])
    return found


def _told_steps(summary: Data) -> dict[str, Any] | None:
    steps: Data = summary.get("steps") or {}
    if not steps.get("count") or steps.get("median_ms") is None:
        return None
    return {key: steps.get(key) for key in ("name", "count", "median_ms", "min_ms", "max_ms", "parts")}


def _verdict(before: Data, after: Data) -> Verdict:
    """Tell which steps are faster: those whose quartiles lie beyond the other's. Few steps tell nothing."""
    spans: list[tuple[float, float]] = []
    for steps in (before, after):
        durations = [value for value in steps.get("durations_ms") or () if value is not None]
        if len(durations) < _FEWEST_STEPS:
            return "unknown"
        lower, _, upper = statistics.quantiles(durations, n=4, method="inclusive")
        spans.append((lower, upper))
    (low, high), (new_low, new_high) = spans
    if new_high < low:
        return "faster"
    return "slower" if new_low > high else "alike"


def _rows(before: Data, after: Data, table: str, count_before: int, count_after: int) -> list[dict[str, Any]]:
    first, second = _summed(before, table), _summed(after, table)
    rows: list[dict[str, Any]] = []
    for name in {**first, **second}:
        old, new = first.get(name), second.get(name)
        old_ms = old[0] / count_before if old else None
        new_ms = new[0] / count_after if new else None
        rows.append(
            {
                "name": name,
                "before_ms": old_ms,
                "after_ms": new_ms,
                "change_ms": (new_ms or 0.0) - (old_ms or 0.0),
                "before_count": old[1] / count_before if old else None,
                "after_count": new[1] / count_after if new else None,
            }
        )
    rows.sort(key=lambda row: -row["change_ms"])
    worst = rows[: MAX_ROWS // 2]
    return worst + rows[max(len(rows) - MAX_ROWS // 2, len(worst)) :]


def _summed(summary: Data, table: str) -> dict[str, tuple[float, float]]:
    """Give each name's time and count, over all devices; copies are named by their kind and memory."""
    totals: dict[str, tuple[float, float]] = {}
    for row in cast("Sequence[Data]", (summary.get("tables") or {}).get(table) or ()):
        parts = [row.get("kind"), row.get("memory")] if table == "copies" else [row.get("name")]
        name = ", ".join(str(part) for part in parts if part)
        spent, count = totals.get(name, (0.0, 0.0))
        totals[name] = spent + (row.get("total_ms") or 0.0), count + (row.get("count") or 0)
    return totals


def is_alike(row: Data) -> bool:
    """Tell whether a row's two times differ by no more than two traces of one program do."""
    old, new = row.get("before_ms"), row.get("after_ms")
    return old is not None and new is not None and abs(new - old) <= _ALIKE * max(old, new)


def _findings(before: Sequence[Data], after: Sequence[Data]) -> list[dict[str, Any]]:
    """Pair the findings by their pattern, those that are there after first, in their order."""
    first, second = _by_id(before), _by_id(after)
    ids = [*second, *(name for name in first if name not in second)]
    return [{"id": name, "before": first.get(name), "after": second.get(name)} for name in ids]


def _by_id(findings: Sequence[Data]) -> dict[str, Data]:
    """Give the first, which is the costliest, of each pattern."""
    found: dict[str, Data] = {}
    for finding in findings:
        found.setdefault(str(finding.get("id")), finding)
    return found


def _count(summary: Data) -> int:
    return int((summary.get("steps") or {}).get("count") or 1)


def _busy(summary: Data) -> float | None:
    return (summary.get("timeline") or {}).get("busy_share")


def _named(one: Report) -> dict[str, Any]:
    record = one.record
    return {
        "name": record.name,
        "id": record.id or None,
        "created": record.created,
        "directory": str(one.directory),
    }


def _devices(environment: Data) -> str:
    listed = environment.get("devices")
    devices = cast("Sequence[Any]", listed) if isinstance(listed, (list, tuple)) else ()
    kinds = [str(device.get("kind")) for device in devices if isinstance(device, Mapping)]
    return ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds))


def _no_timeline(one: Report) -> str:
    record = one.record
    if record.kind == "time":
        return (
            f"{record.name!r} is a timing, which has no timeline to compare: "
            f"%%jaxtime --compare {record.name!r} compares timings."
        )
    why = f" {record.notices[-1]}" if record.notices else ""
    return f"{record.name!r} is a capture of kind {record.kind!r} without a timeline to compare.{why}"
