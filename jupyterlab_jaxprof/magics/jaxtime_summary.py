"""A timed result as the summary of a record: plain values, none of the cell's, in a bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jupyterlab_jaxprof.timing import TimedResult

MAX_COMPILES = 200
MAX_TRANSFERS = 200
MAX_PROGRAMS = 50
MAX_ARGUMENTS = 30
MAX_TEXT = 1000


def summary_of(
    result: TimedResult, comparison: Sequence[Mapping[str, Any]] = (), *, lines: bool = True
) -> dict[str, Any]:
    """Give the summary of a capture of kind `time`; captures/shapes.py has its keys.

    Of the samples it has the statistics; the result itself, which --save gives, has each. Without `lines` it
    names no line: the body is one.
    """
    data = result.to_dict()
    cached = result.cached
    label, value = ("cached run", cached.median) if cached is not None else ("first run", result.first_ms)
    summary: dict[str, Any] = {
        "headline": {"label": label, "value": value, "unit": "ms"},
        "wall_ms": result.first_ms,
        "steps": None,
        "sentence": data["sentence"],
        "first": data["first"],
        "cached": data["cached"],
        "cached_returned": data["cached_returned"],
        "repeats": _repeats(data["repeats"]),
        "transfers": _transfers(data["transfers"]),
        "transfers_left_out": max(len(data["transfers"] or ()) - MAX_TRANSFERS, 0),
        "memory": memory_of(data["memory"]),
        "comparison": [dict(row) for row in comparison],
    }
    summary |= _compiles(data["compiles"])
    if not lines:
        for entry in [*summary["compiles"], *(summary["transfers"] or ())]:
            entry["line"] = None
    return summary


def _repeats(repeats: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if repeats is None:
        return None
    return {key: repeats[key] for key in ("loops", "left_out", "stopped", "gc_ms")}


def _compiles(compiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keep those that took longest, in the order in which they began."""

    def took_ms(entry: Mapping[str, Any]) -> float:
        return entry["trace_ms"] + entry["lower_ms"] + entry["compile_ms"]

    kept = sorted(range(len(compiles)), key=lambda index: -took_ms(compiles[index]))[:MAX_COMPILES]
    left_out = [entry for index, entry in enumerate(compiles) if index not in set(kept)]
    return {
        "compiles": [_compile(compiles[index]) for index in sorted(kept)],
        "compiles_left_out": {"count": len(left_out), "total_ms": sum(map(took_ms, left_out))},
    }


def _compile(entry: Mapping[str, Any]) -> dict[str, Any]:
    told = ("line", "trace_ms", "lower_ms", "compile_ms", "cache", "cause", "again", "operation")
    kept = {key: entry[key] for key in told}
    return kept | {
        "name": entry["name"][:MAX_TEXT],
        "reason": entry["reason"][:MAX_TEXT],
        "arguments": _arguments(entry["arguments"]),
    }


def _arguments(arguments: Sequence[Mapping[str, str]] | None) -> list[str] | None:
    if arguments is None:
        return None
    texts = [": ".join(filter(None, (argument["name"], argument["type"]))) for argument in arguments]
    more = len(texts) - MAX_ARGUMENTS
    return [text[:MAX_TEXT] for text in texts[:MAX_ARGUMENTS]] + ([f"and {more} more"] if more > 0 else [])


def _transfers(transfers: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    if transfers is None:
        return None
    return [
        {key: value for key, value in transfer.items() if key != "file"}
        for transfer in transfers[:MAX_TRANSFERS]
    ]


def memory_of(memory: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Give what a record keeps of a `MemoryReport.to_dict`, in a bounded size."""
    if memory is None:
        return None
    told = ("before", "after", "arrays_bytes", "arrays_count", "variables")
    arrays = [
        dict(array, holders=[holder[:MAX_TEXT] for holder in array["holders"]]) for array in memory["arrays"]
    ]
    return {key: memory[key] for key in told} | {
        "programs": memory["programs"][:MAX_PROGRAMS],
        "arrays": arrays,
    }
