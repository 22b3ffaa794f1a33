"""How long a big Nsight report takes: a million kernels, from the SQLite export to timeline and findings.

The export is made out of a real one, by repeating its events one after the other. Each is measured in a
process of its own, which never imports jax.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.table import Figure, Limit
from bench.turns import ROOT, in_process

ROUNDS = 3
KERNELS = 1_000_000
CAPTURES = ROOT / "tests/data/h200"
LIKE = "nsys_gpu_bound"
TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
PAUSE_NS = 50_000  # between one repetition and the next
MEASURED = """
import json, resource, sys, time
sys.modules["jax"] = None  # importing it fails
from pathlib import Path
from jupyterlab_jaxprof.timeline.nsight import read_export
begin = time.perf_counter()
read = read_export(Path(sys.argv[1]))
seconds = {"read": time.perf_counter() - begin}
from jupyterlab_jaxprof.diagnosis import diagnose
begin = time.perf_counter()
diagnose(read).to_json()
seconds["diagnose"] = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "peak_bytes": peak, "ops": len(read.ops), "calls": len(read.calls)}))
"""


def repeat_events(path: Path, kernels: int) -> None:
    """Repeat the events of an export in place, until it has about so many kernels."""
    connection = sqlite3.connect(path)
    connection.executescript("pragma synchronous = off; pragma journal_mode = off;")
    there = {row[0] for row in connection.execute("select name from sqlite_master")}
    tables = [table for table in TABLES if table in there]
    (own,) = connection.execute("select count(*) from CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    begin, end = zip(
        *(
            connection.execute(f"select min(start), max(end) from {table} where end is not null").fetchone()
            for table in tables
        ),
        strict=True,
    )
    period = max(end) - min(begin) + PAUSE_NS
    (correlations,) = connection.execute(
        "select max(correlationId) from CUPTI_ACTIVITY_KIND_RUNTIME"
    ).fetchone()
    connection.execute("create temp table repetitions (number integer)")
    connection.executemany(
        "insert into repetitions values (?)", ((number,) for number in range(1, -(-kernels // own)))
    )
    shifts = {"start": period, "end": period, "correlationId": correlations + 1}
    for table in tables:
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        values = ", ".join(
            f"{name} + number * {shifts.get(name, 0)}" if name in shifts else name for name in columns
        )
        where = "where end is not null" if table == "NVTX_EVENTS" else ""
        connection.execute(f"insert into {table} select {values} from {table}, repetitions {where}")
    duration = f"duration + {period} * {-(-kernels // own) - 1}"
    connection.execute(f"update ANALYSIS_DETAILS set duration = {duration}")
    connection.commit()
    connection.close()


def figures(long: bool) -> Iterator[Figure]:
    """Make the export and measure."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "big.sqlite")
        path.write_bytes(lzma.decompress((CAPTURES / f"{LIKE}.sqlite.xz").read_bytes()))
        repeat_events(path, KERNELS)
        found = [json.loads(in_process(MEASURED, path)) for _ in range(ROUNDS * (3 if long else 1))]
        size = path.stat().st_size
    assert found[0]["ops"] >= KERNELS
    seconds = [sum(one["seconds"].values()) for one in found]
    name = "a million kernels of a report, to findings"
    yield Figure.of_values(name, seconds, "s", Limit("value", 5))
    peak = max(one["peak_bytes"] for one in found)
    limit = Limit("value", 4 * size + 150e6)
    yield Figure(f"memory for that, of {size / 1e6:.0f} MB", peak, "bytes", (limit,), samples=len(found))
