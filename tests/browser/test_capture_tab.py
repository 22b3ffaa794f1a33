"""A capture's own tab, and captures side by side."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from jupyterlab_jaxprof.captures import Status, Store
from tests.browser.panel import open_panel, store
from tests.support.browser import PATIENCE_MS, Lab, save_screenshot
from tests.support.findings import finding, note, summary, tables

__all__ = ["store"]
pytestmark = pytest.mark.browser

CELL = "def step(x):\n    y = x @ x\n    return y.sum()\nstep(x)\n"
ENVIRONMENT = {
    "jax": "0.11.2",
    "cuda_runtime": "13000",
    "devices": [{"id": 0, "platform": "gpu", "kind": "NVIDIA H200"}],
}


def add(store: Store, name: str, step_ms: float = 31.9, **fields: Any) -> str:
    """Publish a trace of one cell whose steps took so long; gives its identifier."""
    told = summary(place={"file": "123.py", "line": 2})
    told["tables"] = tables(name)
    told["tables"]["hlo_ops"][0]["source"] = "123.py:3"
    told["steps"] |= {"median_ms": step_ms, "durations_ms": [step_ms] * 6}
    fields = {"summary": told, "findings": [finding(), note()], "cell": CELL, **fields}
    with store.begin(fields.pop("kind", "trace"), name) as draft:
        (draft.directory / "a.txt").write_text("hello")
        return draft.publish(
            status=Status.OK,
            **{"notebook": "n.ipynb", "magic": f"%%jaxtrace {name}", "environment": ENVIRONMENT, **fields},
        ).id


def tab_of(lab: Lab, label: str) -> Locator:
    return lab.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").get_by_text(label, exact=True)


@pytest.fixture
def page(lab: Lab) -> Locator:
    """The capture's tab that is in sight."""
    return lab.page.locator(".jp-JaxProf-capture:visible")


@pytest.fixture
def comparison(lab: Lab) -> Locator:
    """The comparison that is in sight."""
    return lab.page.locator(".jp-JaxProf-compare:visible")


def test_a_capture_has_a_tab_with_its_card_code_history_environment_and_files(
    lab: Lab, store: Store, page: Locator
) -> None:
    earlier = add(store, "earlier", 20.0)
    add(
        store,
        "a timing",
        kind="time",
        summary={"headline": {"label": "first run", "value": 1.0, "unit": "ms"}},
    )
    capture_id = add(store, "latest")
    open_panel(lab)
    lab.row("latest").dblclick()
    expect(page.get_by_role("tab", name="Card")).to_be_focused()
    expect(page).to_contain_text("The host starves the device")
    notes = page.get_by_role("textbox", name="Notes")
    notes.fill("before the change")
    with lab.page.expect_response(lambda answer: answer.request.method == "PATCH"):
        notes.blur()
    expect(lab.row("latest").get_by_text("latest", exact=True)).to_have_attribute(
        "title", "latest\n\nbefore the change"
    )
    assert store.get(capture_id).notes == "before the change"

    page.get_by_role("tab", name="Card").focus()
    lab.page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Code")).to_be_focused()
    line = page.get_by_role("list", name="Device time by line").get_by_role("listitem")
    expect(line).to_have_attribute("aria-label", re.compile(r"^Line 3: 750\sµs, latest\.3$"))
    code = page.locator(".jp-JaxProf-lines")
    expect(code.locator("span").first).to_be_attached()  # it has JupyterLab's colours
    assert code.inner_text().strip() == CELL.strip()
    # Each time stands beside its own line.
    heights = [
        (box["y"] + box["height"], box["height"])
        for box in (code.bounding_box(), page.locator(".jp-mod-numbers > div").last.bounding_box())
        if box
    ]
    assert abs(heights[0][0] - heights[1][0]) < 2
    assert heights[0][1] == CELL.count("\n") * heights[1][1]

    lab.page.keyboard.press("ArrowRight")
    expect(page.locator(".jp-JaxProf-history tr").filter(has_text="a timing")).to_contain_text(
        "of another kind"
    )
    points = page.locator(".jp-JaxProf-trend").get_by_role("link")
    expect(points).to_have_count(2)
    save_screenshot(lab, "capture-history")
    lab.page.keyboard.press("ArrowRight")
    expect(page).to_contain_text("NVIDIA H200")
    expect(page).to_contain_text("CUDA runtime13.0")
    lab.page.keyboard.press("End")
    name, content = lab.download(page.get_by_role("button", name="Download a.txt").click)
    assert (name, content) == ("a.txt", b"hello")

    lab.page.get_by_role("tab", name="History").click()
    points.first.focus()
    lab.page.keyboard.press("Enter")
    expect(tab_of(lab, "earlier")).to_be_visible()
    expect(page.get_by_role("tab", name="Card")).to_be_focused()
    assert store.get(earlier).name == "earlier"
    store.update(capture_id, name="renamed")
    expect(tab_of(lab, "renamed")).to_be_visible(timeout=PATIENCE_MS)  # though its page is hidden


