"""The sidebar with 10,000 captures: from the click on its tab to its first rows painted."""

from __future__ import annotations

from collections.abc import Iterator

from bench.many import fill
from bench.pages import lab_server
from bench.table import Figure, Limit
from tests.support.browser import chromium, lab_page

ROUNDS = 5
FIRST_PAINT = """() => new Promise(done => {
    const tab = document.querySelector('.jp-SideBar [data-id="jaxprof-captures"]');
    const { left, top } = tab.getBoundingClientRect();
    const at = { clientX: left + 5, clientY: top + 5 };
    const init = { bubbles: true, cancelable: true, button: 0, view: window, ...at };
    const began = performance.now();
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
        tab.dispatchEvent(new MouseEvent(type, init));
    }
    const look = () => {
        const panel = document.querySelector('#jaxprof-captures');
        if (panel?.offsetParent && panel.querySelector('.jp-JaxProf-row[data-id]')) {
            // the frame after the next one begins once the rows are on the screen
            requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
        } else {
            requestAnimationFrame(look);
        }
    };
    look();
})"""


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    with lab_server() as server, chromium() as browser:
        fill(server.store)
        server.get_json("jaxprof/api/captures")
        times = list[float]()
        for _ in range(ROUNDS * (3 if long else 1)):
            with lab_page(browser, server) as lab:
                lab.go()
                lab.page.wait_for_load_state("networkidle")
                times.append(lab.page.evaluate(FIRST_PAINT) / 1e3)
    yield Figure.of_values("first rows of 10,000 captures painted", times, "s", Limit("value", 0.3))
