"""Figures of the timeline and the diagnosis: from file to findings, beside XProf's overview of the same file.

The traces: a loop that recompiles with the Python tracer on (700,000 events and more), and as many kernels
of a device, repeated from a real H200's. Each run has a process of its own, in turns; imports are counted
on neither side. JAXPROF_BENCH_TRACES names a directory that keeps the recorded trace from one run to the
next.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.table import Figure, Limit
from bench.turns import ROOT, in_process
from jupyterlab_jaxprof.timeline.wire import Buffer, fields
from tests.support.xspace import block, number

ROUNDS = 3
EVENTS = 700_000

RECORD = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def train_step(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jax.grad(lambda y: jnp.sum(y * x))(x).sum()

weights = [jnp.ones((64, 64)) for _ in range(8)]
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 1
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for number in range(int(sys.argv[2])):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            with jax.profiler.TraceAnnotation("make_batch"):
                x = jnp.ones((number + 1, 64))
            train_step(weights, x).block_until_ready()
"""

OURS = """
import json, resource, sys, time
from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.diagnosis import diagnose
began = time.perf_counter()
read = timeline.read(sys.argv[1])
read_s = time.perf_counter() - began
diagnose(read).to_json()
print(json.dumps({
    "seconds": time.perf_counter() - began,
    "read_s": read_s,
    "events": len(read.ops) + len(read.ranges) + len(read.calls) + len(read.steps),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""

XPROF = """
import json, resource, sys, time
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
began = time.perf_counter()
xspace_to_tool_data([sys.argv[1]], "overview_page", {})
print(json.dumps({
    "seconds": time.perf_counter() - began,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def measure(program: str, trace: Path) -> dict[str, float]:
    """One run on a copy of its own: XProf keeps what it made beside a trace."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copy(trace, Path(directory, "host.xplane.pb")))
        return json.loads(in_process(program, copy).splitlines()[-1])


def recompiling_loop(directory: Path) -> Path:
    """Record a loop that recompiles, long enough for the events wanted."""
    steps = 40
    while True:
        log = directory / f"recompiling-{steps}"
        if not log.exists():
            in_process(RECORD, log, steps)
        (trace,) = log.rglob("*.xplane.pb")
        if measure(OURS, trace)["events"] >= EVENTS:
            return trace
        steps *= 2


def raw_fields(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The number, all bytes and the content of each field of a message."""
    at = 0
    for part in fields(Buffer(content), 0, len(content)):
        yield part.number, content[at : part.end], content[part.start : part.end]
        at = part.end


def many_kernels(directory: Path) -> Path:
    """Write the stream of a real trace again and again, each time later, as lines of its device."""

    def later(line: bytes, ns: int) -> bytes:
        return b"".join(number(3, 13_519_060 + ns) if at == 3 else whole for at, whole, _ in raw_fields(line))

    def repeated(plane: bytes) -> bytes:
        parts = list(raw_fields(plane))
        line = next(content for at, _, content in parts if at == 3)
        count = -(-EVENTS // sum(at == 4 for at, _, _ in raw_fields(line)))
        lines = b"".join(block(3, later(line, n * 60_000_000)) for n in range(count))
        return b"".join(lines if at == 3 else whole for at, whole, _ in parts)

    data = lzma.decompress((ROOT / "tests/data/h200/tiny_scan.xplane.pb.xz").read_bytes())
    trace = directory / "many-kernels.xplane.pb"
    with trace.open("wb") as file:
        for _, whole, content in raw_fields(data):
            file.write(block(1, repeated(content)) if b"/device:GPU:0" in content[:40] else whole)
    return trace


def compared(title: str, trace: Path, rounds: int) -> Iterator[Figure]:
    """One trace: seconds and memory."""
    ours: list[dict[str, float]] = []
    xprof: list[dict[str, float]] = []
    for _ in range(rounds):
        ours.append(measure(OURS, trace))
        xprof.append(measure(XPROF, trace))
    size_bytes = trace.stat().st_size
    events = int(ours[0]["events"])

    def both(key: str, scale: float) -> tuple[list[float], list[float]]:
        return [one[key] * scale for one in ours], [one[key] * scale for one in xprof]

    peer = "XProf's overview"
    mine, theirs = both("seconds", 1)
    name = f"{title}: {events:,} events to findings"
    yield Figure.of_pairs(name, mine, peer, theirs, "s", Limit("ratio", 0.5))
    mine, theirs = both("peak_mb", 2**20)
    name = f"memory for that, of {size_bytes / 1e6:.0f} MB"
    yield Figure.of_pairs(name, mine, peer, theirs, "bytes", Limit("value", 4 * size_bytes + 150e6))


def figures(long: bool) -> Iterator[Figure]:
    """Make the traces and measure."""
    rounds = ROUNDS * (3 if long else 1)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(os.environ.get("JAXPROF_BENCH_TRACES", temporary))
        directory.mkdir(parents=True, exist_ok=True)
        yield from compared("a loop that recompiles", recompiling_loop(directory), rounds)
        yield from compared("many kernels", many_kernels(directory), rounds)
