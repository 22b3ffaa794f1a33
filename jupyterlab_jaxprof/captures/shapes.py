"""What a record's summary may hold, for whoever shows it: a wrong type there would break a card or a list.

A shape is `str`, `bool`, `float` (any number) or `list` (of anything) for that, `[shape]` for a list, and a
dict for an object with some keys; other keys, null and what is missing are no fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_INT64 = 2**63


def _numbers(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, float)


_SAMPLES = {
    **_numbers("count", "minimum", "p20", "lower_quartile", "median", "upper_quartile", "maximum", "drift"),
    "halves": [float],
    "histogram": {"edges": [float], "counts": [float], "beyond": float},
}
_DEVICE = {
    "device": str,
    **_numbers("in_use_bytes", "peak_bytes", "limit_bytes", "pool_bytes", "largest_allocation_bytes"),
}

_TIMELINE = {
    **dict.fromkeys(("source", "window"), str),
    **_numbers("window_ms", "busy_share", "steps_in_window"),
    "partial": bool,
    "blind": [str],
    "devices": [
        {
            "device": str,
            **_numbers("busy_ms", "busy_share", "compute_ms", "copy_ms", "collective_ms", "idle_ms", "ops"),
        }
    ],
    "drawing": {
        **_numbers("start_ms", "end_ms"),
        # an interval is [start_ms, end_ms] or [start_ms, end_ms, label]
        "lanes": [{**dict.fromkeys(("label", "kind"), str), "intervals": [list]}],
        "gaps": [{**_numbers("start_ms", "end_ms"), **dict.fromkeys(("device", "cause"), str)}],
    },
}
_TABLES = {
    "kernels": [
        {
            **dict.fromkeys(("name", "device"), str),
            **_numbers("count", "total_ms", "median_us", "max_us", "share_device", "share_wall"),
        }
    ],
    "hlo_ops": [
        {
            **dict.fromkeys(("name", "module", "scope", "source"), str),
            **_numbers("count", "total_ms", "share_device", "share_wall"),
        }
    ],
    "copies": [
        {
            **dict.fromkeys(("kind", "memory"), str),
            **_numbers("count", "bytes", "total_ms", "gb_per_s", "share_wall"),
        }
    ],
    "calls": [{"name": str, **_numbers("count", "total_ms", "share_wall")}],
    "system_calls": [{"name": str, **_numbers("count", "total_ms", "share_wall")}],
    "annotations": [{"name": str, **_numbers("count", "total_ms", "share_wall", "device_ms")}],
    "modules": [{"name": str, **_numbers("count", "total_ms", "share_device", "share_wall")}],
    "counters": [{**dict.fromkeys(("name", "device", "unit"), str), **_numbers("count", "mean", "max")}],
}
_POINT = {
    **dict.fromkeys(("value", "label", "ending", "error", "hint", "stopped"), str),
    **_numbers("median_ms", "lower_quartile_ms", "upper_quartile_ms", "samples", "first_ms"),
    **_numbers("compiling_ms", "cache_read_ms", "rate", "peak_bytes", "need_bytes"),
    **dict.fromkeys(("knee", "peak_raised", "compiled_before"), bool),
    "peaks": [{"device": str, "peak_bytes": float, "raised": bool}],
    "doubts": [str],
}

SUMMARY: dict[str, Any] = {
    "headline": {"label": str, "value": float, "unit": str},
    "wall_ms": float,
    "place": {"file": str, "line": float},
    "steps": {
        "name": str,
        **_numbers("count", "median_ms", "min_ms", "max_ms", "device_ms"),
        "marks_dispatch": bool,
        "others": [{"name": str, **_numbers("count", "median_ms")}],
        "durations_ms": [float],
        "slowest": [{**_numbers("number", "duration_ms"), "why": str}],
        "parts": _numbers("compute_ms", "copy_ms", "collective_ms", "host_ms", "idle_ms"),
    },
    # Of what has a timeline:
    "timeline": _TIMELINE,
    "tables": _TABLES,
    "tables_left_out": _numbers(*_TABLES),
    # Of kind `time`:
    "sentence": str,
    "first": _numbers(
        "total_ms", "returned_ms", "trace_ms", "lower_ms", "compile_ms", "cache_read_ms", "run_ms", "gc_ms"
    ),
    "autotuning": bool,
    "cached": _SAMPLES,
    "cached_returned": _SAMPLES,
    "repeats": {**_numbers("loops", "left_out", "gc_ms"), "stopped": str},
    "compiles": [
        {
            **dict.fromkeys(("name", "cache", "cause", "reason"), str),
            **_numbers("line", "trace_ms", "lower_ms", "compile_ms"),
            **dict.fromkeys(("again", "operation"), bool),
            "arguments": [str],
        }
    ],
    "compiles_left_out": _numbers("count", "total_ms"),
    "transfers": [
        {"direction": str, "way": str, **_numbers("line", "count", "bytes", "unsized", "waited_ms")},
    ],
    "transfers_left_out": float,
    "memory": {
        "before": [_DEVICE],
        "after": [_DEVICE],
        "programs": [
            {"name": str, **_numbers("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")}
        ],
        "arrays": [
            {"shape": [float], "dtype": str, "size_bytes": float, "holders": [str], "new": bool},
        ],
        **_numbers("arrays_bytes", "arrays_count"),
    },
    "comparison": [
        {
            **dict.fromkeys(("name", "id", "basis"), str),
            **_numbers("value_ms", "own_ms"),
            "ratio": {**_numbers("value", "low", "high"), "differs": bool},
            "differences": [str],
        }
    ],
    # Of kind `sweep`:
    "sweep": {
        "names": [str],
        "rate_unit": str,
        **_numbers("planned", "devices"),
        "series": [{**dict.fromkeys(("label", "along", "verdict"), str), "points": [_POINT]}],
    },
    # Of kind `memory`, besides `memory`:
    "process_bytes": float,
    "remarks": [str],
    "variables": [{**dict.fromkeys(("name", "value", "read"), str), "late": bool}],
    "watch": {
        **_numbers("duration_ms", "samples", "interval_ms", "cost"),
        "series": [
            {
                **dict.fromkeys(("label", "device"), str),
                **_numbers("least_bytes", "most_bytes", "limit_bytes"),
                "columns": [float],
            }
        ],
        "cells": [{"label": str, "code": str, **_numbers("start_ms", "end_ms")}],
        "cells_left_out": float,
    },
}

#: One of a record's findings.
FINDING: dict[str, Any] = {
    **dict.fromkeys(("id", "title", "level", "meaning", "doc"), str),
    **_numbers("lost_ms", "share"),
    "evidence": [str],
    "next": [str],
    "ranges": [{**_numbers("start_ms", "end_ms"), "label": str}],
}

#: What a list of captures tells of a summary.
IN_LISTS = ("headline", "wall_ms", "steps", "sentence")


def misfit(value: Any, shape: Any, path: str = "") -> str | None:
    """Give the path of the first part of `value` that has not its shape, as `.steps.count`; None if all have.

    The path of the whole is empty.
    """
    if value is None:
        return None
    if isinstance(shape, dict):
        return _misfit_of_parts(value, cast("dict[str, Any]", shape), path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return path
        (inner,) = cast("list[Any]", shape)
        found = (misfit(item, inner, path) for item in cast("list[Any]", value))
        return next((wrong for wrong in found if wrong is not None), None)
    fits = is_number(value) if shape is float else isinstance(value, shape)
    return None if fits else path


def _misfit_of_parts(value: Any, shape: Mapping[str, Any], path: str) -> str | None:
    if not isinstance(value, dict):
        return path
    parts = cast("dict[str, Any]", value)
    found = (misfit(parts.get(key), inner, f"{path}.{key}") for key, inner in shape.items())
    return next((wrong for wrong in found if wrong is not None), None)


def is_number(value: Any) -> bool:
    """Tell whether it is a number that others can read too: a float, or an integer of 64 bits."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < _INT64
    return isinstance(value, float)
