"""How long a big Nsight report takes: a million kernels, from the SQLite export to timeline and findings.

    python bench/nsight.py [--kernels 1000000] [--like nsys_gpu_bound]

Makes the export out of a real one, by repeating its events one after the other, and prints seconds and the
memory that they needed. Each is measured in a process of its own, which never imports jax.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CAPTURES = REPOSITORY / "tests" / "data" / "h200"
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
if sys.argv[2] == "diagnose":
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


def main() -> None:
    """Make the export, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--like", default="nsys_gpu_bound", help="the real export to repeat")
    parser.add_argument("--read-only", action="store_true", help="without the diagnosis")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "big.sqlite"
        path.write_bytes(lzma.decompress((CAPTURES / f"{options.like}.sqlite.xz").read_bytes()))
        begin = time.perf_counter()
        repeat_events(path, options.kernels)
        size = path.stat().st_size
        print(f"{options.like}: {size / 2**20:.0f} MiB, made in {time.perf_counter() - begin:.1f} s")
        for _ in range(options.times):
            command = [sys.executable, "-c", MEASURED, str(path), "read" if options.read_only else "diagnose"]
            done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found["seconds"].items())
            peak = found["peak_bytes"]
            print(
                f"  {found['ops']:,} operations, {found['calls']:,} calls: {parts}; "
                f"at most {peak / 2**20:.0f} MiB ({peak / size:.1f} times the file)"
            )


if __name__ == "__main__":
    main()
