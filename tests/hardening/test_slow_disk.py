"""A slow disk: the figures stay the cell's, the user is told, and nobody else waits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Store
from tests.captures.conftest import publish
from tests.support.endurance import tries
from tests.support.kernels import ROOT, Kernel, running_kernel
from tests.support.servers import Server, running_server
from tests.support.undisturbed import undisturbed

SLOW_S = 0.35
#: What a process starts with whose disk is slow while the file `slow` is there, and stuck while `stuck` is.
SLOW = f"""
import os, time

def slowed(real, here=os.path.dirname(__file__), exists=os.path.exists, sleep=time.sleep):
    def call(*arguments, **options):
        while exists(here + "/stuck"):
            sleep(0.02)
        if exists(here + "/slow"):
            sleep({SLOW_S})
        return real(*arguments, **options)
    return call

for name in ("fsync", "rename", "replace", "mkdir"):
    setattr(os, name, slowed(getattr(os, name)))
"""
SETUP = """
import time, jax, jax.numpy as jnp
f = jax.jit(lambda x: x @ x)
x = jnp.ones((8, 8))
f(x).block_until_ready()
"""
MAGICS = ("%%jaxtime t", "%%jaxtrace t --steps 2", "%%jaxtrace t", "%%jaxsweep n=1")[: tries(2, 4)]
CELL = (
    "began_s = time.perf_counter(); f(x).block_until_ready(); own_ms = (time.perf_counter() - began_s) * 1e3"
)
CARD = "application/vnd.jaxprof.capture+json"


@dataclass
class Bench:
    store: Store
    place: Path
    kernel: Kernel
    server: Server


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("site")
    (place / "sitecustomize.py").write_text(SLOW)
    store = Store(place / "store")
    path = {"PYTHONPATH": os.pathsep.join([str(place), str(ROOT)])}
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        server = running_server(store=store.root, python_path=[place])
        started = pool.submit(stack.enter_context, server)
        kernel = stack.enter_context(running_kernel(JAXPROF_DIR=str(store.root), **path))
        kernel.run(SETUP)
        yield Bench(store, place, kernel, started.result())


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@undisturbed
def test_figures_stay_the_cells_and_saving_is_told(bench: Bench) -> None:
    (bench.place / "slow").touch()
    try:
        for magic in MAGICS:
            before_s = time.monotonic()
            reply = bench.kernel.run(f"{magic}\n{CELL}")
            took_s = time.monotonic() - before_s
            assert (reply.status, reply.traceback) == ("ok", "")
            (row,) = bench.store.list(limit=1).rows
            assert (row.problem, row.record.status) == (None, "ok")
            own_ms = float(bench.kernel.run("own_ms").value or "")
            assert took_s > 3 * SLOW_S, "the disk was not slow"
            told_ms = [row.record.summary["wall_ms"] or 0]
            if row.record.steps is not None:
                told_ms += row.record.steps["durations_ms"]
            assert max(told_ms) < own_ms + SLOW_S * 1e3, magic
            shown = [*reply.displays, *reply.updates]
            assert any("Saving the capture" in each.get("text/plain", "") for each in shown), magic
            assert CARD in shown[-1], shown[-1].keys()
    finally:
        (bench.place / "slow").unlink()


def test_who_reads_waits_for_no_change(bench: Bench) -> None:
    ids = [publish(bench.store, f"run {number}").id for number in range(6)]
    places = [bench.store.captures_dir / each for each in ids]
    (bench.place / "stuck").touch()
    with ThreadPoolExecutor(len(ids)) as pool:
        try:
            changes = [
                pool.submit(
                    bench.server.request, "PATCH", f"jaxprof/api/captures/{each}", json={"pinned": True}
                )
                for each in ids
            ]
            # One has the lock and waits for the disk; all others wait for the lock.
            wait_until(lambda: any(list(place.glob(".capture.json.*")) for place in places))
            listed = bench.server.get_json("jaxprof/api/captures?q=run", timeout=60)["captures"]
            assert [row["id"] for row in listed] == ids[::-1]
            assert bench.server.get_json(f"jaxprof/api/captures/{ids[0]}")["pinned"] is False
            for path in ("api/status", "jaxprof/api/running", "jaxprof/api/status", "jaxprof/api/settings"):
                assert bench.server.get(path).status_code == 200
            assert not any(change.done() for change in changes)
        finally:
            (bench.place / "stuck").unlink()
        assert [change.result().json()["pinned"] for change in changes] == [True] * len(ids)
