"""What the sidebar says when something is wrong: limits, servers, versions, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from jupyterlab_jaxprof.captures import Store
from tests.browser.conftest import MAIN_URL
from tests.browser.panel import add, open_panel, store
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot, set_theme
from tests.support.servers import running_server

__all__ = ["store"]
pytestmark = pytest.mark.browser


def test_over_the_limit(browser: Browser, tmp_path: Path) -> None:
    """The oldest are offered for deletion, and only what is confirmed goes; nothing pinned or unreadable."""
    store = Store(tmp_path / "store")
    for name in ("old", "kept", "new"):
        add(store, name)
    store.update(store.list(text="kept").rows[0].id, pinned=True)
    arguments = ["--JaxProfApp.size_limit_bytes=7000"]
    limited = running_server("/", store.root, lab=True, arguments=arguments)
    with limited as server, lab_page(browser, server) as lab:
        open_panel(lab)
        save_screenshot(lab, "over-the-limit")
        lab.panel.get_by_role("button", name="Delete the oldest").click()
        dialog = lab.page.get_by_role("dialog")
        expect(dialog.get_by_role("listitem")).to_contain_text(["old"])
        expect(dialog.get_by_role("listitem")).to_contain_text("kB")
        dialog.get_by_role("button", name="Delete").click()
        expect(lab.row("old")).to_have_count(0)
        expect(lab.row("kept")).to_be_visible()
        expect(lab.row("new")).to_be_visible()
        for name in ("more", "too much"):
            store.update(add(store, name), pinned=True)
        (store.directory(store.list(text="new").rows[0].id) / "capture.json").write_text("{")
        expect(lab.panel).to_contain_text("All captures are pinned or unreadable")
        expect(lab.panel.get_by_role("button", name="Delete the oldest")).to_have_count(0)
        save_screenshot(lab, "nothing-to-delete")


def test_server_half_missing(browser: Browser) -> None:
    """Without the server extension the panel and a viewer's tab say so, and what mends it."""
    with running_server(MAIN_URL, lab=True, extension=False) as server, lab_page(browser, server) as lab:
        set_theme(server, "JupyterLab Light")
        open_panel(lab)
        expect(lab.panel).to_contain_text("jupyter server extension enable jupyterlab_jaxprof")
        expect(lab.page.locator('.jp-LauncherCard[title*="TensorBoard"]')).to_have_count(0)
        lab.page.locator('.jp-LauncherCard[title*="XProf"]').click()
        tab = lab.page.locator(".jp-JaxProf-tab:visible")
        expect(tab).to_contain_text("jupyter server extension enable jupyterlab_jaxprof")
        save_screenshot(lab, "missing")


def test_other_versions(lab: Lab, store: Store) -> None:
    """A server that speaks other routes stops the panel; one of another version is only told."""
    add(store, "here")
    api = 1

    def answer(route: Route) -> None:
        status = route.fetch().json()
        route.fulfill(json=status | {"version": "9.9.9", "api": api})

    lab.page.route("**/jaxprof/api/status*", answer)
    open_panel(lab)
    expect(lab.panel.get_by_role("alert")).to_contain_text("9.9.9")
    expect(lab.row("here")).to_be_visible()
    api = 2
    lab.panel.get_by_role("button", name="Refresh").click()
    expect(lab.panel).to_contain_text("pip install -U jupyterlab-jaxprof")
    expect(lab.row("here")).to_have_count(0)


def test_unreachable_and_back(lab: Lab, store: Store) -> None:
    add(store, "here")
    open_panel(lab)
    lab.row("here").click()
    lab.page.route("**/jaxprof/api/**", lambda route: route.abort())
    lab.page.keyboard.press("Space")
    details = lab.panel.locator(".jp-JaxProf-details")
    expect(details).to_contain_text("The Jupyter server does not answer.")
    lab.panel.get_by_role("button", name="Refresh").click()
    expect(lab.panel).to_contain_text("does not answer")
    lab.page.unroute("**/jaxprof/api/**")
    expect(lab.row("here")).to_be_visible()
    expect(details).to_contain_text("Directory")
    expect(details).not_to_contain_text("does not answer")
    # One answer that fails takes nothing away, and a login page is told as such.
    lab.page.route("**/jaxprof/api/captures?*", lambda route: route.fulfill(body="<html>login</html>"))
    lab.panel.get_by_role("button", name="Refresh").click()
    expect(lab.panel.get_by_role("alert")).to_contain_text("log in")
    expect(lab.row("here")).to_be_visible()
    lab.page.unroute("**/jaxprof/api/captures?*")
    lab.panel.get_by_role("button", name="Refresh").click()
    expect(lab.panel.get_by_role("alert")).to_have_count(0)


def test_damaged_and_refused(lab: Lab, store: Store) -> None:
    """A damaged record is a row that can be deleted; what the server refuses is told in its own words."""
    add(store, "whole")
    gone = add(store, "without its file")
    next(store.directory(gone).glob("plugins/profile/*/*.pb")).unlink()
    damaged = add(store, "broken")
    (store.directory(damaged) / "capture.json").write_text("{")
    newer = store.directory(add(store, "of tomorrow")) / "capture.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"schema": 2, "summary": ["new"]}))
    open_panel(lab)
    lab.row("of tomorrow").click()
    lab.page.keyboard.press("Enter")
    expect(lab.panel.locator(".jp-JaxProf-details")).to_contain_text("schema 2")
    store.delete(newer.parent.name)
    expect(lab.rows).to_have_count(3)
    row = lab.rows.filter(has_text="Unreadable")
    row.click()
    lab.page.keyboard.press("Enter")
    reason = "capture.json"
    expect(lab.panel.locator(".jp-JaxProf-details")).to_contain_text(reason)
    expect(lab.panel.get_by_role("status")).to_contain_text(reason)
    lab.menu(row, "Delete")
    lab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(lab.rows).to_have_count(2)
    lab.row("without its file").click()
    expect(lab.row("without its file")).to_contain_text("Damaged")
    expect(lab.panel.locator(".jp-JaxProf-details")).to_contain_text("is missing from its directory")
    expect(lab.panel.get_by_role("textbox", name="Notes")).to_be_visible()
    expect(lab.row("without its file").get_by_role("button", name="Open in XProf")).to_have_count(1)
    for name, refusal in (("n" * 300, "has 300 characters"), (" ", "can't be empty")):
        lab.row("whole").focus()
        lab.page.keyboard.press("F2")
        lab.page.keyboard.type(name)
        lab.page.keyboard.press("Enter")
        expect(lab.page.locator(".Toastify__toast").filter(has_text=refusal)).to_be_visible()
        expect(lab.row("whole")).to_be_visible()


def test_the_sidebar_tells_what_is_amiss_in_the_servers_environment(lab: Lab) -> None:
    open_panel(lab)
    lab.panel.get_by_role("button", name="Check the installation").click()
    dialog = lab.page.get_by_role("dialog")
    report = lab.server.get_json("jaxprof/api/environment")
    assert report["problems"]
    for problem in report["problems"]:
        expect(dialog).to_contain_text(problem["what"], timeout=PATIENCE_MS)
        expect(dialog).to_contain_text(problem["command"])
    save_screenshot(lab, "doctor")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
