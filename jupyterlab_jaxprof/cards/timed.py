"""The body of a card of kind `time`: the first run's parts, the cached runs, compiles, transfers, memory.

It is made from the record's summary, whose shapes captures/shapes.py checks: anything in it may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import units
from .blocks import Block, Chart, Comparison, Figures, Remark, Row, Share, Shares, Table

MAX_COMPILES = 12
MAX_TRANSFERS = 12
MAX_ARRAYS = 8
MAX_PROGRAMS = 8
MAX_DEVICES = 8
MAX_ARGUMENTS = 6

_COMPILING = "XLA compiling"
_PHASES = (
    ("tracing", "trace_ms"),
    ("lowering", "lower_ms"),
    (_COMPILING, "compile_ms"),
    ("reading the compilation cache", "cache_read_ms"),
    ("running", "run_ms"),
)
_NONE = "–"
_FIRST_RUNS = "single first runs: use -r or -t in both to compare"

Data = Mapping[str, Any]


def blocks(summary: Data) -> list[Block]:
    """Give the blocks of a timing's card, in order."""
    parts: tuple[Callable[[Data], Iterator[Block]], ...] = (
        _first, _cached, _comparison, _compiles, _transfers, _memory
    )  # fmt: skip
    return [block for part in parts for block in part(summary)]


def _first(summary: Data) -> Iterator[Block]:
    first: Data = summary.get("first") or {}
    spent = [(tone, label, first.get(key) or 0.0) for tone, (label, key) in enumerate(_PHASES)]
    if summary.get("autotuning"):
        spent = [
            (tone, f"{label} and autotuning" if label == _COMPILING else label, value)
            for tone, label, value in spent
        ]
    total_ms = sum(value for _, _, value in spent)
    if total_ms <= 0:
        return
    yield Shares(
        f"First run, {units.duration(first.get('total_ms'))}",
        [
            Share(label, units.duration(value), value / total_ms, tone)
            for tone, label, value in spent
            if value > 0
        ],
    )
    returned, total = units.duration(first.get("returned_ms")), units.duration(first.get("total_ms"))
    gc_ms = first.get("gc_ms") or 0.0
    pauses = (
        f" Python's garbage collector took {units.duration(gc_ms)} of it." if gc_ms > 0.05 * total_ms else ""
    )
    yield Remark(f"Returned to Python after {returned}, device done after {total}.{pauses}")


def _cached(summary: Data) -> Iterator[Block]:
    cached: Data | None = summary.get("cached")
    if not cached:
        return
    repeats: Data = summary.get("repeats") or {}
    loops = repeats.get("loops") or 1
    each = f", {units.count(loops)} runs a sample" if loops > 1 else ""
    low, high = units.duration(cached.get("lower_quartile")), units.duration(cached.get("upper_quartile"))
    yield Figures(
        f"Run again{each}",
        [
            ("median", units.duration(cached.get("median"))),
            ("interquartile range", f"{low} to {high}"),
            ("minimum", units.duration(cached.get("minimum"))),
            ("p20", units.duration(cached.get("p20"))),
            ("samples", units.count(cached.get("count"))),
        ],
    )
    yield from _histogram(cached)
    returned: Data = summary.get("cached_returned") or {}
    if returned:
        medians = "medians" if loops == 1 else f"medians; {units.count(loops)} runs in a row, then the wait"
        yield Remark(
            f"Returned to Python after {units.duration(returned.get('median'))} a run, device done after "
            f"{units.duration(cached.get('median'))} ({medians})."
        )


def _histogram(cached: Data) -> Iterator[Block]:
    histogram: Data = cached.get("histogram") or {}
    edges, counts = histogram.get("edges") or [], histogram.get("counts") or []
    if len(counts) < 2 or len(edges) != len(counts) + 1 or None in counts or not any(counts):
        return
    beyond = histogram.get("beyond") or 0
    low, high = units.duration(edges[0]), units.duration(edges[-1])
    bars = [
        (count / max(counts), f"{units.duration(edge)}: {units.count(count)}")
        for edge, count in zip(edges, counts, strict=False)
    ]
    ending = (
        f"; {units.count(beyond)} beyond, up to {units.duration(cached.get('maximum'))}" if beyond else ""
    )
    yield Chart(f"The samples from {low} to {high}", bars, low, high + ending)


