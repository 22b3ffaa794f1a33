"""JupyterLab with the labextension and without it: its start in a browser, and what is downloaded for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser

from bench.pages import lab_server
from bench.table import Figure, Limit
from bench.turns import ROOT, in_turns
from tests.support.browser import chromium, lab_page
from tests.support.servers import Server

ROUNDS = 5
LABEXTENSION = ROOT / "jupyterlab_jaxprof/labextension"


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    assert LABEXTENSION.is_dir(), "The labextension isn't built: `jlpm run build:prod` builds it."
    assert not [*LABEXTENSION.glob("static/*.map")], (
        "The labextension is built for development: `jlpm run build:prod` builds it for users."
    )
    size = sum(script.stat().st_size for script in LABEXTENSION.glob("static/*.js"))
    yield Figure("the bundle's scripts", size, "bytes", (Limit("value", 400e3),))
    with tempfile.TemporaryDirectory() as directory:
        link = Path(directory, "jupyterlab-jaxprof")
        # this directory alone: the package may be installed in this environment
        only = f"--LabApp.labextensions_path={directory}"
        with lab_server(only) as server, chromium() as browser:

            def start_s(with_us: bool) -> float:
                link.unlink(missing_ok=True)
                if with_us:
                    link.symlink_to(LABEXTENSION)
                return _start_s(browser, server, with_us)

            rounds = ROUNDS * (3 if long else 1)
            ours, theirs = in_turns(rounds, lambda: start_s(True), lambda: start_s(False))
    yield Figure.of_pairs(
        "JupyterLab's start in a browser", ours, "without the labextension", theirs, "s", Limit("ratio", 1.1)
    )


def _start_s(browser: Browser, server: Server, with_us: bool) -> float:
    """From the request for the page until its launcher takes the keyboard, nothing cached."""
    with lab_page(browser, server) as lab:
        lab.go()
        seconds = lab.page.evaluate("() => performance.now()") / 1e3
        config = json.loads(lab.page.locator("#jupyter-config-data").inner_text())
        there = [one["name"] for one in config["federated_extensions"]]
        assert there == (["jupyterlab-jaxprof"] if with_us else []), there
        if with_us:
            lab.page.locator('.jp-SideBar [data-id="jaxprof-captures"]').wait_for()
    return seconds
