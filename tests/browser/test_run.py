"""Cells run under the magics without typing them, in JupyterLab and Notebook 7; completion; settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from jupyterlab_jaxprof.captures import Record, Store
from tests.browser.conftest import MAIN_URL
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot, write_notebook
from tests.support.servers import Server

pytestmark = pytest.mark.browser

PLAIN, TRACED, BASH, FAILING, TIMED, REPORT, UNLOAD = range(7)
CELLS = [
    "value = 6\nvalue * 7",
    "# why\n%%jaxtrace 'a name'\nvalue * 8",
    "%%bash\necho from bash",
    "def f():\n    return 1 / 0\nf()",
    "%%jaxtime --fail",
    "%jaxprof report ",
    "%unload_ext jupyterlab_jaxprof",
]


@pytest.fixture(scope="module")
def lab(browser: Browser, server_at: Callable[[str], Server]) -> Iterator[Lab]:
    """One notebook with one kernel for all tests here."""
    server = server_at(MAIN_URL)
    write_notebook(server, "run.ipynb", CELLS)
    with lab_page(browser, server) as lab:
        lab.go("lab/tree/run.ipynb")
        lab.wait_for_kernel()
        yield lab


def newest(lab: Lab) -> Record:
    record = Store(lab.server.store).list(limit=1).rows[0].record
    assert record is not None
    return record


def activate(lab: Lab, index: int) -> Locator:
    cell = lab.cells.nth(index)
    cell.locator(".jp-InputPrompt").click()
    expect(cell).to_have_class(re.compile("jp-mod-active"))
    return cell


def choose(lab: Lab, index: int, item: str) -> Locator:
    """Choose from the menu in a cell's toolbar, and wait until what it runs has ended."""
    cell = activate(lab, index)
    before = cell.locator(".jp-InputPrompt").inner_text()
    cell.locator(".jp-JaxProf-measure").get_by_role("button").click()
    lab.page.get_by_role("menuitem").filter(has_text=item).click()
    wait_for_end(cell, before)
    return cell


def wait_for_end(cell: Locator, before: str) -> None:
    prompt = cell.locator(".jp-InputPrompt")
    expect(prompt).not_to_have_text(before, timeout=PATIENCE_MS * 2)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE_MS * 2)


def source(lab: Lab, index: int) -> str:
    return "\n".join(lab.cells.nth(index).locator(".cm-line").all_inner_texts())


def test_a_cell_is_timed_without_a_change_of_its_text(lab: Lab) -> None:
    cell = choose(lab, PLAIN, "Time this Cell")
    expect(cell.locator(".jp-OutputArea-output").last).to_have_text("42")
    expect(cell.locator(".jaxprof-card, .jp-JaxProf-card").first).to_be_visible()
    assert source(lab, PLAIN) == CELLS[PLAIN]
    record = newest(lab)
    assert (record.kind, record.magic, record.cell.strip()) == ("time", "%%jaxtime", CELLS[PLAIN])
    assert record.notebook.endswith("run.ipynb")
    expect(cell).to_be_focused()
    expect(cell).to_have_class(re.compile("jp-mod-active"))


def test_an_error_has_the_cells_own_lines(lab: Lab) -> None:
    cell = choose(lab, FAILING, "Trace this Cell")
    error = cell.locator(".jp-OutputArea-output").last
    expect(error).to_contain_text("----> 3 f()")
    expect(error).to_contain_text("----> 2     return 1 / 0")
    expect(error).not_to_contain_text("%%jaxtrace")
    assert newest(lab).status == "failed"


def test_a_magic_of_ours_is_replaced_and_its_own_kept(lab: Lab) -> None:
    choose(lab, TRACED, "Time this Cell")
    assert (newest(lab).kind, newest(lab).magic) == ("time", "%%jaxtime")
    choose(lab, TRACED, "Trace this Cell")
    assert (newest(lab).kind, newest(lab).name) == ("trace", "a name")
    assert source(lab, TRACED) == CELLS[TRACED]


def test_another_cell_magic_is_refused_with_the_reason(lab: Lab) -> None:
    cell = activate(lab, BASH)
    button = cell.locator(".jp-JaxProf-measure").get_by_role("button")
    button.focus()
    lab.page.keyboard.press("Enter")
    menu = lab.page.get_by_role("menu")
    expect(menu).to_contain_text("This cell begins with %%bash")
    for item in ("Time this Cell", "Trace this Cell", "Insert %%jaxtime"):
        expect(menu.get_by_role("menuitem").filter(has_text=item)).to_have_attribute("aria-disabled", "true")
    save_screenshot(lab, "run-refused")
    lab.page.keyboard.press("Escape")
    expect(button).to_be_focused()