def _comparison(summary: Data) -> Iterator[Block]:
    rows: Sequence[Data] = summary.get("comparison") or []
    if not rows:
        return
    spans = [row.get("own_ms") or 0.0 for row in rows] + [row.get("value_ms") or 0.0 for row in rows]
    longest = max(spans) or 1.0
    shown: list[tuple[str, str, float, str]] = []
    bases = list(dict.fromkeys(_basis(row) for row in rows))
    title = f"Compared{bases[0]}" if len(bases) == 1 else "Compared"
    for basis in bases:
        own = next(row.get("own_ms") or 0.0 for row in rows if _basis(row) == basis)
        label = "this" if len(bases) == 1 else f"this{basis}"
        shown.append((label, units.duration(own), own / longest, ""))
        for row in rows:
            if _basis(row) == basis:
                value = row.get("value_ms") or 0.0
                shown.append((str(row.get("name")), units.duration(value), value / longest, _ratio(row)))
    yield Comparison(title, shown)
    for row in rows:
        if row.get("differences"):
            yield Remark(f"Not alike with {row.get('name')}: {'; '.join(row['differences'])}.")


def _basis(row: Data) -> str:
    """Say which figure a comparison is of; earlier versions kept none, and drew medians."""
    return {"p20": ", by the 20th percentile of the runs", "first": ", by the first run"}.get(
        row.get("basis") or "", ""
    )


def _ratio(row: Data) -> str:
    ratio: Data = row.get("ratio") or {}
    value, low, high = ratio.get("value"), ratio.get("low"), ratio.get("high")
    if value is None:
        return "took no time that could be measured"
    if low is None or high is None:
        few = row.get("basis") == "p20"
        why = "too few runs to tell by how much it may be off: -t 1, say, in both" if few else _FIRST_RUNS
        return f"this takes {units.factor(value)} × as long; {why}"
    span = f"{units.factor(low)} to {units.factor(high)}"
    if not ratio.get("differs"):
        return f"this takes {units.factor(value)} × as long ({span}): no difference that can be told"
    if value < 1:
        span = f"{units.factor(1 / high)} to {units.factor(1 / low)}"
        return f"this is {units.factor(1 / value)} × faster ({span})"
    return f"this is {units.factor(value)} × slower ({span})"


def _compiles(summary: Data) -> Iterator[Block]:
    compiles: Sequence[Data] = summary.get("compiles") or []
    if not compiles:
        return
    left_out: Data = summary.get("compiles_left_out") or {}
    longest = sorted(range(len(compiles)), key=lambda index: -_spent_ms(compiles[index]))
    shown, hidden = sorted(longest[:MAX_COMPILES]), longest[MAX_COMPILES:]
    more = len(hidden) + (left_out.get("count") or 0)
    more_ms = sum(_spent_ms(compiles[index]) for index in hidden) + (left_out.get("total_ms") or 0.0)
    lines = any(entry.get("line") is not None for entry in compiles)
    yield Table(
        "Compiled",
        ["function", *(["line"] if lines else []), "trace", "lower", "compile", "cache"],
        [_compile(compiles[index], lines) for index in shown],
        f"and {units.count(more, 'more', 'more')}, {units.duration(more_ms)} in all" if more else "",
    )


def _spent_ms(entry: Data) -> float:
    return sum(entry.get(key) or 0.0 for key in ("trace_ms", "lower_ms", "compile_ms"))


def _compile(entry: Data, lines: bool) -> Row:
    cache = {"hit": "hit", "written": "written", "miss": "not kept"}.get(entry.get("cache") or "", _NONE)
    cells = [str(entry.get("name")), *([_line(entry)] if lines else [])]
    cells += [_time(entry.get(key)) for key in ("trace_ms", "lower_ms", "compile_ms")]
    arguments = entry.get("arguments")
    told = list(arguments or [])[:MAX_ARGUMENTS]
    if arguments and len(arguments) > len(told):
        last = arguments[-1]
        told.append("…" if last.startswith("and ") else f"and {len(arguments) - len(told)} more")
    takes = ", ".join(told) if arguments else "no arguments" if arguments is not None else ""
    return Row([*cells, cache], " · ".join(filter(None, [takes, entry.get("reason") or ""])))


def _line(entry: Data) -> str:
    return units.count(entry.get("line")) if entry.get("line") is not None else _NONE


def _time(milliseconds: float | None) -> str:
    return units.duration(milliseconds) if milliseconds else _NONE


