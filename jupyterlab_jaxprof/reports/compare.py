"""Two reports compared, before and after: what got slower and faster, and which findings came and went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jupyterlab_jaxprof.captures import Record, Store
from jupyterlab_jaxprof.cards.traced import BLIND

from .around import differences
from .compare_steps import compare_steps, count_in_window, of_two_recorders
from .find import ReportError
from .report import Report, report
from .unseen import unseen

Data = Mapping[str, Any]

MAX_ROWS = 30
# Below this change a sum over a trace says nothing: two traces of the same program differ as much.
_ALIKE = 0.05
TABLES = ("kernels", "hlo_ops", "copies")
#: Findings of what happens once, however many steps there are.
_ONCE = ("first-call-compile",)
_RECORDERS = {"xplane": "JAX's profiler", "nsight": "Nsight Systems"}


@dataclass(frozen=True)
class Comparison:
    """What changed from one report to another. Times are per step where `per_step`, else of the whole trace.

    A step is one of the `steps_in_window`: `{before, after}`, of any name.
    `steps`: see `compare_steps`.
    `kernels`, `hlo_ops`, `copies`: rows `{name, before_ms, after_ms, change_ms, before_count, after_count}`,
    the one that lost most time first; a side is None where its table does not list that name, which may be
    there all the same if the table left some out (`left_out`). They are empty where `not_compared` is a
    sentence that says why.
    `findings`: `{id, state, before, after, before_ms, after_ms}`: findings or None, and what they cost
    (in all where `once`); state: `both`, `new`, `gone`, or `unknown` where the other side could not have
    told it.
    """

    before: Report
    after: Report
    steps: Data
    busy: Data
    per_step: bool
    steps_in_window: Data
    kernels: Sequence[Data]
    hlo_ops: Sequence[Data]
    copies: Sequence[Data]
    left_out: Data
    not_compared: str
    findings: Sequence[Data]
    differences: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Give all of it as plain values; of the two reports only what tells which they are."""
        parts = {key: value for key, value in vars(self).items() if key not in ("before", "after")}
        return {"before": _named(self.before), "after": _named(self.after), **parts}


def compare(store: Store, before: str, after: str) -> Comparison:
    """Compare two captures or paths; raises ReportError for one that has no timeline to compare."""
    first, second = report(store, before), report(store, after)
    for one in (first, second):
        if not has_timeline(one):
            raise ReportError(_no_timeline(one))
    if is_one(first, second):
        raise ReportError(same(first, before))
    return compare_reports(first, second)


def compare_reports(
    first: Report, second: Report, *, per_step: bool | None = None, most: int = MAX_ROWS
) -> Comparison:
    """Compare two reports that have timelines; by step, if not said, where both have steps.

    Of each table `most` rows are kept: those that lost most time, and those that won most.
    """
    summaries = first.record.summary, second.record.summary
    steps = compare_steps(*summaries)
    if per_step is None:
        per_step = bool(steps["before"] and steps["after"])
    counts = [count_in_window(summary) for summary in summaries]
    divisors = counts if per_step else [1, 1]
    not_compared = _no_tables(*summaries)
    rows = {table: [] if not_compared else _rows(*summaries, table, divisors, most) for table in TABLES}
    return Comparison(
        before=first,
        after=second,
        steps=steps,
        busy=_sides(_busy(summary) for summary in summaries),
        per_step=per_step,
        steps_in_window=_sides(counts),
        **rows,
        left_out=_sides(dict(summary.get("tables_left_out") or {}) for summary in summaries),
        not_compared=not_compared,
        findings=_findings(first.record, second.record, divisors),
        differences=[
            *differences(first.record.environment, second.record.environment),
            *_recordings(*summaries),
        ],
    )


def has_timeline(one: Report) -> bool:
    """Tell whether there is a timeline to compare."""
    return "timeline" in one.record.summary


def _sides(values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(("before", "after"), values, strict=True))


