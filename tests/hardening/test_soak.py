"""The same thing a thousand times: memory, descriptors, threads and speed stay what they were.

What JAX keeps of every trace is its own: a kernel that does the same without this package tells how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from playwright.sync_api import CDPSession

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Status, Store
from tests.support.browser import Lab, chromium, lab_page, set_theme, write_notebook
from tests.support.captures import published
from tests.support.endurance import FULL, tries
from tests.support.growth import Growth, per_action, slowing
from tests.support.kernels import Kernel, running_kernel
from tests.support.rendering import rendered_ms
from tests.support.servers import Server, running_server

pytestmark = pytest.mark.browser

#: After few tries a heap still finds its size: only what is kept whole of each action would show.
SLOWER = 1.5 if FULL else 5.0

SETUP = """
import jax, jax.numpy as jnp, tempfile
step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
x = jnp.ones((64, 64))
step(x)
"""
BODY = "for number in range(5):\n    step(x).block_until_ready()"
PLAIN_TRACE = f"with tempfile.TemporaryDirectory() as place, jax.profiler.trace(place):\n    {BODY}".replace(
    "\n    step", "\n        step"
)


def repeat(kernel: Kernel, code: str, times: int) -> Growth:
    """Run a cell so often; each time it must do well."""
    growth = Growth(int(kernel.run("import os; os.getpid()").value or 0))
    for _ in range(times):
        reply = kernel.run(code, timeout=120)
        assert reply.status == "ok", reply.text
        growth.look()
    return growth


def check(growth: Growth, kept_bytes: float, *, slower: float = SLOWER) -> None:
    """Nothing grows by more than that with each action."""
    assert growth.bytes_per_action < kept_bytes, growth
    assert growth.more_descriptors <= 2, growth
    assert growth.more_threads <= 2, growth
    assert slowing(growth.processor_s) < slower, growth


def test_traces_and_timings_in_one_kernel() -> None:
    with running_kernel() as plain:
        plain.run(SETUP)
        peer = repeat(plain, PLAIN_TRACE, tries(12, 300))
        peers_cells = repeat(plain, "step(x)", tries(12, 200))
    with running_kernel() as kernel:
        kernel.run(SETUP)
        traces = repeat(kernel, f"%%jaxtrace\n{BODY}", tries(12, 500))
        timings = repeat(kernel, "%%jaxtime -r 5\nstep(x)", tries(12, 200))
    print(f"jax.profiler alone: {peer}\ncells alone: {peers_cells}")
    print(f"%%jaxtrace: {traces}\n%%jaxtime: {timings}")
    check(traces, max(0.0, peer.bytes_per_action) + tries(1_500_000, 10_000))
    check(timings, max(0.0, peers_cells.bytes_per_action) + tries(1_500_000, 10_000))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server(lab=True, arguments=["--LabApp.expose_app_in_browser=True"]) as server:
        set_theme(server, "JupyterLab Light")
        yield server


def test_requests_to_one_server(server: Server) -> None:
    store = Store(server.store)
    growth = Growth(server.pid)
    for number in range(tries(40, 1000)):
        with store.begin("trace", f"soak {number}") as draft:
            (draft.directory / "a.txt").write_bytes(b"x" * 1000)
            record = draft.publish(status=Status.OK)
        listed = server.get_json(f"jaxprof/api/captures?q=soak {number}&limit=20")
        assert [row["id"] for row in listed["captures"]] == [record.id]
        one = f"jaxprof/api/captures/{record.id}"
        server.request("PATCH", one, json={"notes": f"note {number}", "pinned": True}).raise_for_status()
        assert server.get(f"{one}/archive").content
        assert server.request("DELETE", one).status_code == 204
        growth.look()
    print(f"list, patch, archive, delete: {growth}")
    check(growth, tries(300_000, 2_000))


def test_xprof_is_asked_again_and_again(server: Server) -> None:
    run = published(Store(server.store), "gpu_bound", "soak").xprof_run or ""
    address = "xprof/data/plugin/profile/data?host=vm&run=" + quote(run, safe="") + "&tag="
    pid = server.viewer("xprof", "start")["pid"]
    xprof, carrier = Growth(pid), Growth(server.pid)
    for _ in range(tries(12, 200)):
        for tool in ("trace_viewer@", "overview_page", "kernel_stats"):
            assert server.get(address + quote(tool)).status_code == 200
        xprof.look()
        carrier.look()
    assert server.get_json("jaxprof/api/viewers/xprof")["pid"] == pid
    print(f"XProf's process: {xprof}\nthe server that carries it: {carrier}")
    check(carrier, tries(300_000, 5_000))
    check(xprof, tries(3_000_000, 200_000))


def page_counts(devtools: CDPSession) -> dict[str, float]:
    """What the page holds once its garbage is gone."""
    devtools.send("HeapProfiler.collectGarbage")
    return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}


def renderer_bytes() -> float:
    """The memory of the largest page of this process's Chromium."""
    pages = [
        child.memory_info().rss
        for child in psutil.Process().children(recursive=True)
        if any("--type=renderer" in part for part in child.cmdline())
    ]
    return max(pages)


def test_cards_in_one_page(server: Server) -> None:
    store = Store(server.store)
    record = published(store, "gpu_bound", "soak")
    bundle = cards.bundle(record, directory=store.directory(record.id), in_store=True)
    write_notebook(server, "soak.ipynb", ["1"])
    with chromium() as browser, lab_page(browser, server) as lab:
        lab.go("lab/tree/soak.ipynb")
        lab.wait_for_kernel()
        devtools = lab.page.context.new_cdp_session(lab.page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        counts, memory = _render_again_and_again(lab, devtools, bundle, tries(8, 200), tries(5, 25))
    report = {name: per_action([one[name] for one in counts]) for name in counts[0]}
    script_s = [one["TaskDuration"] for one in counts]
    took_s = [b - a for a, b in pairwise(script_s)]
    print(
        f"a round of cards adds {report['JSHeapUsedSize'] / 1e3:+.2f} kB of heap, "
        f"{report['Nodes']:+.2f} nodes, {report['JSEventListeners']:+.2f} listeners, "
        f"{per_action(memory) / 1e3:+.1f} kB to the process; {slowing(took_s):.2f} times the processor time"
    )
    assert report["JSHeapUsedSize"] < tries(60_000, 5_000)
    assert report["Nodes"] < tries(5, 0.5)
    assert report["JSEventListeners"] < tries(3, 0.5)
    assert slowing(took_s) < SLOWER


def _render_again_and_again(
    lab: Lab, devtools: CDPSession, bundle: dict[str, Any], rounds: int, times: int
) -> tuple[list[dict[str, float]], list[float]]:
    counts: list[dict[str, float]] = []
    memory: list[float] = []
    for _ in range(rounds):
        rendered_ms(lab, bundle, cards.MIME_TYPE, times)
        counts.append(page_counts(devtools))
        memory.append(renderer_bytes())
    return counts, memory
