"""Carrying 1 GiB of parameters into a clean process, against np.save and np.load(mmap) of the same arrays.

It wants 2.5 GiB free in the temporary directory (TMPDIR). Both are on the same disk, in turns; the memory
is what the process has for itself beyond the parameters, at its most.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bench.table import Figure, Limit
from jupyterlab_jaxprof.nsight.carry import plan

ROUNDS = 3
SIZE_BYTES = 1 << 30
LAYERS = 64


def own_bytes() -> int:
    """Memory of this process that is not of files: what the kernel would kill it for."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


class Peak:
    """The most memory that the process has for itself, sampled every millisecond."""

    def __enter__(self):
        self.before = self.most = own_bytes()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._over.wait(0.001):
            self.most = max(self.most, own_bytes())

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self.extra = self.most - self.before


def emptied(folder: Path) -> Path:
    """An empty folder, with nothing left to write to the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()
    return folder


def by_numpy(params, folder: Path) -> float:
    folder.mkdir()
    began = time.perf_counter()
    for name, array in params.items():
        np.save(folder / f"{name}.npy", np.asarray(array))
    return time.perf_counter() - began


def by_us(namespace, folder: Path) -> float:
    began = time.perf_counter()
    plan(namespace, "step(params)").write(folder)
    return time.perf_counter() - began


READ_BY_NUMPY = """
import sys, time, pathlib, numpy as np, jax
jax.devices()
began = time.perf_counter()
paths = pathlib.Path(sys.argv[1]).iterdir()
params = {path.stem: jax.device_put(np.load(path, mmap_mode="r")) for path in paths}
jax.block_until_ready(params)
print(time.perf_counter() - began)
"""
READ_BY_US = """
import sys, time, pathlib, numpy as np, jax
from jupyterlab_jaxprof.nsight.carry.restore import restore
jax.devices()
began = time.perf_counter()
params = restore(pathlib.Path(sys.argv[1])).namespace["params"]
jax.block_until_ready(params)
print(time.perf_counter() - began)
"""


def read(program: str, folder: Path) -> float:
    done = subprocess.run([sys.executable, "-c", program, folder], check=True, capture_output=True, text=True)
    return float(done.stdout)


def rounds_of(parent: Path, rounds: int) -> Iterator[tuple[str, tuple[float, float], float]]:
    """Write and read in turns: who, the seconds of both, and the extra memory in shares of the parameters."""
    rows = SIZE_BYTES // 4 // LAYERS // 1024
    params = {f"layer{n}": jnp.full((rows, 1024), n, jnp.float32) for n in range(LAYERS)}
    namespace = {"__name__": "__main__", "params": params, "step": jax.jit(lambda tree: tree), "jax": jax}
    ours, numpys = parent / "ours", parent / "numpy"
    plan(namespace, "step(params)")  # what is imported once is
    for number in range(rounds):
        for who in ("ours", "numpy") if number % 2 else ("numpy", "ours"):
            emptied(ours), emptied(numpys)
            if who == "numpy":
                yield who, (by_numpy(params, numpys), read(READ_BY_NUMPY, numpys)), 0.0
            else:
                with Peak() as peak:
                    written_s = by_us(namespace, ours)
                yield who, (written_s, read(READ_BY_US, ours)), peak.extra / SIZE_BYTES


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    seconds: dict[str, list[tuple[float, float]]] = {"ours": [], "numpy": []}
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for who, took, extra in rounds_of(Path(folder), ROUNDS * (3 if long else 1)):
            seconds[who].append(took)
            if who == "ours":
                memory.append(extra)
    peer = "np.save, np.load(mmap)"
    for name, part in (("written", slice(0, 1)), ("read", slice(1, 2)), ("written and read", slice(0, 2))):
        ours, theirs = ([sum(took[part]) for took in seconds[who]] for who in ("ours", "numpy"))
        limits = [Limit("ratio", 2)] if name == "written and read" else []
        yield Figure.of_pairs(f"1 GiB of parameters {name}", ours, peer, theirs, "s", *limits)
    share = max(memory) * 100
    yield Figure("memory beside those parameters", share, "%", (Limit("value", 10),), samples=len(memory))
