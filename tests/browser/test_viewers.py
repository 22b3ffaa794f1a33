"""XProf's and TensorBoard's tabs and commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, expect

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.record import Status
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot, set_theme
from tests.support.servers import Server, unpacked

pytestmark = pytest.mark.browser

NAME = "to be viewed"
DARK, LIGHT = "rgb(17, 17, 17)", "rgb(255, 255, 255)"


@pytest.fixture
def run(server: Server) -> Iterator[str]:
    store = Store(server.store)
    with store.begin("trace", NAME) as capture:
        unpacked("no_steps", capture.directory / "plugins/profile" / capture.session)
        record = capture.publish(status=Status.OK)
    yield record.xprof_run or ""
    store.delete(record.id)


def open_panel(lab: Lab) -> Locator:
    lab.go()
    lab.show_panel()
    return lab.row(NAME)


def test_commands_of_the_palette(lab: Lab, server: Server, run: str) -> None:
    open_panel(lab)
    lab.command("Open XProf")
    tab = lab.page.locator(".jp-JaxProf-tab:visible")
    expect(tab.frame_locator("iframe").locator("#viewer")).to_be_visible(timeout=PATIENCE_MS)
    assert lab.tabs[-1] == "XProf"
    pid = server.get_json("jaxprof/api/viewers/xprof")["pid"]
    lab.command("Restart XProf")
    toast = lab.page.locator(".Toastify__toast")
    expect(toast.filter(has_text="XProf was restarted")).to_be_visible(timeout=PATIENCE_MS)
    restarted = server.get_json("jaxprof/api/viewers/xprof")
    assert restarted["state"] == "running"
    assert restarted["pid"] != pid
    lab.command("Stop XProf")
    expect(toast.filter(has_text="XProf was stopped")).to_be_visible(timeout=PATIENCE_MS)
    assert server.get_json("jaxprof/api/viewers/xprof")["state"] == "stopped"


def test_a_tab_is_reloaded_and_follows_the_theme(lab: Lab, server: Server, run: str) -> None:
    lab.open_in_xprof(open_panel(lab))
    assert lab.trace_events()
    page = lab.page.locator(".jp-JaxProf-tab:visible").frame_locator("iframe")
    expect(page.locator("body")).to_have_css("background-color", LIGHT)
    page.locator("body").evaluate("() => { window.before = true }")
    lab.command("Use Theme: JupyterLab Dark")
    expect(page.locator("body")).to_have_css("background-color", DARK)
    assert page.locator("body").evaluate("() => window.before"), "The page was loaded anew for its colours."
    save_screenshot(lab, "xprof-dark")
    server.viewer("xprof", "stop")
    lab.page.locator(".jp-JaxProf-tab:visible").get_by_role("button", name="Reload").click()
    assert lab.trace_events()
    assert page.locator("body").evaluate("() => window.before") is None
    expect(page.locator("body")).to_have_css("background-color", DARK)
    set_theme(server, "JupyterLab Light")


def test_in_browser_tabs_if_so_set(browser: Browser, server: Server, run: str) -> None:
    setting = server.home / "settings/jupyterlab-jaxprof/viewers.jupyterlab-settings"
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text(json.dumps({"openIn": "browser"}))
    with lab_page(browser, server) as lab:
        row = open_panel(lab)
        with lab.page.context.expect_page() as opened:
            lab.open_in_xprof(row)
        assert opened.value.url.startswith(f"{server.url}jaxprof/xprof?run={run.split('/')[0]}")
        assert NAME not in lab.tabs
    setting.unlink()


def test_tensorboard(lab: Lab, server: Server, run: str) -> None:
    """Where it is installed, the launcher and a capture's menu have it."""
    row = open_panel(lab)
    expect(lab.page.locator('.jp-LauncherCard[title*="TensorBoard"]')).to_be_visible()
    lab.menu(row, "Open in TensorBoard")
    frame = lab.page.locator(".jp-JaxProf-tab:visible iframe")
    expect(frame).to_have_attribute("src", re.compile(rf"jaxprof/tensorboard\?run={quote(run, safe='')}&"))
    page = lab.page.locator(".jp-JaxProf-tab:visible").frame_locator("iframe")
    board = page.frame_locator("#viewer")
    # Its profile plugin, at the run.
    expect(board.frame_locator("iframe").locator("body")).to_contain_text(run, timeout=PATIENCE_MS * 2)
    save_screenshot(lab, "tensorboard")
