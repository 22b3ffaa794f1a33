"""What runs now, and files that become captures: in the sidebar, the status bar and lists of JupyterLab."""

from __future__ import annotations

import base64

import pytest
from playwright.sync_api import expect

from tests.support.browser import PATIENCE_MS, Lab, save_screenshot, write_notebook
from tests.support.captures import content
from tests.support.servers import Server

pytestmark = pytest.mark.browser

DROP = """(node, [name, data]) => {
    const bytes = Uint8Array.from(atob(data), character => character.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    for (const type of ['dragenter', 'dragover', 'drop']) {
        node.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }
}"""


def drop(lab: Lab, name: str, data: bytes) -> None:
    """Drop a file of the desktop on the sidebar."""
    lab.panel.evaluate(DROP, [name, base64.b64encode(data).decode()])


def test_a_measurement_is_shown_while_it_runs_and_its_button_stops_it(lab: Lab, server: Server) -> None:
    for viewer in ("xprof", "tensorboard"):  # those of other tests
        server.viewer(viewer, "stop")
    write_notebook(server, "live.ipynb", ['%%jaxtrace "long wait"\nimport time\ntime.sleep(600)'])
    lab.go("lab/tree/live.ipynb")
    lab.show_panel()
    lab.wait_for_kernel()
    status = lab.page.locator(".jp-JaxProf-statusButton")
    expect(status).not_to_be_visible()
    lab.begin_cell(0)
    row = lab.panel.get_by_role("list", name="Running measurements").get_by_role("listitem")
    expect(row).to_contain_text("long wait", timeout=PATIENCE_MS * 2)
    expect(row).to_contain_text("Trace · Running the cell")
    expect(row.get_by_role("timer")).not_to_have_text("0 s", timeout=PATIENCE_MS)  # it goes on
    expect(status).to_contain_text("long wait")
    save_screenshot(lab, "live-running")
    lab.panel.get_by_role("button", name="Stop long wait").click()
    expect(row).to_have_count(0, timeout=PATIENCE_MS * 2)
    expect(lab.row("long wait").first).to_contain_text("Interrupted", timeout=PATIENCE_MS)
    expect(status).not_to_be_visible(timeout=PATIENCE_MS)


def test_files_become_captures_from_the_desktop_and_from_the_file_browser(lab: Lab, server: Server) -> None:
    (server.home / "work" / "tiny.xplane.pb").write_bytes(content("tiny_scan.xplane.pb"))
    lab.go()
    lab.show_panel()
    drop(lab, "dropped.xplane.pb", content("small_ops.xplane.pb"))
    expect(lab.row("dropped")).to_be_visible(timeout=PATIENCE_MS * 2)
    drop(lab, "twice.xplane.pb", content("small_ops.xplane.pb"))
    imports = lab.panel.get_by_role("list", name="Imports")
    expect(imports.get_by_role("alert")).to_contain_text(
        "The store has twice.xplane.pb already", timeout=PATIENCE_MS * 2
    )
    save_screenshot(lab, "live-import-twice")
    imports.get_by_role("button", name="Show it").click()
    expect(imports).to_have_count(0)
    expect(lab.row("dropped")).to_be_focused()
    # A double click in the file browser; its tab closes once the capture is there.
    lab.page.locator('.jp-SideBar [data-id="filebrowser"]').click()
    item = lab.page.locator(".jp-DirListing-item", has_text="tiny.xplane.pb")
    item.click(button="right")
    expect(lab.page.locator(".lm-Menu-item", has_text="Import into JaxProf")).to_be_visible()
    lab.page.keyboard.press("Escape")
    item.dblclick()
    expect(lab.row("tiny")).to_be_focused(timeout=PATIENCE_MS * 2)
    expect(lab.panel.get_by_role("searchbox")).to_have_value("")
    assert "tiny.xplane.pb" not in lab.tabs


def test_a_viewer_that_runs_is_in_the_running_panel_and_ends_from_there(lab: Lab, server: Server) -> None:
    server.viewer("xprof", "start")
    lab.go()
    lab.page.locator('.jp-SideBar [data-id="jp-running-sessions"]').click()
    entry = lab.page.locator(".jp-RunningSessions-item", has_text="XProf")
    expect(entry).to_contain_text("MB", timeout=PATIENCE_MS)
    expect(lab.page.locator(".jp-JaxProf-statusButton")).to_have_text("XProf runs")
    save_screenshot(lab, "live-sessions")
    entry.hover()
    entry.locator(".jp-RunningSessions-itemShutdown").click()
    expect(entry).to_have_count(0, timeout=PATIENCE_MS)
    assert server.get_json("jaxprof/api/viewers/xprof")["state"] == "stopped"


def test_the_strip_asks_only_while_it_is_on_and_in_sight(lab: Lab, server: Server) -> None:
    write_notebook(server, "strip.ipynb", ["1"])
    asked: list[str] = []
    lab.page.on("request", lambda request: "/usage" in request.url and asked.append(request.url))
    lab.go("lab/tree/strip.ipynb")
    lab.show_panel()
    lab.wait_for_kernel()
    strip = lab.panel.get_by_role("region", name="What the current kernel uses")
    expect(strip).to_have_count(0)
    assert not asked
    lab.command("Show What the Kernel Uses")
    expect(strip).to_contain_text("Process (all cores)", timeout=PATIENCE_MS)
    expect(strip).to_contain_text("MB of")
    lab.command("Show What the Kernel Uses")
    expect(strip).to_have_count(0)
    count = len(asked)
    lab.page.wait_for_timeout(2500)  # more than between two looks
    assert len(asked) == count
