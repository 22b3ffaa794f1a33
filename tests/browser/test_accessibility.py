"""Whatever this extension draws has names, roles and contrast enough: axe finds nothing, in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Record, Status, Store
from jupyterlab_jaxprof.diagnosis import diagnose
from tests.support.axe import violations
from tests.support.browser import Lab
from tests.support.servers import Server, unpacked

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def captures(server_at: Callable[[str], Server]) -> Iterator[list[Record]]:
    """A diagnosed trace, a failed one, a pinned one with notes."""
    server = server_at("/user/me@host.org/")
    store = Store(server.store)
    records: list[Record] = []
    with store.begin("trace", "diagnosed") as capture:
        path = unpacked("small_ops", capture.directory / "plugins/profile" / capture.session)
        found = diagnose(timeline.read(path)).to_json()
        records.append(
            capture.publish(
                status=Status.OK, cell="step()", findings=found["findings"], summary=found["summary"]
            )
        )
    with store.begin("time", "failed") as capture:
        records.append(capture.publish(status=Status.FAILED, reason="The cell raised ValueError."))
    with store.begin("memory", "pinned") as capture:
        records.append(capture.publish(status=Status.OK, notices=["A remark."]))
    store.update(records[2].id, pinned=True, notes="compare with the others")
    yield records
    for record in records:
        store.delete(record.id)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_every_part_in_both_themes(lab: Lab, captures: list[Record], theme: str) -> None:
    lab.go()
    lab.command(f"Use Theme: {theme}")
    lab.show_panel()
    lab.row("diagnosed").click()
    lab.page.keyboard.press("Space")
    expect(lab.panel.get_by_text("vm.xplane.pb").first).to_be_visible()
    found = {"sidebar": violations(lab.page, "#jaxprof-captures")}

    lab.row("diagnosed").dblclick()
    tab = lab.page.locator(".jp-JaxProf-capture:visible")
    expect(tab.get_by_text("dispatched one by one").first).to_be_visible()
    tab.evaluate("tab => { for (const one of tab.querySelectorAll('details')) one.open = true; }")
    expect(tab.get_by_role("table").first).to_be_visible()
    for section in tab.get_by_role("tab").all():
        section.click()
        name = section.inner_text()
        found[f"capture: {name}"] = violations(lab.page, ".jp-JaxProf-capture:not(.lm-mod-hidden)")

    lab.row("failed").click()
    lab.row("diagnosed").click(modifiers=["ControlOrMeta"])
    lab.menu(lab.row("diagnosed"), "Compare 2 Captures")
    comparison = lab.page.locator(".jp-JaxProf-compare:visible")
    expect(comparison.get_by_role("button", name="Swap")).to_be_visible()
    found["comparison"] = violations(lab.page, ".jp-JaxProf-compare:not(.lm-mod-hidden)")

    lab.row("diagnosed").click()
    lab.open_in_xprof(lab.row("diagnosed"))
    lab.viewer_frame()  # when it is there, so is the page around it
    page = lab.page.locator(".jp-JaxProf-tab:visible iframe").element_handle().content_frame()
    assert page
    page.get_by_role("navigation", name="Tools").get_by_role("button", name="Overview").click()
    expect(page.get_by_role("heading", name="Key figures")).to_be_visible()
    found["page of XProf"] = violations(page, "#tools, #tables, #notice")
    assert {part: problems for part, problems in found.items() if problems} == {}