def test_keys_a_sweep_and_inserting(lab: Lab) -> None:
    cell = activate(lab, PLAIN)
    before = cell.locator(".jp-InputPrompt").inner_text()
    lab.page.keyboard.press("p")
    lab.page.keyboard.press("s")
    dialog = lab.page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("value=1,2 -r 1 -t 0.01")
    save_screenshot(lab, "run-sweep")
    dialog.get_by_role("button", name="Sweep").click()
    wait_for_end(cell, before)
    assert (newest(lab).kind, newest(lab).magic) == ("sweep", "%%jaxsweep value=1,2 -r 1 -t 0.01")
    expect(cell).to_be_focused()
    lab.command("Insert %%jaxtrace")
    assert source(lab, PLAIN) == f"%%jaxtrace\n{CELLS[PLAIN]}"
    lab.command("Insert %%nsys")
    assert source(lab, PLAIN) == f"%%nsys\n{CELLS[PLAIN]}"


def completions(lab: Lab, index: int) -> Locator:
    lab.cells.nth(index).locator(".cm-content").click()
    lab.page.keyboard.press("Control+End")
    lab.page.keyboard.press("Tab")
    return lab.page.locator(".jp-Completer:visible")


def test_options_and_captures_are_completed(lab: Lab) -> None:
    editor = lab.cells.nth(TIMED).locator(".cm-content")
    editor.fill("%%jaxtime --")
    found = completions(lab, TIMED)
    expect(found).to_contain_text("--fail-on-recompile", timeout=PATIENCE_MS)
    expect(found).to_contain_text("raise\u00a0when\u00a0something\u00a0compiles\u00a0again")
    save_screenshot(lab, "run-completion")
    found.get_by_text("--compare", exact=True).click()
    expect(editor).to_have_text("%%jaxtime --compare")
    found = completions(lab, REPORT)
    expect(found).to_contain_text('"a name"', timeout=PATIENCE_MS)
    lab.page.keyboard.press("Escape")


def test_default_options_come_from_the_settings(lab: Lab) -> None:
    saved = lab.server.store / "settings.json"
    address = "lab/api/settings/jupyterlab-jaxprof:run"
    with lab.page.expect_response(lambda answer: "/jaxprof/api/settings" in answer.url):
        lab.command("Settings Editor")
        lab.page.locator(".jp-PluginList-entry").filter(has_text="JaxProf Magics").click()
        field = lab.page.locator('input[id$="_jaxtime"]')
        field.fill("-r 3 --nope")
        lab.page.keyboard.press("Tab")
    try:
        assert json.loads(saved.read_text()) == {"defaults": {"jaxtime": "-r 3 --nope"}}
        save_screenshot(lab, "run-settings")
        lab.page.locator(".lm-TabBar-tab").filter(has_text="run.ipynb").click()
        cell = choose(lab, FAILING, "Time this Cell")
        expect(cell).to_contain_text("From the settings' default options of %%jaxtime: -r 3.")
        expect(cell).to_contain_text("there is no option --nope")
        assert newest(lab).magic == "%%jaxtime -r 3"
    finally:
        answer = lab.server.request("PUT", address, data=json.dumps({"raw": "{}"}))
        assert answer.ok, answer.text
        saved.unlink(missing_ok=True)


def test_a_kernel_without_the_magics_says_how_to_get_them(lab: Lab) -> None:
    lab.run_cell(UNLOAD)
    cell = choose(lab, FAILING, "Time this Cell")
    expect(cell).to_contain_text("Cell magic `%%jaxtime` not found")
    toast = lab.page.locator(".Toastify__toast").filter(has_text="%pip install jupyterlab-jaxprof")
    expect(toast).to_be_visible()


def test_notebook_7(browser: Browser, lab: Lab) -> None:
    """The same in Notebook 7: button, run, card, menu, palette, sidebar, download."""
    write_notebook(lab.server, "seven.ipynb", [CELLS[PLAIN]])
    with lab_page(browser, lab.server) as seven:
        seven.go("notebooks/seven.ipynb", reset=False)
        status = seven.page.locator(".jp-Notebook-ExecutionIndicator")
        expect(status).to_have_attribute("data-status", "idle", timeout=PATIENCE_MS * 2)
        cell = choose(seven, 0, "Trace this Cell")
        expect(cell.locator(".jp-OutputArea-output").last).to_have_text("42")
        record = newest(seven)
        assert (record.kind, record.magic, record.cell.strip()) == ("trace", "%%jaxtrace", CELLS[PLAIN])
        assert record.notebook.endswith("seven.ipynb")
        save_screenshot(seven, "notebook7-traced")
        seven.page.get_by_role("menuitem", name="Run", exact=True).click()
        seven.page.locator(".lm-Menu-item").filter(has_text="Measure with JaxProf").hover()
        expect(seven.page.get_by_role("menuitem").filter(has_text="Sweep this Cell")).to_be_visible()
        seven.page.keyboard.press("Escape")
        seven.page.keyboard.press("Escape")
        seven.page.keyboard.press("Control+Shift+C")
        seven.page.locator(".lm-CommandPalette-input:visible").fill("Show JaxProf")
        seven.page.keyboard.press("Enter")
        row = seven.row(record.name).first
        expect(row).to_be_visible()
        save_screenshot(seven, "notebook7-sidebar")
        name, content = seven.download(lambda: seven.menu(row, "Download"))
        assert name.endswith(".zip")
        assert content[:2] == b"PK"
        seven.go("tree", reset=False)
        expect(seven.page.locator(".jp-FileBrowser:visible")).to_contain_text("seven.ipynb")
