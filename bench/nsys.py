"""What %%nsys costs above nsys itself, and what its cache of compiles saves.

From Enter to card for a trivial cell, in a real kernel, against `nsys profile` around an equal script (its
report made too), in turns; then the compiling of one cell at its first run and its second.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Figure, Limit
from bench.turns import ROOT, in_turns
from jupyterlab_jaxprof.environment import nsys
from tests.support.kernels import running_kernel

ROUNDS = 3
SCRIPT = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import jax, jax.numpy as jnp
from jupyterlab_jaxprof.nsight.nvtx import Domain
x = jnp.ones((100, 100))
jnp.dot(x, x).block_until_ready()
domain = Domain("jaxprof"); domain.push("capture")
for number in range(5):
    domain.push(f"step {{number}}"); jnp.dot(x, x).block_until_ready(); domain.pop()
domain.pop()
"""
FLAGS = (
    "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--capture-range=nvtx",
    "--nvtx-capture=capture@jaxprof", "--capture-range-end=stop", "--wait=primary",
)  # fmt: skip
COMPILED = """
def net(weights, h):
    for w in weights:
        h = jnp.tanh(h @ w) + jnp.sin(h)
    return h.sum()
weights, h = [jnp.ones((64, 64)) for _ in range(60)], jnp.ones((4, 64))
"""
FIRST_CALL = """%%nsys --steps 1 --no-warmup --no-card
import time
lowered = jax.jit(jax.grad(net)).lower(weights, h)
begin = time.perf_counter(); lowered.compile(); print("compiling", time.perf_counter() - begin)
"""


def plain(installation: nsys.Installation) -> float:
    """Seconds of nsys around an equal script."""
    with tempfile.TemporaryDirectory() as folder:
        script, report = Path(folder, "script.py"), Path(folder, "report")
        script.write_text(SCRIPT)
        command = [
            str(installation.path),
            "profile",
            *FLAGS,
            f"--output={report}",
            sys.executable,
            str(script),
        ]
        for _ in range(3):  # nsys 2022 itself ends at times before it has started anything ('End of file')
            begin = time.perf_counter()
            if not subprocess.run(command, capture_output=True, cwd=folder, env=os.environ).returncode:
                break
        if not report.with_suffix(".nsys-rep").exists():
            streams = [f"--input-file={report}.qdstrm", f"--output-file={report}.nsys-rep"]
            subprocess.run([str(installation.importer), *streams], capture_output=True, check=True)
        return time.perf_counter() - begin


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    installation = nsys.best()
    if installation is None:
        yield Figure("%%nsys", problem="not measured: there is no nsys here")
        return
    platforms = os.environ.get("JAX_PLATFORMS", "cpu")
    with running_kernel(JAX_PLATFORMS=platforms, XLA_PYTHON_CLIENT_PREALLOCATE="false") as kernel:
        kernel.run("import jax, jax.numpy as jnp\nx = jnp.ones((100, 100))")

        def ours() -> float:
            began = time.perf_counter()
            reply = kernel.run("%%nsys\ny = jnp.dot(x, x).block_until_ready()", timeout=120)
            assert reply.status == "ok", reply.text
            return time.perf_counter() - began

        # in the round that isn't counted nsys is tried once, by a capture of nothing
        pairs = in_turns(ROUNDS * (3 if long else 1), ours, lambda: plain(installation))
        name = "a trivial cell under %%nsys, from Enter to card"
        yield Figure.of_pairs(name, pairs[0], "nsys, an equal script", pairs[1], "s", Limit("above", 1.5))
        kernel.run(COMPILED)
        first_s, second_s = (
            float(re.findall(r"compiling ([\d.]+)", kernel.run(FIRST_CALL, timeout=600).stdout)[0])
            for _ in range(2)
        )
        name = "compiling in a second run of %%nsys"
        yield Figure(name, second_s, "s", (Limit("ratio", 0.5),), "in its first run", first_s)
