"""A comparison shown: as blocks, and by those as text and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from jupyterlab_jaxprof.cards import PLAIN, Paper, findings, units
from jupyterlab_jaxprof.cards.block_html import render_block
from jupyterlab_jaxprof.cards.block_text import lines_of
from jupyterlab_jaxprof.cards.blocks import Block, Details, Remark, Row, Table
from jupyterlab_jaxprof.cards.html import style
from jupyterlab_jaxprof.cards.printable import printable

from .compare import Comparison, is_alike
from .report import Report

MAX_SHOWN = 10

Data = Mapping[str, Any]

_NOTHING = "–"
_ALIKE = "no difference that can be told from the steps' spread"


def text(comparison: Comparison, paper: Paper = PLAIN) -> str:
    """Write it for a terminal."""
    return text_of(_title(comparison), blocks(comparison), paper)


def html(comparison: Comparison) -> str:
    """Write it for a notebook: one element, no script."""
    return html_of(_title(comparison), blocks(comparison))


def text_of(title: str, shown: Sequence[Block], paper: Paper) -> str:
    """Write blocks below a title."""
    inner = paper.indented(2)
    return "\n".join(
        [paper.paint(title, "bold"), *(f"  {line}" for block in shown for line in lines_of(block, inner))]
    )


def html_of(title: str, shown: Sequence[Block]) -> str:
    """Write blocks below a title as one element."""
    parts = "".join(render_block(block) for block in shown)
    return (
        f'<section class="jaxprof-card"><style>{style()}</style><header><div><strong class="jx-title"><bdi>'
        f"{escape(title)}</bdi></strong></div></header>{parts}</section>"
    )


def blocks(comparison: Comparison) -> list[Block]:
    """Give what there is to say, the steps first."""
    return [
        *_summary(comparison),
        *_findings(comparison),
        *_table(comparison, "Kernels", comparison.kernels, "kernels"),
        *_table(comparison, "HLO operations", comparison.hlo_ops, "hlo_ops"),
        *_table(comparison, "Copies", comparison.copies, "copies"),
        *_around(comparison),
    ]


def _title(comparison: Comparison) -> str:
    return " → ".join(names_of([comparison.before, comparison.after]))


def names_of(reports: Sequence[Report]) -> list[str]:
    """Name each so that no two have the same: with its time, or if need be with its identifier."""
    names = [printable(one.record.name, 80) for one in reports]
    if len(set(names)) == len(names):
        return names
    moments = [units.moment(one.record.created) for one in reports]
    if len(set(zip(names, moments, strict=True))) < len(names):
        moments = [one.record.id or str(one.path) for one in reports]
    twice = {name for name in names if names.count(name) > 1}
    return [
        f"{name} ({printable(moment)})" if name in twice else name
        for name, moment in zip(names, moments, strict=True)
    ]


def _summary(comparison: Comparison) -> Iterator[Block]:
    steps, rows = comparison.steps, list[Row]()
    before, after = steps["before"], steps["after"]
    if before or after:
        names = list(dict.fromkeys(str(one["name"]) for one in (before, after) if one))
        if len(names) > 1:
            rows.append(_pair("steps called", before, after, "name", str))
        median = _pair(
            "step, median" if len(names) > 1 else f"{names[0]}, median", before, after, "median_ms"
        )
        rows.append(Row(median.cells, _told(steps)))
        rows.append(_pair("steps", before, after, "count", units.count))
    if before and after and None not in (before.get("device_ms"), after.get("device_ms")):
        rows.append(_pair("device busy, per step", before, after, "device_ms"))
    if before and after and before.get("parts") and after.get("parts"):
        rows += [
            _pair(f"of it {label}", before["parts"], after["parts"], key)
            for key, label in (
                ("compute_ms", "device computing"),
                ("copy_ms", "copies"),
                ("collective_ms", "collectives"),
                ("host_ms", "host"),
                ("idle_ms", "idle"),
            )
            if before["parts"].get(key) or after["parts"].get(key)
        ]
    rows.append(_pair("devices busy", comparison.busy, comparison.busy, "", units.share))
    yield Table("Steps", ["", "before", "after"], rows)


def _told(steps: Data) -> str:
    """Say what the medians tell."""
    if steps["ratio"] is None:
        return f"no difference is told: {steps['reason']}"
    return ratio_told("after", steps, _ALIKE)


def ratio_told(name: str, judgement: Data, alike: str, *, unit: str = "ms") -> str:
    """Say how a value stands to the first's: '19.5 × faster', or without a verdict '0.05 × as long', why."""
    ratio = judgement["ratio"]
    if judgement["verdict"] == "faster":
        return f"{name} is {units.factor(1 / ratio)} × faster"
    if judgement["verdict"] == "slower":
        return f"{name} is {units.factor(ratio)} × slower"
    why = alike if judgement["verdict"] == "alike" else judgement["reason"]
    return f"{name} takes {units.factor(ratio)} × as {'long' if unit == 'ms' else 'much'}: {why}"


