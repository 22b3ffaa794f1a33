"""The trace for https://ui.perfetto.dev, made of the one that jax.profiler wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, cast

FILE_NAME = "perfetto_trace.json.gz"


def write_perfetto(trace_json: Path, target: Path) -> int:
    """Rewrite `*.trace.json.gz` as Perfetto reads it, and return its number of events.

    Perfetto stumbles over the top-level `metadata` (so JAX removes it, too) and, as an invalid event, over
    the empty object that ends JAX's list (https://github.com/google/perfetto/issues/6251). The file holds at
    most a million events, since its source does.

    Raises:
        OSError: it can't be read or written.
        ValueError: the source is cut off or no trace.
    """
    try:
        with gzip.open(trace_json, "rt", encoding="utf-8") as source:
            trace = json.load(source)
    except EOFError as error:
        raise ValueError(f"{trace_json.name} is cut off") from error
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise ValueError(f"{trace_json.name} holds no trace")
    kept = [event for event in cast("list[Any]", events) if event]
    trace.pop("metadata", None)
    trace["traceEvents"] = kept
    # Level 6 costs twice the time of level 3 for a tenth of the size.
    with gzip.open(target, "wt", encoding="utf-8", compresslevel=3) as file:
        json.dump(trace, file, separators=(",", ":"))
    return len(kept)
