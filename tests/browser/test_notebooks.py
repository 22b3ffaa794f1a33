"""In notebooks: cards, kernels without the magics, and Notebook 7."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.record import Status
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot, write_notebook
from tests.support.findings import finding, note, summary
from tests.support.servers import Server, unpacked

pytestmark = pytest.mark.browser

RUN_ATTACK = '<script>window.attacked = 1</script><img src="x" onerror="window.attacked = 2">'


def saved_card(server: Server, name: str, extra: str = "") -> str:
    """Save a notebook, as another server would have, whose only output is a capture's card; gives the run."""
    store = Store(server.store)
    with store.begin("trace", "from a saved notebook") as capture:
        unpacked("no_steps", capture.directory / "plugins/profile" / capture.session)
        record = capture.publish(status=Status.OK, summary=summary(), findings=[finding(), note()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXPROF_BASE_URL", "/hub/of/another/")
        bundle = cards.bundle(record, directory=store.directory(record.id), in_store=True)
    run = record.xprof_run
    assert run is not None
    html = bundle["text/html"] + extra
    assert 'href="/hub/of/another/jaxprof/xprof' in html
    output = nbformat.v4.new_output("display_data", data={**bundle, "text/html": html})
    write_notebook(server, name, [""], [output])
    return run


def test_card_in_an_untrusted_notebook(lab: Lab, server: Server) -> None:
    run = saved_card(server, "saved.ipynb", RUN_ATTACK)
    lab.go("lab/tree/saved.ipynb")
    card = lab.page.locator(".jp-JaxProf-card .jaxprof-card")
    expect(card).to_contain_text("from a saved notebook")
    assert card.evaluate("card => getComputedStyle(card).borderTopWidth") == "1px"
    expect(card).to_contain_text("The host starves the device: it waits for load_data")
    # Live cards are made of the record alone: no HTML of the notebook's stands in them.
    expect(card).to_contain_text("171 ms in 6 gaps")
    expect(card.get_by_role("application")).to_be_visible()
    hint = card.get_by_text("jax.device_put does not wait")
    expect(hint).to_have_count(0)
    card.get_by_text("A batch is copied to the device in every step").click()
    expect(hint).to_be_visible()
    save_screenshot(lab, "card-untrusted")
    link = card.get_by_role("link", name="Open in XProf")
    address = link.get_attribute("href") or ""
    assert address.startswith(server.url + "jaxprof/xprof?run=")
    link.click()
    tab = lab.page.locator(".jp-JaxProf-tab:visible")
    expect(tab.locator(".jp-JaxProf-tabName")).to_have_text(run, timeout=PATIENCE_MS)
    assert lab.trace_events()
    assert lab.page.evaluate("window.attacked") is None
    # The same run again is the same tab; another one only when asked for.
    lab.page.locator("#jp-main-dock-panel .lm-TabBar-tab").first.click()
    link.click()
    expect(tab).to_be_visible()
    assert lab.tabs.count("from a saved notebook") == 1
    tab.get_by_title("Open another tab of this run").click()
    expect(lab.page.locator(".lm-TabBar-tabLabel").get_by_text("from a saved notebook")).to_have_count(2)
    with lab.page.context.expect_page() as opened:
        lab.page.locator(".jp-JaxProf-tab:visible").get_by_title("Open in a new browser tab").click()
    assert "jaxprof/xprof?run=" in opened.value.url


def test_kernel_without_the_magics(lab: Lab, server: Server) -> None:
    write_notebook(server, "without.ipynb", ["%unload_ext jupyterlab_jaxprof", "%%jaxtrace\n1", "%jaxprof"])
    lab.go("lab/tree/without.ipynb")
    lab.wait_for_kernel()
    lab.run_cell(0)
    lab.run_cell(1)
    toast = lab.page.locator(".Toastify__toast").filter(has_text="%pip install jupyterlab-jaxprof")
    expect(toast).to_contain_text("%%jaxtrace")
    lab.run_cell(2)
    expect(toast).to_have_count(1)
    expect(toast).to_contain_text("%jaxprof")
    toast.get_by_role("button", name="Insert a cell").click()
    expect(lab.cells).to_have_count(4)
    expect(lab.cells.nth(2)).to_contain_text("%pip install jupyterlab-jaxprof")


def test_notebook_7(browser: Browser, server: Server) -> None:
    """The card's link opens a browser tab, for want of JupyterLab's main area; the sidebar is there too."""
    run = saved_card(server, "classic.ipynb")
    with lab_page(browser, server) as lab:
        lab.go("notebooks/classic.ipynb", reset=False)
        card = lab.page.locator(".jp-JaxProf-card .jaxprof-card")
        expect(card).to_contain_text("from a saved notebook", timeout=PATIENCE_MS)
        with lab.page.context.expect_page() as opened:
            card.get_by_role("link", name="Open in XProf").click()
        assert run.split("/")[0] in opened.value.url
        opened.value.close()
        lab.page.get_by_role("menuitem", name="View", exact=True).click()
        lab.page.locator(".lm-Menu-item").filter(has_text="Left Sidebar").hover()
        lab.page.locator(".lm-Menu-item").filter(has_text="JaxProf").click()
        expect(lab.row("from a saved notebook").first).to_be_visible()
        lab.row("from a saved notebook").first.dblclick()
        tab = lab.page.locator(".jp-JaxProf-capture:visible")
        expect(tab.get_by_role("tab", name="Environment")).to_be_visible()
        save_screenshot(lab, "notebook7")