def _pair(
    label: str,
    before: Data | None,
    after: Data | None,
    key: str,
    write: Callable[[Any], str] = units.duration,
) -> Row:
    values = (before or {}).get(key or "before"), (after or {}).get(key or "after")
    return Row([label, *(_NOTHING if value is None else write(value) for value in values)])


def _findings(comparison: Comparison) -> Iterator[Block]:
    if not comparison.findings:
        return
    shown = [
        Row([_finding_name(row), *(_cost(row, side) for side in ("before", "after"))], _finding_title(row))
        for row in comparison.findings
    ]
    average = " on average" if comparison.per_step else ""
    yield Table(f"Findings{_per(comparison)}{average}", ["", "before", "after"], shown)


def _per(comparison: Comparison) -> str:
    return ", per step" if comparison.per_step else ", in the whole trace"


def _finding_name(row: Data) -> str:
    if row["state"] == "both":
        return str(row["id"])
    only = "only after" if row["after"] else "only before"
    return f"{row['id']} ({only if row['state'] == 'unknown' else row['state']})"


def _finding_title(row: Data) -> str:
    return titles_told([(side, str((row[side] or {}).get("title") or "")) for side in ("before", "after")])


def titles_told(titles: Sequence[tuple[str, str]]) -> str:
    """Give the title of a finding; each with whose it is, where not all that have it say the same."""
    told = [(name, title) for name, title in titles if title]
    if len({title for _, title in told}) < 2:
        return told[0][1] if told else ""
    return "; ".join(f"{name}: {title}" for name, title in told)


def _cost(row: Data, side: str) -> str:
    finding = row[side]
    if finding is None:
        return "can't be told" if row["state"] == "unknown" else _NOTHING
    cost = findings.cost(finding | {"lost_ms": row[f"{side}_ms"]})
    return f"{cost} in all" if cost and row["once"] else cost or findings.level(finding)


def _table(comparison: Comparison, title: str, rows: Sequence[Data], key: str) -> Iterator[Block]:
    changed = [row for row in rows if not is_alike(row)]
    if rows and not changed:
        yield Remark(f"{title}: no time changed by more than 5 %.")
    slower = [row for row in changed if row["change_ms"] > 0]
    faster = [row for row in changed if row["change_ms"] <= 0][::-1]
    for kind, chosen in (("slower", slower), ("faster", faster)):
        if not chosen:
            continue
        heading = f"{title} that got {kind}{_per(comparison)} ({len(chosen)})"
        table = Table(
            heading if key == "kernels" else "",
            ["name", "before", "after", "change", "count before", "after"],
            [_row(row) for row in chosen[:MAX_SHOWN]],
            _more(len(chosen) - MAX_SHOWN),
        )
        told = [table, *_left_out(comparison, chosen, key)]
        yield from told if key == "kernels" else [Details(heading, told)]


def _row(row: Data) -> Row:
    change = row["change_ms"]
    return Row(
        [
            row["name"],
            units.duration(row["before_ms"]),
            units.duration(row["after_ms"]),
            ("+" if change > 0 else "") + units.duration(change),
            units.count(row["before_count"]),
            units.count(row["after_count"]),
        ]
    )


def _left_out(comparison: Comparison, rows: Sequence[Data], key: str) -> Iterator[Block]:
    """Say that a name may be missing only because a table holds the largest."""
    for side, column in (("before", "before_ms"), ("after", "after_ms")):
        if comparison.left_out[side].get(key) and any(row[column] is None for row in rows):
            yield Remark(f"– {side}: not among the largest that the report lists; it may still be there.")


def _around(comparison: Comparison) -> Iterator[Block]:
    if comparison.not_compared:
        yield Remark(comparison.not_compared)
    if comparison.per_step and _several(comparison):
        yield Remark(f"Per step: one of any name, of which there are {_several(comparison)}.")
    for difference in comparison.differences:
        yield Remark(f"Not alike: {difference}.")
    if not comparison.per_step:
        yield Remark(
            "Not both have steps, so times are of the whole traces: compare them only if both did the same."
        )


def _several(comparison: Comparison) -> str:
    """Tell what steps there are where one side has several names of them, or the two have different ones."""
    told: list[str] = []
    names: list[set[str]] = []
    for side, one in (("before", comparison.before), ("after", comparison.after)):
        steps: Data = one.record.summary.get("steps") or {}
        counts = Counter[str]()  # other threads' steps may have the name too
        for each in (steps, *(steps.get("others") or ())):
            counts[str(each.get("name"))] += each.get("count") or 0
        names.append(set(counts))
        every = [f"{units.count(count)} `{name}`" for name, count in counts.items()]
        told.append(f"{' and '.join(every)} {side}")
    return "" if len(names[0] | names[1]) == 1 else "; ".join(told)


def _more(number: int) -> str:
    return f"and {number} more" if number > 0 else ""
