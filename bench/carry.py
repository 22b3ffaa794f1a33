"""Carrying 1 GiB of parameters into a clean process, against np.save and np.load(mmap) of the same arrays.

Run it on a machine that does nothing else, with 2.5 GiB free below the folder that it is given:
`python bench/carry.py [FOLDER]`. All figures are ratios of two things measured in turns, on the same disk;
the memory is what the process has for itself beyond the parameters, at its most.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jupyterlab_jaxprof.nsight.carry import plan

ROUNDS = 5
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


def main(parent: Path) -> None:
    rows = SIZE_BYTES // 4 // LAYERS // 1024
    params = {f"layer{n}": jnp.full((rows, 1024), n, jnp.float32) for n in range(LAYERS)}
    namespace = {"__name__": "__main__", "params": params, "step": jax.jit(lambda tree: tree), "jax": jax}
    ours, numpys = parent / "ours", parent / "numpy"
    writes, reads, memory = [], [], []
    plan(namespace, "step(params)")  # what is imported once is
    for number in range(ROUNDS):
        took = {}
        for who in ("ours", "numpy") if number % 2 else ("numpy", "ours"):
            emptied(ours), emptied(numpys)
            if who == "numpy":
                took[who] = by_numpy(params, numpys), read(READ_BY_NUMPY, numpys)
            else:
                with Peak() as peak:
                    written_s = by_us(namespace, ours)
                memory.append(peak.extra / SIZE_BYTES)
                took[who] = written_s, read(READ_BY_US, ours)
        writes.append((took["ours"][0], took["numpy"][0]))
        reads.append((took["ours"][1], took["numpy"][1]))
    both = [(w[0] + r[0], w[1] + r[1]) for w, r in zip(writes, reads, strict=True)]
    for label, pairs in (("writing", writes), ("reading", reads), ("both (aim: under 2)", both)):
        ratio = statistics.median(a / b for a, b in pairs)
        a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{label}: {a:.2f} s against {b:.2f} s by NumPy; median ratio {ratio:.2f}")
    print(f"memory beside the parameters: {max(memory) * 100:.1f} % of them (aim: under 10 %)")


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=given) as folder:
        main(Path(folder))
