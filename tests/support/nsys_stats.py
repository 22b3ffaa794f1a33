"""What `nsys stats` says of a report, to compare with."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from jupyterlab_jaxprof.timeline.model import OpKind, Timeline


def tables(said: str) -> dict[str, list[dict[str, str]]]:
    """The rows of each table that it printed as CSV, by its name; one that it skipped has none."""
    found: dict[str, list[dict[str, str]]] = {}
    block: list[str] = []
    for line in [*said.splitlines(), "Processing end"]:
        if line.startswith("Processing "):
            if block:
                body = [row for row in block[1:] if row and not row.startswith("SKIPPED")]
                found[Path(block[0].split("[")[-1].split("]")[0]).stem] = list(csv.DictReader(body))
            block = []
        block.append(line)
    return found


def summed(names: list[str], durations: np.ndarray) -> dict[str, tuple[int, int]]:
    """Count and total by name."""
    counts, totals = Counter[str](), defaultdict[str, float](float)
    for name, duration in zip(names, durations.tolist(), strict=True):
        counts[name] += 1
        totals[name] += duration
    return {name: (counts[name], round(totals[name])) for name in counts}


def assert_equal(read: Timeline, stats: dict[str, list[dict[str, str]]]) -> None:
    """Kernels, copies and calls of a timeline are those of `nsys stats`, to the nanosecond."""
    ops = read.ops
    for kinds, report, label, count in (
        ((OpKind.KERNEL,), "cuda_gpu_kern_sum", "Name", "Instances"),
        ((OpKind.COPY, OpKind.SET), "cuda_gpu_mem_time_sum", "Operation", "Count"),
    ):
        chosen = ops.take(np.isin(ops.kind, kinds))
        expected = {row[label]: (int(row[count]), int(row["Total Time (ns)"])) for row in stats[report]}
        assert summed([read.text(number) for number in chosen.name], chosen.duration_ns) == expected
    called = summed([read.text(number) for number in read.calls.name], read.calls.duration_ns)
    assert called == {
        row["Name"]: (int(row["Num Calls"]), int(row["Total Time (ns)"])) for row in stats["cuda_api_sum"]
    }
