"""Hostile names on their way through Chromium, and an untrusted notebook: nothing runs, nobody hears."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import nbformat
import pytest
from playwright.sync_api import Dialog, Request, Route, expect

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.diagnosis import diagnose
from jupyterlab_jaxprof.timeline import read
from tests.support.browser import PATIENCE_MS, Lab, chromium, lab_page, set_theme, write_notebook
from tests.support.endurance import tries
from tests.support.findings import finding, note
from tests.support.servers import Server, running_server
from tests.support.xspace import Plane, block

pytestmark = [pytest.mark.browser, pytest.mark.long]

ATTACK = "window.top.attacked=1"
NAME = f'<img src=x onerror="{ATTACK}">'
SCRIPT = f"</script><script>{ATTACK}</script><svg onload={ATTACK}>"
LINK = f"[x](javascript:{ATTACK}) javascript:{ATTACK}"
FOREIGN = "foreign.example"
HTML = f"""
<img src="http://{FOREIGN}/pixel"><img src="x" onerror="{ATTACK}"><script>{ATTACK}</script>
<style>@import "http://{FOREIGN}/style"; body {{ background: url(http://{FOREIGN}/background) }}</style>
<div style="background: url(http://{FOREIGN}/inline)">x</div><iframe src="http://{FOREIGN}/frame"></iframe>
<a id="link" href="javascript:{ATTACK}" data-jaxprof-run="x">hostile link</a><svg onload="{ATTACK}"></svg>
<link rel="stylesheet" href="http://{FOREIGN}/link"><object data="http://{FOREIGN}/object"></object>
<form action="http://{FOREIGN}/form"><button>x</button></form><math href="javascript:{ATTACK}">x</math>
"""


def trace() -> bytes:
    """A trace of a GPU whose kernels, steps, streams and annotations are all called so."""
    gpu = Plane("/device:GPU:0")
    kernels = [
        gpu.event(f"{NAME}{n}", n * 10**9, 10**8, {"hlo_module": SCRIPT, "hlo_op": NAME}) for n in range(20)
    ]
    gpu.line(f"Stream #1({NAME})", 1_000_000, kernels)
    host = Plane("/host:CPU")
    steps = [host.event(NAME, n * 10**10, 9 * 10**9, {"step_num": n}) for n in range(3)]
    inner = [host.event(SCRIPT, n * 10**10 + 10**9, 5 * 10**9) for n in range(3)]
    host.line(NAME, 1_000_000, [*steps, *inner])
    return block(1, gpu.bytes()) + block(1, host.bytes()) + block(4, NAME)


def publish(store: Store, name: str) -> Any:
    with store.begin("trace", name) as draft:
        path = draft.directory / "plugins/profile" / draft.session / "vm.xplane.pb"
        path.parent.mkdir(parents=True)
        path.write_bytes(trace())
        found = diagnose(read([path])).to_json()
        return draft.publish(
            status=Status.PARTIAL,
            reason=SCRIPT,
            notebook=f"{NAME}.ipynb",
            magic=NAME,
            cell=f"{SCRIPT}\n{NAME}\n{LINK}",
            environment={
                "host": NAME,
                "jax": SCRIPT,
                "xla_flags": NAME,
                "devices": [{"id": 0, "kind": NAME}],
            },
            summary=found["summary"],
            findings=[*found["findings"], finding(NAME), note(SCRIPT), finding(LINK)],
            notices=[NAME, SCRIPT, LINK],
        )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("/", lab=True) as server:
        set_theme(server, "JupyterLab Light")
        yield server


@pytest.fixture
def lab(server: Server) -> Iterator[Lab]:
    with chromium() as browser, lab_page(browser, server) as lab:
        heard: list[str] = []

        def on_request(request: Request) -> None:
            # A picture in plain HTML, which JupyterLab's own renderer loads in untrusted notebooks too.
            if request.url.startswith(f"http://{FOREIGN}/") and "/pixel" not in request.url:
                heard.append(request.url)

        def on_dialog(dialog: Dialog) -> None:
            heard.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def refuse(route: Route) -> None:
            route.abort()

        lab.page.context.route(lambda url: not url.startswith(server.url), refuse)
        lab.page.context.on("request", on_request)
        lab.page.context.on("dialog", on_dialog)
        yield lab
        for page in lab.page.context.pages:
            for frame in page.frames:
                assert frame.evaluate("window.attacked") is None, frame.url
        assert heard == []


def test_hostile_names_are_texts_everywhere(lab: Lab, server: Server) -> None:
    store = Store(server.store)
    records = [publish(store, NAME), publish(store, SCRIPT)]
    outputs = [
        nbformat.v4.new_output(
            "display_data", data=cards.bundle(one, directory=store.directory(one.id), in_store=True)
        )
        for one in records
    ]
    write_notebook(server, "hostile.ipynb", [""], outputs)
    page = lab.page
    lab.go("lab/tree/hostile.ipynb")
    card = page.locator(".jp-JaxProf-card").first
    expect(card).to_contain_text(NAME, timeout=PATIENCE_MS)
    for summary in card.locator("summary").all():
        summary.click()
    card.get_by_role("application").first.hover()
    lab.show_panel()
    row = lab.row(NAME)
    row.hover()
    expect(row).to_be_visible()
    row.dblclick()
    tab = page.locator(".jp-JaxProf-capture:visible")
    for name in ("Environment", "Files", "Cell", "History"):
        found = tab.get_by_role("tab", name=name)
        if found.count():
            found.first.click()
    ids = "&".join(f"id={one.id}" for one in records)
    compared = server.get_json(f"jaxprof/api/compare?{ids}")
    assert NAME in json.dumps(compared) or SCRIPT in json.dumps(compared)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    row.click()
    page.keyboard.press("F2")
    page.keyboard.press("Escape")
    row.click()
    page.keyboard.press("Delete")
    dialog = page.locator(".jp-Dialog, [role=dialog]").first
    if dialog.count():
        page.keyboard.press("Escape")
    # Our page around XProf, whose own scripts from elsewhere are not there: the tables and drawings are ours.
    viewer, run = page.context.new_page(), records[0].xprof_run
    for tool in ("overview_page", "hlo_stats", "framework_op_stats", "trace_viewer@")[: tries(2, 4)]:
        viewer.goto(f"{server.url}jaxprof/xprof?run={run}&tool={tool}", timeout=60_000)
        expect(viewer.locator("#viewer")).to_be_visible(timeout=PATIENCE_MS)
    viewer.goto(f"{server.url}jaxprof/xprof?run={quote(NAME)}&tool={quote(NAME)}&host={quote(SCRIPT)}")
    expect(viewer.locator("#message")).not_to_have_text("", timeout=PATIENCE_MS)
    assert viewer.evaluate("window.attacked") is None


def test_an_untrusted_notebook_runs_nothing_and_tells_nobody(lab: Lab, server: Server) -> None:
    store = Store(server.store)
    record = publish(store, "as it was")
    bundle = cards.bundle(record, directory=store.directory(record.id), in_store=True)
    mine = json.loads(json.dumps(bundle[cards.MIME_TYPE]))
    wrong = {"schema": 9}, {"kind": "energy"}, {"summary": 3}, {"id": NAME}, {"id": "../../x", "name": NAME}
    urls = {
        key: f"http://{FOREIGN}/{key}" for key in ("id", "notebook", "magic", "reason", "directory", "url")
    }
    shown = [
        {**bundle, "text/html": HTML},
        *({**bundle, "text/html": HTML, cards.MIME_TYPE: mine | changes} for changes in wrong),
        {**bundle, "text/html": HTML, cards.MIME_TYPE: mine | urls | {"xprof_run": f"//{FOREIGN}/x"}},
        {
            **bundle,
            "text/html": HTML,
            cards.MIME_TYPE: mine | {"findings": [finding() | {"doc": f"//{FOREIGN}"}]},
        },
        {"text/html": HTML, cards.MIME_TYPE: {"schema": 1}, "text/plain": "x"},
    ]
    outputs = [nbformat.v4.new_output("display_data", data=data) for data in shown]
    write_notebook(server, "untrusted.ipynb", [""], outputs)
    page = lab.page
    lab.go()  # with the extension there: until it is, the outputs are JupyterLab's
    page.locator(".jp-DirListing-item").filter(has_text="untrusted.ipynb").dblclick()
    expect(page.locator(".jp-JaxProf-card").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".jp-OutputArea-output")).to_have_count(len(shown), timeout=PATIENCE_MS)
    expect(page.locator(".jp-JaxProf-card")).to_have_count(len(shown))
    for output in page.locator(".jp-OutputArea-output").all():
        output.scroll_into_view_if_needed()
    assert page.locator(".jp-JaxProf-card").locator("img, iframe, object, link, style").count() == 0
    assert page.locator("script:not([src])", has_text=ATTACK).count() == 0
    for link in page.locator(".jp-OutputArea-output a").all():
        address = link.get_attribute("href") or ""
        assert not address.lower().startswith(("javascript:", f"//{FOREIGN}", f"http://{FOREIGN}")), address
    for link in page.get_by_text("hostile link").all():
        link.click()
    assert len(page.context.pages) == 1
