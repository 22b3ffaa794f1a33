"""What %%nsys costs above nsys itself, and what its cache of compiles saves.

    python bench/nsys.py

From Enter to card for a trivial cell, in a real kernel, against `nsys profile` around an equal script (its
report made too), in turns; then the compiling of one cell at its first run and its second.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY))

from jupyterlab_jaxprof.environment import nsys  # noqa: E402
from tests.support.kernels import running_kernel  # noqa: E402

ROUNDS = 5
SCRIPT = f"""
import sys; sys.path.insert(0, {str(REPOSITORY)!r})
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


def main() -> None:
    """Measure and print."""
    installation = nsys.best()
    if installation is None:
        print("There is no nsys here: nothing was measured.")
        return
    platforms = os.environ.get("JAX_PLATFORMS", "")
    with running_kernel(JAX_PLATFORMS=platforms, XLA_PYTHON_CLIENT_PREALLOCATE="false") as kernel:
        kernel.run("import jax, jax.numpy as jnp\nx = jnp.ones((100, 100))")
        ours, theirs = list[float](), list[float]()
        for _ in range(ROUNDS + 1):
            begin = time.perf_counter()
            reply = kernel.run("%%nsys\ny = jnp.dot(x, x).block_until_ready()")
            ours.append(time.perf_counter() - begin)
            assert reply.status == "ok", reply.text
            theirs.append(plain(installation))
        first_s = ours.pop(0)  # nsys is tried once, by a capture of nothing
        above_s = statistics.median(ours) - statistics.median(theirs)
        print(
            f"a trivial cell, from Enter to card: {statistics.median(ours):.2f} s, "
            f"{above_s:+.2f} s above nsys around an equal script (limit 1.5 s); "
            f"the first time, with a trial of nsys, {first_s:.2f} s"
        )
        kernel.run(COMPILED)
        compiling = [
            float(re.findall(r"compiling ([\d.]+)", kernel.run(FIRST_CALL, timeout=600).stdout)[0])
            for _ in range(2)
        ]
        print(
            f"compiling at the first run {compiling[0]:.1f} s, at the second {compiling[1]:.1f} s: "
            f"{compiling[1] / compiling[0]:.0%} (limit 50 %)"
        )


if __name__ == "__main__":
    main()