def test_a_tab_follows_changes_and_comes_back_after_a_reload(lab: Lab, store: Store, page: Locator) -> None:
    capture_id = add(store, "one")
    open_panel(lab)
    lab.row("one").focus()
    lab.page.keyboard.press("Enter")
    page.get_by_role("tab", name="Environment").click()
    store.update(capture_id, name="renamed")
    expect(tab_of(lab, "renamed")).to_be_visible(timeout=PATIENCE_MS)
    # The tab is in the workspace's layout, and what it shows is there too.
    lab.page.wait_for_function(
        """async ([address, tab]) => {
            const text = await (await fetch(address)).text();
            return text.split(`jaxprof-capture:${tab}`).length > 2 && text.includes('environment');
        }""",
        arg=[f"{lab.server.url}lab/api/workspaces", capture_id],
        timeout=PATIENCE_MS,
    )
    lab.go(reset=False)
    expect(page.get_by_role("tab", name="Environment")).to_have_attribute(
        "aria-selected", "true", timeout=PATIENCE_MS
    )
    store.delete(capture_id)
    expect(page.get_by_role("alert")).to_contain_text("“renamed” was deleted", timeout=PATIENCE_MS)


def test_several_captures_are_selected_compared_and_deleted(
    lab: Lab, store: Store, comparison: Locator
) -> None:
    add(store, "kept")
    add(store, "slow", 40.0)
    add(store, "fast", 10.0, cell=CELL.replace("sum", "mean"))
    timing = add(store, "timing", kind="time", summary={"headline": None})
    open_panel(lab)
    grid = lab.panel.get_by_role("grid")
    expect(grid).to_have_attribute("aria-multiselectable", "true")
    selected = grid.locator("[aria-selected=true]")
    lab.row("fast").click()
    lab.page.keyboard.press("Shift+ArrowDown")
    expect(selected).to_have_count(2)
    lab.row("kept").click(modifiers=["Shift"])
    expect(selected).to_have_count(3)
    lab.row("kept").click(modifiers=["ControlOrMeta"])
    expect(selected).to_have_count(2)

    lab.menu(lab.row("slow"), "Compare 2 Captures")
    verdict = comparison.locator(".jp-JaxProf-verdicts")
    expect(verdict).to_have_text(
        re.compile(r"fast is faster than slow: 10\.0\sms instead of 40\.0\sms"), timeout=PATIENCE_MS
    )
    expect(comparison.locator(".jp-JaxProf-diff .jp-mod-new")).to_have_text("+    return y.mean()")
    kernels = comparison.get_by_role("table", name="Kernels")
    expect(kernels.get_by_role("row").nth(1)).to_contain_text("▲")
    expect(comparison.get_by_role("table", name="Steps")).to_contain_text("4 × faster")
    save_screenshot(lab, "compare")
    comparison.get_by_role("button", name="Swap").click()
    expect(verdict).to_contain_text("slow is slower than fast", timeout=PATIENCE_MS)
    comparison.get_by_role("combobox", name="Add a capture").select_option(timing)
    expect(verdict).to_contain_text("measured nothing that both have", timeout=PATIENCE_MS)
    expect(tab_of(lab, "fast ↔ slow ↔ timing")).to_be_visible()
    comparison.get_by_role("button", name="Make timing the baseline").click()
    expect(verdict).to_contain_text("'fast' (of kind 'trace') and 'timing'", timeout=PATIENCE_MS)

    lab.row("fast").click()
    lab.row("slow").click(modifiers=["ControlOrMeta"])
    lab.page.keyboard.press("Delete")
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete 2 captures?")
    dialog.get_by_role("button", name="Delete").click()
    expect(lab.rows).to_have_count(2)
    comparison.get_by_role("button", name="Compare anew").click()
    expect(comparison.get_by_role("alert")).to_contain_text("it may have been deleted")
