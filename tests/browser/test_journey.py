"""From a cell to its trace in XProf, at each kind of base URL."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from jupyterlab_jaxprof.captures import Store
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot, write_notebook
from tests.support.servers import Server

pytestmark = pytest.mark.browser

NAME = "naïve step #1 +2"
CELLS = [
    "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: (x @ x).sum())\nx = jnp.ones((200, 200))",
    f"%%jaxtrace '{NAME}' --steps 3 --step-name my_named_step\nf(x)",
]

# Count what JupyterLab itself adds to the browser's history from now on; gives the history's length.
COUNT_STEPS = """() => {
    window.steps = 0;
    const push = history.pushState;
    history.pushState = function(...step) { window.steps += 1; push.apply(this, step); };
    return history.length;
}"""


@pytest.mark.parametrize("base_url", ["/", "/user/me@host.org/"])
def test_from_cell_to_xprof(
    browser: Browser,
    server_at: Callable[[str], Server],
    base_url: str,
) -> None:
    server = server_at(base_url)
    write_notebook(server, "journey.ipynb", CELLS)
    with lab_page(browser, server) as lab:
        lab.go("lab/tree/journey.ipynb")
        lab.show_panel()
        expect(lab.panel).to_contain_text("%%jaxtrace")
        save_screenshot(lab, "empty")
        lab.wait_for_kernel()
        lab.run_cell(0)
        card = lab.run_cell(1).locator(".jp-JaxProf-card")
        expect(card).to_contain_text(NAME)
        expect(lab.row(NAME)).to_be_visible()
        expect(lab.row(NAME)).to_contain_text("journey.ipynb")
        _downloads_are_whole(lab, server)
        _opens_in_xprof(lab)
        save_screenshot(lab, "xprof")
        _comes_back_after_a_reload(lab)


def _downloads_are_whole(lab: Lab, server: Server) -> None:
    record = Store(server.store).list(text=NAME).rows[0].record
    assert record is not None
    lab.menu(lab.row(NAME), "Details")
    for file in record.files:
        base = file.path.rsplit("/", 1)[-1]
        button = lab.panel.get_by_role("button", name=f"Download {file.path}")
        name, content = lab.download(button.click)
        assert name.endswith(base)
        assert content == (server.store / "captures" / record.id / file.path).read_bytes()
    name, content = lab.download(lambda: lab.menu(lab.row(NAME), "Download All Files"))
    assert name.endswith(".zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        packed = {entry.rsplit("/", 1)[-1] for entry in archive.namelist()}
        assert packed >= {file.path.rsplit("/", 1)[-1] for file in record.files}
    lab.panel.get_by_role("button", name="Close the details").click()


def _opens_in_xprof(lab: Lab) -> None:
    before = lab.page.evaluate(COUNT_STEPS)
    lab.open_in_xprof(lab.row(NAME))
    expect(lab.page.locator("#jp-main-dock-panel .lm-mod-current .lm-TabBar-tabLabel").last).to_have_text(
        NAME
    )
    assert {"my_named_step 0", "my_named_step 1", "my_named_step 2"} <= lab.trace_events().keys()
    assert lab.drawn_colours() > 5
    # JupyterLab itself leaves the notebook's address when another tab is in front.
    assert lab.page.evaluate("history.length - window.steps") == before
    assert lab.page.url.startswith(lab.server.url + "lab")
    assert "run=" not in lab.page.url


def _comes_back_after_a_reload(lab: Lab) -> None:
    _wait_for_workspace(lab, "trace_viewer@")
    lab.reload()
    tab = lab.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").get_by_text(NAME, exact=True)
    tab.wait_for(timeout=PATIENCE_MS)
    assert "my_named_step 2" in lab.trace_events()
    expect(lab.row(NAME)).to_be_visible()


def _wait_for_workspace(lab: Lab, text: str) -> None:
    """Wait until JupyterLab has saved its layout, which it does a while after a change."""
    for _ in range(PATIENCE_MS // 100):
        saved = (lab.server.home / "workspaces").glob("*.jupyterlab-workspace")
        if any(text in path.read_text() for path in saved):
            return
        lab.page.wait_for_timeout(100)
    raise AssertionError(f"No workspace with {text!r} was saved.")
