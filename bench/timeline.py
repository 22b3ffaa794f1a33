"""Figures of the timeline and the diagnosis: from file to findings, beside XProf's overview of the same file.

    python bench/timeline.py [directory]

The directory keeps the traces; without one they are made anew: a loop that recompiles with the Python tracer
on (700,000 events and more), and as many kernels of a device, repeated from a real H200's. Each run has a
process of its own, in turns; imports are not counted on either side. It prints the aims beside the figures,
and fails no build.
"""

from __future__ import annotations

import json
import lzma
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jupyterlab_jaxprof.timeline.wire import Buffer, fields  # noqa: E402
from tests.support.xspace import block, number  # noqa: E402

ROUNDS = 7
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


def run(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def measure(program: str, trace: Path) -> dict[str, float]:
    """One run on a copy of its own: XProf keeps what it made beside a trace."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copy(trace, Path(directory, "host.xplane.pb")))
        return json.loads(run(program, copy).splitlines()[-1])


def recompiling_loop(directory: Path) -> Path:
    """Record a loop that recompiles, long enough for the events wanted."""
    steps = 40
    while True:
        log = directory / f"recompiling-{steps}"
        if not log.exists():
            run(RECORD, log, steps)
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


def compare(title: str, trace: Path) -> None:
    ours: list[dict[str, float]] = []
    xprof: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        ours.append(measure(OURS, trace))
        xprof.append(measure(XPROF, trace))

    def median(results: list[dict[str, float]], key: str) -> float:
        return statistics.median(result[key] for result in results)

    size_mb = trace.stat().st_size / 1e6
    seconds, overview_s = median(ours, "seconds"), median(xprof, "seconds")
    print(f"{title}: {int(ours[0]['events']):,} events, {size_mb:.1f} MB")
    print(
        f"  file to findings {seconds:.3f} s (of it reading {median(ours, 'read_s'):.3f} s), XProf's "
        f"overview {overview_s:.3f} s: {seconds / overview_s:.2f} of it (aim: 0.5 at most)"
    )
    print(
        f"  memory {median(ours, 'peak_mb'):.0f} MB (aim: {4 * size_mb + 150:.0f} MB at most), XProf's "
        f"{median(xprof, 'peak_mb'):.0f} MB"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        directory.mkdir(parents=True, exist_ok=True)
        compare("A loop that recompiles, with the Python tracer", recompiling_loop(directory))
        compare("Many kernels of one device", many_kernels(directory))


if __name__ == "__main__":
    main()
