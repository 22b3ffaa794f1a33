"""Live cards of real captures in a notebook: tables, timeline, buttons, and captures that are gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Request, expect

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Record, Store
from tests.browser.conftest import MAIN_URL
from tests.support.axe import violations
from tests.support.browser import PATIENCE_MS, Lab, lab_page, save_screenshot
from tests.support.captures import published, unpacked
from tests.support.servers import Server

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.attacked = 1">'


def shown(server: Server, record: Record, **changes: Any) -> nbformat.NotebookNode:
    """What a cell of a saved notebook has of a capture; `changes` are made to its JSON form."""
    directory = Store(server.store).captures_dir / record.id
    bundle = cards.bundle(record, directory=directory, in_store=True)
    bundle[cards.MIME_TYPE] = json.loads(json.dumps(bundle[cards.MIME_TYPE])) | changes
    bundle["text/html"] += HOSTILE
    return nbformat.v4.new_output("display_data", data=bundle)


@dataclass
class Opened:
    """A notebook of cards on a page, and what the page asked and complained of since it was opened."""

    lab: Lab
    records: dict[str, Record]
    asked: list[str]
    errors: list[str]

    def card(self, name: str) -> Locator:
        """The card of the capture of this name, in sight."""
        title = self.lab.page.locator(".jx-live .jx-name").get_by_text(name, exact=True)
        card = self.lab.page.locator(".jp-JaxProf-card", has=title)
        card.scroll_into_view_if_needed()
        return card

    def section(self, card: Locator, title: str) -> Locator:
        """What unfolds below a title."""
        return card.locator("details", has=self.lab.page.locator("summary", has_text=title))


GONE = [f"20200101-000000-{number:03}-abcdef" for number in range(30)]


@pytest.fixture(scope="module")
def opened(browser: Browser, server_at: Any) -> Iterator[Opened]:
    server = server_at(MAIN_URL)
    records = {
        name: published(Store(server.store), capture, name)
        for name, capture in (
            (HOSTILE, "dp_balanced"), ("starved", "host_starved"), ("as it was", "gpu_bound"),
        )
    }  # fmt: skip
    last = records["as it was"]
    cells = [
        *([shown(server, record)] for record in records.values()),
        [
            shown(server, last, name="newer", schema=2),
            shown(server, last, name="unknown", kind="energy"),
            shown(server, last, name="damaged", summary={"timeline": {"blind": 3}}),
        ],
        [shown(server, last, id=gone, name=f"gone {gone}") for gone in GONE],
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(outputs=one) for one in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, server.home / "work" / "cards.ipynb")
    with lab_page(browser, server) as lab:
        asked: list[str] = []
        errors: list[str] = []

        def on_request(request: Request) -> None:
            if "/jaxprof/api/captures?ids=" in request.url:
                asked.append(request.url)

        def on_console(message: ConsoleMessage) -> None:
            if message.type == "error" and "jupyterlab-jaxprof" in message.location["url"]:
                errors.append(message.text)

        lab.page.on("request", on_request)
        lab.page.on("console", on_console)
        lab.go("lab/tree/cards.ipynb")
        expect(lab.page.locator(".jp-JaxProf-card")).to_have_count(sum(map(len, cells)), timeout=PATIENCE_MS)
        lab.wait_for_kernel()  # until then JupyterLab takes the keyboard for the notebook
        yield Opened(lab, records, asked, errors)
        assert errors == []


def test_tables_sort_and_are_filtered(opened: Opened) -> None:
    card = opened.card(HOSTILE)
    expect(card.locator(".jx-name")).to_have_text(HOSTILE)
    assert opened.lab.page.evaluate("window.attacked") is None
    kernels = opened.section(card, "Kernels")
    kernels.locator("summary").press("Enter")
    rows = kernels.locator("tbody tr:not(.jx-note)")
    expect(rows).to_have_count(12)
    kernels.get_by_role("button", name="Show all 30").click()
    expect(rows).to_have_count(30)
    told = opened.records[HOSTILE].summary["tables"]["kernels"]
    names = [row["name"] for row in told]
    first = rows.first.locator("td").first
    expect(first).to_have_text(names[0])
    header = kernels.get_by_role("columnheader", name="kernel", exact=True)
    header.get_by_role("button").press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(first).to_have_text(min(names, key=str.lower))
    kernels.get_by_role("columnheader", name="longest").get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "none")
    expect(first).to_have_text(max(told, key=lambda row: row["max_us"])["name"])
    kernels.get_by_role("searchbox").fill("AllReduce")
    expect(rows).to_have_count(sum("allreduce" in name.lower() for name in names))
    save_screenshot(opened.lab, "card-tables")
    kernels.get_by_role("searchbox").fill("nothing of this name")
    expect(kernels).to_contain_text("No row has “nothing of this name” in it.")


def test_the_timeline_zooms_and_shows_findings(opened: Opened) -> None:
    card, keyboard = opened.card("starved"), opened.lab.page.keyboard
    drawing = card.get_by_role("application")
    ticks, detail = card.locator(".jx-tick"), card.locator(".jx-detail")
    whole = ticks.all_inner_texts()
    drawing.press("ArrowDown")
    expect(detail).to_contain_text("train_step: train_step 0, 33.6 ms")
    drawing.press("ArrowDown")
    expect(detail).to_contain_text("GPU 0: idle for")
    expect(detail).to_contain_text("load_data")
    drawing.press("ArrowRight")
    expect(detail).to_contain_text("GPU 0: at work for")
    drawing.press("+")
    expect(ticks.first).not_to_have_text(whole[0])
    drawing.press("0")
    expect(ticks).to_have_text(whole)
    card.locator(".jx-track").nth(1).hover()
    keyboard.down("Control")
    opened.lab.page.mouse.wheel(0, -400)
    keyboard.up("Control")
    expect(ticks.first).not_to_have_text(whole[0])
    card.get_by_role("button", name="Show all of it").click()
    expect(ticks).to_have_text(whole)
    finding = opened.section(card, "is copied from the host")
    finding.locator("summary").click()
    finding.get_by_role("button", name="Show in the timeline").click()
    expect(drawing).to_be_focused()
    expect(card.locator(".jx-place")).to_have_count(len(opened.records["starved"].findings[2]["ranges"]))
    save_screenshot(opened.lab, "card-timeline")
    # A notebook in command mode would have taken these keys for itself.
    expect(opened.lab.page.locator(".jp-Notebook.jp-mod-commandMode")).to_be_visible()


def test_buttons_change_the_capture_until_it_is_gone(opened: Opened) -> None:
    card, page = opened.card("as it was"), opened.lab.page
    store, record = Store(opened.lab.server.store), opened.records["as it was"]
    name, content = opened.lab.download(card.get_by_role("button", name="Download").click)
    assert name.endswith("vm.xplane.pb")
    assert content == unpacked("gpu_bound.xplane.pb").read_bytes()
    card.get_by_role("button", name="Pin").click()
    expect(card.get_by_role("button", name="Unpin")).to_have_attribute("aria-pressed", "true")
    card.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="New name").fill("as it is")
    page.keyboard.press("Enter")
    card = opened.card("as it is")
    expect(card).to_be_visible()
    assert (store.get(record.id).name, store.get(record.id).pinned) == ("as it is", True)
    card.get_by_role("button", name="A tool of XProf").press("Enter")
    page.locator(".lm-Menu-itemLabel").filter(has_text="Overview Page").click()
    expect(page.locator(".jp-JaxProf-tab:visible iframe")).to_have_attribute(
        "src", re.compile("overview_page")
    )
    page.locator("#jp-main-dock-panel .lm-TabBar-tab").first.click()
    store.delete(record.id)
    card = opened.card("as it was")  # the name that the notebook has
    expect(card).to_contain_text("This capture is not in the store of this server.")
    expect(card.get_by_role("link", name="Open in XProf")).to_have_count(0)
    expect(card.get_by_role("application")).to_be_visible()


def test_records_of_a_later_version_and_damaged_ones_are_shown_as_html(opened: Opened) -> None:
    page = opened.lab.page
    plain = page.locator(".jp-JaxProf-card", has=page.locator(".jaxprof-card:not(.jx-live)"))
    expect(plain).to_have_count(3)
    plain.first.scroll_into_view_if_needed()
    later = plain.filter(has_text="comes from a later version of jupyterlab-jaxprof")
    expect(later).to_have_count(2)
    expect(plain.filter(has_text="is not as it should be")).to_have_count(1)
    expect(plain.last).to_contain_text("Nothing wrong")
    # The sanitizer drops a drawing's shapes, and would leave the text of all tooltips.
    expect(plain.get_by_text("Trust this notebook to see the drawing.")).to_have_count(3)
    assert opened.lab.page.evaluate("window.attacked") is None


def test_axe_finds_nothing(opened: Opened) -> None:
    card = opened.card("starved")
    card.evaluate("card => card.querySelectorAll('details').forEach(one => { one.open = true; })")
    expect(card.locator(".jx-data")).to_have_count(7)
    card.evaluate("card => { card.id = 'card-of-axe'; }")
    assert violations(opened.lab.page, "#card-of-axe") == []


def test_cards_ask_together(opened: Opened) -> None:
    for gone in (GONE[0], GONE[15], GONE[29]):
        expect(opened.card(f"gone {gone}")).to_contain_text(
            "This capture is not in the store of this server."
        )
    assert len(opened.asked) < len(GONE), "those that come into sight together share a request"
    assert max(address.count("%2C") for address in opened.asked) > 0


def test_the_page_about_a_finding_opens_beside_the_notebook(opened: Opened) -> None:
    card = opened.card("starved")
    card.get_by_role("button", name="About this pattern").first.click()
    page = opened.lab.page.locator(".jp-JaxProf-page:visible")
    expect(page.get_by_role("heading", name="The host starves the device")).to_be_visible()
    expect(card).to_be_visible()
    save_screenshot(opened.lab, "card-page")