def _transfers(summary: Data) -> Iterator[Block]:
    transfers: Sequence[Data] | None = summary.get("transfers")
    if transfers is None:
        return
    if not transfers:
        yield Remark("No implicit transfer between host and device was seen in the first run.")
        return
    more = max(len(transfers) - MAX_TRANSFERS, 0) + (summary.get("transfers_left_out") or 0)
    lines = any(transfer.get("line") is not None for transfer in transfers)
    yield Table(
        "Implicit transfers in the first run",
        ["what", *(["line"] if lines else []), "count", "size", "waited"],
        [_transfer(transfer, lines) for transfer in transfers[:MAX_TRANSFERS]],
        f"and {more:,.0f} more places" if more > 0 else "",
    )
    if any(transfer.get("unsized") for transfer in transfers):
        yield Remark(
            "JAX tells how large a write is only while the call that writes is compiled; of a call that it "
            "knows already the size is left open: –, or ≥ where a part is known."
        )


def _transfer(transfer: Data, lines: bool) -> Row:
    reads = transfer.get("direction") == "read"
    what = f"read by {transfer.get('way')}" if reads else f"written as {transfer.get('way')}"
    waited = _time(transfer.get("waited_ms")) if reads else _NONE
    size = units.size(transfer.get("bytes"))
    if transfer.get("unsized") and transfer.get("bytes"):
        size = f"≥ {size}"
    cells = [what, *([_line(transfer)] if lines else []), units.count(transfer.get("count")), size, waited]
    return Row(cells)


def _memory(summary: Data) -> Iterator[Block]:
    memory: Data | None = summary.get("memory")
    if memory is None:
        return
    before, after = memory.get("before") or [], memory.get("after") or []
    devices = [_device(*pair) for pair in zip(before, after, strict=False) if _is_known(*pair)]
    if devices:
        yield Table(
            "Device memory",
            ["device", "before", "after", "change", "process's peak", "limit"],
            devices[:MAX_DEVICES],
            more(len(devices) - MAX_DEVICES, "device"),
        )
    programs: Sequence[Data] = memory.get("programs") or []
    if programs:
        needs = ("argument_bytes", "output_bytes", "temporary_bytes")
        yield Table(
            "What the programs need" + (", on each of their devices" if len(after) > 1 else ""),
            ["function", "arguments", "output", "temporary"],
            [
                Row([str(program.get("name")), *(units.size(program.get(need)) for need in needs)])
                for program in programs[:MAX_PROGRAMS]
            ],
            more(len(programs) - MAX_PROGRAMS, "program"),
        )
    yield from _arrays(memory)


def _arrays(memory: Data) -> Iterator[Block]:
    arrays: Sequence[Data] = memory.get("arrays") or []
    alive = units.count(memory.get("arrays_count"), "array")
    of_all = f"{alive} alive, {units.size(memory.get('arrays_bytes'))} in all"
    left = [array for array in arrays if array.get("new")]
    if not left:
        yield Remark(f"No array that this made is alive now ({of_all}).")
        return
    yield Table(
        f"Largest arrays that this left alive ({of_all})",
        ["held by", "type", "size"],
        [array_row(array) for array in left[:MAX_ARRAYS]],
        more(len(left) - MAX_ARRAYS, "array"),
    )


def array_row(array: Data) -> Row:
    """Write an array: who holds it, its type and its size."""
    holders = ", ".join(array.get("holders") or []) or "nothing that could be found"
    shape = ",".join(units.count(length).replace(",", "") for length in array.get("shape") or [])
    return Row([holders, f"{array.get('dtype')}[{shape}]", units.size(array.get("size_bytes"))])


def _is_known(before: Data, after: Data) -> bool:
    return before.get("in_use_bytes") is not None and after.get("in_use_bytes") is not None


def _device(before: Data, after: Data) -> Row:
    change = after["in_use_bytes"] - before["in_use_bytes"]
    sign = "+" if change > 0 else ""
    raised = (after.get("peak_bytes") or 0) > (before.get("peak_bytes") or 0)
    peak = units.size(after.get("peak_bytes")) + (" (raised)" if raised else "")
    return Row(
        [
            str(after.get("device")),
            units.size(before["in_use_bytes"]),
            units.size(after["in_use_bytes"]),
            sign + units.size(change),
            peak,
            units.size(after.get("limit_bytes")),
        ]
    )


def more(number: int, noun: str) -> str:
    """Tell of so many that are not shown; empty when there are none."""
    return f"and {units.count(number, f'more {noun}')}" if number > 0 else ""
