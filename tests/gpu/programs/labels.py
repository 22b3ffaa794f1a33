"""The labels of recorded captures, with what was measured: `python -m tests.gpu.programs.labels DIRECTORY`.

The directory holds what `record_captures.sh` left: NAME.json beside NAME.xplane.pb or NAME.sqlite, which may
be packed with xz. Prints JSON: a label for each capture.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import jax

from tests.gpu.programs.recording import Label
from tests.gpu.programs.table import table
from tests.gpu.record_captures import REPORTS

# What nsys writes into a report that its importer could not read to the end.
DAMAGED = b"Error when processing events"
Spans = list[tuple[float, float]]
# The process's own facts that a reader of the capture may want to check against.
FACTS = ("xla_flags", "python_tracer", "compiles", "compiles_ms", "window_ms")


def union_ns(spans: Iterable[tuple[float, float]]) -> float:
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        if end > reached:
            total += end - max(start, reached)
            reached = end
    return total


def read_xplane(data: bytes) -> tuple[Spans, Spans]:
    """Give what the device did and the marked steps, as (start, end) in ns."""
    operations, steps = [], []
    for plane in jax.profiler.ProfileData.from_serialized_xspace(data).planes:
        for line in plane.lines:
            on_device = plane.name.startswith("/device:GPU") and line.name.startswith("Stream")
            for event in line.events if on_device or plane.name == "/host:CPU" else ():
                span = (event.start_ns, event.start_ns + event.duration_ns)
                if on_device:
                    operations.append(span)
                elif "step_num" in dict(event.stats):
                    steps.append(span)
    return operations, steps


def read_sqlite(data: bytes) -> tuple[Spans, Spans]:
    """Give the same of an Nsight export; its steps are taken to be the whole of the recorded region."""
    with NamedTemporaryFile(suffix=".sqlite") as file:
        Path(file.name).write_bytes(data)
        database = sqlite3.connect(file.name)
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        operations = []
        for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
            if f"CUPTI_ACTIVITY_KIND_{kind}" in tables:
                operations += database.execute(
                    f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_{kind}"
                ).fetchall()
        text = "coalesce(text, (SELECT value FROM StringIds WHERE id = textId))"
        region = database.execute(f"SELECT start, end FROM NVTX_EVENTS WHERE {text} = 'profile_region'")
        spans = region.fetchall()
        database.close()
    return operations, spans


def contents(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def measured(path: Path, data: bytes) -> dict[str, Any]:
    """Give the window from the start of the first step (or operation) to the last end, and its busy share."""
    operations, steps = (read_sqlite if ".sqlite" in path.name else read_xplane)(data)
    start = min(start for start, _ in steps or operations)
    end = max(end for _, end in [*steps, *operations])
    inside = [(max(a, start), b) for a, b in operations if b > start]
    return {
        "device_ops": len(inside),
        "device_busy_share": round(union_ns(inside) / (end - start), 4),
        "device_busy_ms": round(union_ns(inside) / 1e6, 3),
        "file_window_ms": round((end - start) / 1e6, 3),
    }


def described(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    name, data = path.name.split(".")[0], contents(path)
    program = table()[name.removeprefix("nsys_")]
    label: Label = program.label
    must = [list(choice) for choice in label.must]
    if name.startswith("nsys_") and REPORTS[program.name] == "graph":
        must.append(["hidden-in-graphs"])
    damaged = DAMAGED in data
    by_step: dict[str, list[float]] = {}
    for step, _, took_ms in facts["steps_ms"]:
        by_step.setdefault(step, []).append(took_ms)
    marked = {step: times for step, times in by_step.items() if step}
    return {
        "file": path.name,
        "program": program.about,
        "damaged": damaged,  # the recorder lost most of it: nothing can be asked of the diagnosis
        "must": [] if damaged else must,
        "may": list(label.may),
        "minor": list(label.minor),
        "must_not": list(label.must_not),
        "names": list(label.names),
        "slow_step": label.slow_step,
        "steps": {step: len(times) for step, times in marked.items()},
        "median_step_ms": {step: round(statistics.median(times), 3) for step, times in marked.items()},
        "known": {
            key: facts[key] for key in facts if key in FACTS or key.endswith(("_step", "_bytes", "turns"))
        },
        "peak_bytes": facts["memory"].get("peak_bytes_in_use"),
        "limit_bytes": facts["memory"].get("bytes_limit"),
        **measured(path, data),
    }


def main(directory: Path) -> None:
    labels = {}
    for path in sorted(directory.iterdir()):
        name = path.name.split(".")[0]
        if any(kind in path.name for kind in (".xplane.pb", ".sqlite")):
            facts = json.loads((directory / f"{name}.json").read_text())
            labels[name] = described(path, facts)
    print(json.dumps(labels, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
