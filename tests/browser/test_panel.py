"""The sidebar: keyboard, filters, long lists, live changes, and its messages."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, expect

from jupyterlab_jaxprof.captures import Store, draft, names
from jupyterlab_jaxprof.captures.record import Status
from tests.browser.panel import add, open_panel, store
from tests.support.browser import Lab, lab_page, save_screenshot, set_theme, write_notebook
from tests.support.servers import Server

__all__ = ["store"]
pytestmark = pytest.mark.browser


def test_keyboard(lab: Lab, store: Store) -> None:
    for name in ("oldest", "middle", "newest"):
        add(store, name)
    open_panel(lab)
    expect(lab.rows).to_have_count(3)
    expect(lab.rows.first).to_contain_text("newest")
    expect(lab.rows.first).to_contain_text("12.3\u00a0ms")
    expect(lab.rows.first).to_contain_text("2.00\u00a0kB")
    keyboard = lab.page.keyboard
    lab.panel.get_by_role("grid").focus()
    keyboard.press("End")
    expect(lab.row("oldest")).to_be_focused()
    keyboard.press("ArrowUp")
    expect(lab.row("middle")).to_be_focused()
    expect(lab.row("middle")).to_have_attribute("aria-selected", "true")

    keyboard.press("F2")
    keyboard.type("größer + #1 100%")
    keyboard.press("Enter")
    expect(lab.row("größer + #1 100%")).to_be_focused()
    expect(lab.panel.get_by_role("status")).to_contain_text("Renamed")
    keyboard.press("F2")
    keyboard.type("not this")
    keyboard.press("Escape")
    expect(lab.row("größer + #1 100%")).to_be_focused()
    assert [row.name for row in store.list().rows] == ["newest", "größer + #1 100%", "oldest"]

    keyboard.press("Delete")
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("größer + #1 100%")
    keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert store.list().total == 3
    lab.row("größer + #1 100%").focus()
    keyboard.press("Delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(lab.row("oldest")).to_be_focused()
    expect(lab.rows).to_have_count(2)
    assert [row.name for row in store.list().rows] == ["newest", "oldest"]


def test_pin_details_and_copies(lab: Lab, store: Store) -> None:
    capture_id = add(store, "pinned", status=Status.FAILED, reason="The cell raised ValueError: no.")
    open_panel(lab)
    row = lab.row("pinned")
    expect(row).to_contain_text("Failed")
    expect(row.get_by_title("The cell raised ValueError: no.")).to_be_visible()
    lab.menu(row, "Pin")
    expect(row.get_by_title("Pinned", exact=True)).to_be_visible()
    assert store.get(capture_id).pinned
    row.focus()
    lab.page.keyboard.press("Space")
    details = lab.panel.get_by_role("region", name="Details of pinned")
    expect(details).to_contain_text("The cell raised ValueError: no.")
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lab.menu(row, "Copy Path")
    expect(lab.panel.get_by_role("status")).to_contain_text("Path copied")
    assert lab.page.evaluate("navigator.clipboard.readText()") == str(store.directory(capture_id))
    lab.menu(row, "Copy Run Name")
    expect(lab.panel.get_by_role("status")).to_contain_text("Run name copied")
    assert lab.page.evaluate("navigator.clipboard.readText()") == store.get(capture_id).xprof_run
    lab.panel.get_by_role("button", name=f"Copy the path {store.root}", exact=True).click()
    expect(lab.panel.get_by_role("status")).to_contain_text("Path copied")
    assert lab.page.evaluate("navigator.clipboard.readText()") == str(store.root)


def test_notes_are_never_lost(browser: Browser, lab: Lab, server: Server, store: Store) -> None:
    """Not to another tab, not to another row, and not to a server that refuses them."""
    capture_id = add(store, "noted")
    add(store, "another")

    def open_notes(lab: Lab) -> Locator:
        open_panel(lab)
        lab.row("noted").click()
        lab.page.keyboard.press("Space")
        return lab.panel.get_by_role("textbox", name="Notes")

    def wait_for(notes: str) -> None:
        expect(lab.row("noted").get_by_text("noted", exact=True)).to_have_attribute(
            "title", f"noted\n\n{notes}"
        )
        # The row shows what was written before the server has it.
        for _ in range(100):
            if store.get(capture_id).notes == notes:
                return
            lab.page.wait_for_timeout(50)
        assert store.get(capture_id).notes == notes

    with lab_page(browser, server) as other:
        ours, theirs = open_notes(lab), open_notes(other)
        ours.fill("first\nsecond")
        lab.row("noted").focus()
        expect(lab.panel.get_by_role("status")).to_contain_text("Notes saved")
        expect(theirs).to_have_value("first\nsecond")
        theirs.focus()
        theirs.blur()
        ours.fill("ours")
        theirs.fill("theirs")
        theirs.blur()
        wait_for("theirs")
        ours.blur()
        wait_for("theirs\n\nours")
        expect(theirs).to_have_value("theirs\n\nours")
    ours.fill("left by a click on another row")
    lab.row("another").click()
    wait_for("left by a click on another row")
    lab.row("noted").click()
    lab.page.route(
        "**/jaxprof/api/captures/*", lambda route: route.fulfill(status=500, json={"message": "No."})
    )
    ours.fill("kept")
    ours.blur()
    expect(
        lab.page.locator(".Toastify__toast").filter(has_text="The change was not saved. No.")
    ).to_be_visible()
    expect(ours).to_have_value("kept")
    lab.page.unroute("**/jaxprof/api/captures/*")
    ours.focus()
    ours.blur()
    wait_for("kept")


def test_the_line_goes_above_the_active_cell(lab: Lab, server: Server, store: Store) -> None:
    write_notebook(server, "line.ipynb", ["one", "two"])
    lab.go("lab/tree/line.ipynb")
    lab.show_panel()
    button = lab.panel.get_by_role("button", name="Put it above the active cell")
    lab.cells.nth(0).locator(".jp-InputPrompt").click()
    button.wait_for()
    lab.cells.nth(1).locator(".jp-InputPrompt").click()
    button.click()
    expect(lab.cells.nth(1).locator(".cm-line")).to_have_text(["%%jaxtrace", "two"])
    expect(lab.cells.nth(0).locator(".cm-line")).to_have_text(["one"])
    # A cell without code can't be traced.
    lab.page.keyboard.press("Escape")
    lab.cells.nth(0).locator(".jp-InputPrompt").click()
    lab.page.keyboard.press("m")
    expect(button).to_have_count(0)


#: How much wider a choice is than its text.
ROOM_PX = """node => {
    const style = getComputedStyle(node);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = style.font;
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    return node.clientWidth - padding - pen.measureText(node.selectedOptions[0].text).width;
}"""


def test_search_and_filters(lab: Lab, store: Store) -> None:
    add(store, "attention", notebook="/home/user/a.ipynb")
    add(store, "attention timing", kind="time", notebook="/home/user/a.ipynb")
    add(store, "loader", notebook="/home/user/b.ipynb", cell="batch = next(loader)")
    open_panel(lab)
    expect(lab.rows).to_have_count(3)
    search = lab.panel.get_by_role("searchbox")
    search.fill("ATTENTION")
    expect(lab.rows).to_have_count(2)
    # The second click of a double click on the row, when a button has come under the pointer.
    lab.rows.first.get_by_label("More actions").dispatch_event("click", {"detail": 2})
    expect(lab.page.locator(".lm-Menu:visible")).to_have_count(0)
    lab.panel.get_by_label("Kind").select_option("time")
    expect(lab.rows).to_have_count(1)
    expect(lab.panel).to_contain_text("1 of 3 captures")
    search.fill("nothing like it")
    expect(lab.panel).to_contain_text("Nothing found")
    lab.panel.get_by_role("button", name="Show all").click()
    expect(lab.rows).to_have_count(3)
    expect(search).to_have_value("")
    choice = lab.panel.get_by_label("Notebook")
    assert choice.evaluate(ROOM_PX) >= 0
    choice.select_option("/home/user/b.ipynb")
    expect(lab.rows).to_have_count(1)
    search.fill("next(loader)")
    expect(lab.row("loader")).to_be_visible()


def test_live_and_quiet(lab: Lab, store: Store) -> None:
    """What comes, changes and goes shows by itself; what the panel asks for by itself is no activity."""
    requests: list[str] = []
    lab.page.on(
        "request", lambda request: requests.append(request.url) if "jaxprof/api" in request.url else None
    )
    add(store, "first")
    open_panel(lab)
    expect(lab.rows).to_have_count(1)
    first = add(store, "second")
    expect(lab.row("second")).to_be_visible()
    store.update(first, name="second, renamed")
    expect(lab.row("second, renamed")).to_be_visible()
    store.delete(first)
    expect(lab.rows).to_have_count(1)
    ours = [url for url in requests if "jaxprof/api" in url]
    assert ours
    assert all("no_track_activity=1" in url for url in ours), ours
    requests.clear()
    lab.page.wait_for_timeout(2500)
    assert not [url for url in requests if "jaxprof" in url], "The panel asks without a reason."
    # Hidden, it asks for nothing; shown again, once.
    lab.page.locator('.jp-SideBar [data-id="filebrowser"]').click()
    for number in range(3):
        add(store, f"unseen {number}")
    lab.page.wait_for_timeout(1500)
    assert not [url for url in requests if "jaxprof" in url]
    lab.show_panel()
    expect(lab.rows).to_have_count(4)
    assert len([url for url in requests if "jaxprof/api/captures?" in url]) == 1


def test_ten_thousand_captures(lab: Lab, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    make_id = names.new_id
    template = store.directory(add(store, "template"))
    record = json.loads((template / "capture.json").read_text())
    shutil.rmtree(template)
    for number in range(10_000):
        capture_id = make_id(start + timedelta(minutes=number))
        directory = store.captures_dir / capture_id
        directory.mkdir()
        own = {"id": capture_id, "name": f"run {number}", "files": [], "xprof_run": None}
        own["notebook"] = f"/home/user/{'oldest' if number == 0 else 'usual'}.ipynb"
        (directory / "capture.json").write_text(json.dumps(record | own))
    try:
        open_panel(lab)
        expect(lab.row("run 9999")).to_be_visible()
        expect(lab.panel).to_contain_text("10,000 captures")
        assert lab.rows.count() < 60
        notebooks = lab.panel.get_by_label("Notebook").locator("option")
        assert notebooks.all_inner_texts() == ["All notebooks", "oldest.ipynb", "usual.ipynb"]
        lab.panel.get_by_role("grid").focus()
        lab.page.keyboard.press("End")
        expect(lab.row("run 0")).to_be_focused()
        lab.page.keyboard.press("PageUp")
        expect(lab.row("run 0")).not_to_be_focused()
        lab.page.keyboard.press("Home")
        expect(lab.row("run 9999")).to_be_focused()
        assert lab.rows.count() < 60
        lab.panel.get_by_role("searchbox").fill("run 9950")
        expect(lab.rows).to_have_count(1)
        lab.row("run 9950").click()
        lab.panel.get_by_role("searchbox").fill("")
        expect(lab.row("run 9950")).to_be_in_viewport()  # what was found stays in sight
    finally:
        shutil.rmtree(store.captures_dir)


def test_looks(
    browser: Browser,
    server: Server,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of a row overflows it, in a narrow and a wide panel, light and dark."""
    now = datetime.now(UTC)
    make_id = names.new_id
    for hours, status in enumerate([*Status, Status.OK]):
        when = now - timedelta(hours=hours * 9)
        monkeypatch.setattr(draft, "new_id", lambda when=when: make_id(when))
        reason = "" if status is Status.OK else "The cell raised ValueError: shapes do not match."
        add(store, f"attention, {status}, with a name that fits nowhere at all", status=status, reason=reason)
    for theme in ("Light", "Dark"):
        set_theme(server, f"JupyterLab {theme}")
        with lab_page(browser, server) as lab:
            open_panel(lab)
            expect(lab.rows).to_have_count(5)
            lab.rows.nth(2).click()
            for width in (200, 460):
                _resize(lab, width)
                assert lab.panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
                for box in (lab.rows.nth(i).bounding_box() for i in range(5)):
                    assert box is not None
                    assert box["height"] == 48
                save_screenshot(lab, f"panel-{theme.lower()}-{width}")
            lab.rows.nth(2).focus()
            lab.page.keyboard.press("Space")
            lab.panel.get_by_role("region").wait_for()
            save_screenshot(lab, f"details-{theme.lower()}")
            lab.page.set_viewport_size({"width": 1400, "height": 600})
            lab.rows.nth(1).hover()
            assert lab.panel.get_by_role("grid").evaluate("list => list.clientHeight") >= 4 * 48
            save_screenshot(lab, f"low-{theme.lower()}")
    set_theme(server, "JupyterLab Light")


def _resize(lab: Lab, width: int) -> None:
    handle = lab.page.locator("#jp-main-split-panel > .lm-SplitPanel-handle:not(.lm-mod-hidden)").first
    box = handle.bounding_box()
    panel = lab.panel.bounding_box()
    assert box is not None
    assert panel is not None
    lab.page.mouse.move(box["x"] + box["width"] / 2, 400)
    lab.page.mouse.down()
    lab.page.mouse.move(panel["x"] + width, 400, steps=4)
    lab.page.mouse.up()
