"""XProf's first view of a trace, through our tab in JupyterLab and from XProf's own command."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import requests
from playwright.sync_api import Browser, Page

from bench.pages import lab_server
from bench.table import Figure, Limit
from bench.turns import in_turns
from jupyterlab_jaxprof.captures import Store
from tests.support.browser import MODEL, Lab, chromium, lab_page
from tests.support.captures import published
from tests.support.servers import Server

ROUNDS = 3
TRACE = "gpu_bound"
TOOL = "trace_viewer@"
PATIENCE_S = 60
OPEN = f"run => jupyterapp.commands.execute('jaxprof:open-xprof', {{ run, tool: '{TOOL}' }})"


def drawn(page: Page) -> None:
    """Wait until trace_viewer has loaded the events, in whichever frame it is."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for frame in page.frames:
            if "trace_viewer_index" in frame.url:
                frame.wait_for_function(f"() => ({MODEL})()?.getDescendantEvents", timeout=PATIENCE_S * 1e3)
                return
        page.wait_for_timeout(20)
    raise TimeoutError(f"No trace viewer in {[frame.url for frame in page.frames]}")


@contextmanager
def alone(logdir: Path) -> Iterator[str]:
    """XProf's own command; gives its address once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("xprof")), "--logdir", str(logdir), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                with suppress(requests.ConnectionError):
                    requests.get(f"http://localhost:{port}/", timeout=10)
                    break
                time.sleep(0.02)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()


class Views:
    """First views of fresh captures: each has a run of its own, without caches."""

    def __init__(self, browser: Browser, server: Server, lab: Lab) -> None:
        self._browser, self._server, self._lab = browser, server, lab
        self._store = Store(server.store)
        self._names = count()

    def fresh_run(self) -> str:
        return published(self._store, TRACE, f"view {next(self._names)}").xprof_run or ""

    def ours(self, *, started: bool) -> float:
        """Seconds from the command to the events, the process running or not."""
        self._server.viewer("xprof", "start" if started else "stop")
        run = self.fresh_run()
        began = time.perf_counter()
        self._lab.page.evaluate(OPEN, run)
        drawn(self._lab.page)
        seconds = time.perf_counter() - began
        self._lab.page.evaluate("() => jupyterapp.shell.currentWidget.close()")
        return seconds

    def show(self, address: str, run: str) -> None:
        page = self._browser.new_page(viewport={"width": 1400, "height": 900})
        query = urlencode({"run": run, "tag": TOOL, "host": "vm"})
        page.goto(f"{address}/data/plugin/profile/{TOOL}?{query}")
        drawn(page)
        page.close()

    def xprof_alone(self, address: str = "") -> float:
        """The same from `xprof` on: its start too where no address of a running one is given."""
        run = self.fresh_run()
        began = time.perf_counter()
        if address:
            self.show(address, run)
            return time.perf_counter() - began
        with alone(self._store.captures_dir) as started:
            self.show(started, run)
            return time.perf_counter() - began


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    rounds = ROUNDS * (3 if long else 1)
    peer = "xprof and a browser"
    with lab_server() as server, chromium() as browser, lab_page(browser, server) as lab:
        lab.go()
        views = Views(browser, server, lab)
        ours, theirs = in_turns(rounds, lambda: views.ours(started=False), views.xprof_alone)
        name = "XProf's first trace view in our tab, its start too"
        yield Figure.of_pairs(name, ours, peer, theirs, "s", Limit("ratio", 1.25))
        with alone(server.store / "captures") as address:
            ours, theirs = in_turns(
                rounds, lambda: views.ours(started=True), lambda: views.xprof_alone(address)
            )
        name = "the same, XProf running already"
        yield Figure.of_pairs(name, ours, peer, theirs, "s", Limit("above", 0.5))