def is_one(first: Report, second: Report) -> bool:
    """Tell whether two reports are of the same capture, or of the same path."""
    if first.record.id or second.record.id:
        return first.record.id == second.record.id
    return first.path.samefile(second.path)


def same(one: Report, target: str) -> str:
    """Say that a report was named twice."""
    name = one.record.name
    if not one.record.id:
        return f"Both are {target}: there is nothing to compare."
    return (
        f"Both are the capture {one.record.id}, called {name!r}: there is nothing to compare. `{name}~1` is "
        "the one before the newest of that name, and `jaxprof list` tells the identifiers of all."
    )


def _recordings(before: Data, after: Data) -> list[str]:
    """Name what differs between the recordings themselves, and what of them is missing."""
    timelines = [summary.get("timeline") or {} for summary in (before, after)]
    first, second = (str(timeline.get("source")) for timeline in timelines)
    found: list[str] = []
    if of_two_recorders(before, after):
        found.append(
            f"recorder: {_RECORDERS.get(first, first)} before, {_RECORDERS.get(second, second)} after"
        )
    partial = [side for side, one in _sides(timelines).items() if one.get("partial")]
    return found + [f"{side} could be read in part only" for side in partial]


def _no_tables(before: Data, after: Data) -> str:
    """Say why what ran can't be compared by name; empty where it can."""
    timelines = [summary.get("timeline") or {} for summary in (before, after)]
    what = "Kernels, HLO operations and copies are not compared"
    if of_two_recorders(before, after):
        return f"{what}: the two recorders name and count them differently."
    for blind in ("devices", "graphs"):
        told = [side for side, one in _sides(timelines).items() if blind not in (one.get("blind") or ())]
        if len(told) == 1:
            return f"{what}: {BLIND[blind]} were seen only {told[0]}."
    return ""


def _rows(before: Data, after: Data, table: str, divisors: Sequence[int], most: int) -> list[dict[str, Any]]:
    count_before, count_after = divisors
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
    worst = rows[: most // 2]
    return worst + rows[max(len(rows) - most // 2, len(worst)) :]


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


def _findings(before: Record, after: Record, divisors: Sequence[int]) -> list[dict[str, Any]]:
    """Pair the findings by their pattern, those that are there after first, in their order."""
    first, second = _by_id(before.findings), _by_id(after.findings)
    ids = [*second, *(name for name in first if name not in second)]
    timelines = [record.summary.get("timeline") or {} for record in (before, after)]
    hidden = [set(unseen(timeline.get("blind") or ())) for timeline in timelines]
    one_recorder = not of_two_recorders(before.summary, after.summary)
    rows: list[dict[str, Any]] = []
    for name in ids:
        sides = first.get(name), second.get(name)
        missing = [number for number, finding in enumerate(sides) if finding is None]
        told = one_recorder and not any(name in hidden[number] for number in missing)
        by = [1, 1] if name in _ONCE else divisors
        rows.append(
            {
                "id": name,
                "state": "both" if not missing else ("new", "gone")[missing[0]] if told else "unknown",
                **_sides(sides),
                "before_ms": _cost_ms(sides[0], by[0]),
                "after_ms": _cost_ms(sides[1], by[1]),
                "once": name in _ONCE,
            }
        )
    return rows


def _cost_ms(finding: Data | None, divisor: int) -> float | None:
    lost_ms = finding.get("lost_ms") if finding else None
    return None if lost_ms is None else lost_ms / divisor


def _by_id(findings: Sequence[Data]) -> dict[str, Data]:
    """Give the first, which is the costliest, of each pattern."""
    found: dict[str, Data] = {}
    for finding in findings:
        found.setdefault(str(finding.get("id")), finding)
    return found


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


def _no_timeline(one: Report) -> str:
    record = one.record
    if record.kind == "time":
        return (
            f"{record.name!r} is a timing, which has no timeline to compare: "
            f"%%jaxtime --compare {record.name!r} compares timings."
        )
    why = f" {record.notices[-1]}" if record.notices else ""
    return f"{record.name!r} is a capture of kind {record.kind!r} without a timeline to compare.{why}"
