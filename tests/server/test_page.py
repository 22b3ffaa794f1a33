"""The page around XProf in a real browser: what it shows, and what it keeps from the page that frames it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlparse

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, Route, expect

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.diagnosis import diagnose
from tests.server.conftest import Publish, publish_capture
from tests.support.browser import chromium
from tests.support.servers import Server, unpacked

pytestmark = pytest.mark.browser

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """A logged-in page; what lies outside of the server can't be reached."""
    context = browser.new_context(viewport={"width": 1300, "height": 800})
    context.route(
        lambda url: not url.startswith(server.url.partition("/user")[0]), lambda route: route.abort()
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(server.lab_address("jaxprof/static/viewer.css"))
    yield page
    context.close()


@pytest.fixture(scope="module")
def run(server: Server) -> str:
    return publish_capture(server.store, "Größe 1").xprof_run or ""


def open_page(page: Page, server: Server, query: str = "") -> None:
    page.goto(f"{server.url}jaxprof/xprof?{query}")


def xprof(page: Page):
    return page.frame_locator("#viewer")


def figures(page: Page | FrameLocator) -> Locator:
    """What this page draws itself where Google's charts can't be reached."""
    return page.get_by_role("region", name="Figures")


def expect_trace(page: Page) -> None:
    viewer = xprof(page).frame_locator("iframe")
    expect(viewer.get_by_text("XLA Modules").first).to_be_visible()


def test_a_run_opens_in_the_trace_viewer_and_survives_a_reload(page: Page, server: Server, run: str):
    open_page(page, server, f"run={quote(run)}")
    length = page.evaluate("history.length")
    expect_trace(page)
    page.wait_for_url(lambda url: "tag=trace_viewer" in url)  # XProf has written its view into the address
    assert page.evaluate("history.length") == length
    address = urlparse(page.url)
    assert address.path == "/user/me@host.org/jaxprof/xprof"
    assert parse_qs(address.query)["run"] == [run]
    assert "trace_viewer" in page.title()
    page.reload()
    expect_trace(page)


def test_a_tool_and_a_host_may_be_named(page: Page, server: Server, run: str):
    open_page(page, server, f"run={quote(run)}&tool=overview_page&host=vm")
    expect(figures(page).get_by_role("heading", name="Overview")).to_be_visible()
    frame = page.frame(url=lambda url: "/xprof/data/plugin/profile/overview_page" in url)
    assert frame
    assert parse_qs(urlparse(frame.url).query)["host"] == ["vm"]


def test_without_a_run_xprof_opens_as_it_is(page: Page, server: Server, run: str):
    open_page(page, server)
    expect(xprof(page).get_by_text("Sessions")).to_be_attached()  # our tables may stand in its place


def test_a_missing_run_is_explained_and_may_be_tried_again(page: Page, server: Server):
    record = publish_capture(server.store, "later")
    directory = server.store / "captures" / record.id
    aside = server.home / "aside"
    directory.rename(aside)
    open_page(page, server, f"run={record.xprof_run}")
    expect(page.get_by_role("status")).to_contain_text("There is no run")
    expect(page.locator("#viewer")).to_be_hidden()
    aside.rename(directory)
    page.get_by_role("button", name="Try again").click()
    expect_trace(page)


@pytest.mark.parametrize(("content", "words"), [(b"", "empty (0 bytes)"), (b"garbage", "damaged")])
def test_a_damaged_trace_is_explained(
    page: Page, server: Server, publish: Publish, content: bytes, words: str
):
    record = publish("bad", {"plugins/profile/bad/vm.xplane.pb": content})
    open_page(page, server, f"run={record.xprof_run}&tool=trace_viewer%40")
    expect(page.get_by_role("status")).to_contain_text(words)


def test_a_failed_start_shows_the_reason(page: Page, server: Server, run: str):
    reason = "XProf ended while starting (exit status 1). Its log ends: ImportError: <b>broken</b>"

    def fail(route: Route):
        route.fulfill(json={"state": "failed", "message": reason})

    page.route("**/jaxprof/api/viewers/xprof", fail)
    open_page(page, server, f"run={run}")
    expect(page.get_by_role("status")).to_have_text(reason)
    page.unroute("**/jaxprof/api/viewers/xprof")
    page.get_by_role("button", name="Try again").click()
    expect_trace(page)


def test_an_answer_that_makes_no_sense_is_told(page: Page, server: Server, run: str):
    page.route("**/run_tools?*", lambda route: route.fulfill(body="<html>a login page of some hub</html>"))
    open_page(page, server, f"run={quote(run)}")
    expect(page.get_by_role("status")).to_contain_text("an unexpected answer of the server")
    page.unroute("**/run_tools?*")
    page.get_by_role("button", name="Try again").click()
    expect_trace(page)


@pytest.fixture(scope="module")
def diagnosed(server: Server) -> str:
    """A capture of the H200 with its findings, as `%%jaxtrace` leaves it."""
    store = Store(server.store)
    with store.begin("trace", "small operations") as capture:
        path = unpacked("small_ops", capture.directory / "plugins/profile" / capture.session)
        found = diagnose(timeline.read(path)).to_json()
        record = capture.publish(status=Status.OK, findings=found["findings"], summary=found["summary"])
    return record.xprof_run or ""


def test_what_lacks_without_the_internet_is_said_until_dismissed(page: Page, server: Server, run: str):
    notice = page.get_by_role("complementary", name="Notice")
    open_page(page, server, f"run={run}&tool=overview_page")
    expect(notice).to_contain_text("www.gstatic.com")
    notice.get_by_text("www.gstatic.com").click()
    expect(notice).to_contain_text("graph_viewer: stays blank")
    notice.get_by_role("button").click()
    expect(notice).to_be_hidden()
    page.reload()
    expect(page.get_by_role("navigation", name="Tools")).to_be_visible()
    expect(notice).to_be_hidden()
    page.get_by_role("button", name="XProf").click()
    expect(xprof(page).get_by_text("Performance Summary")).to_be_visible()


def test_without_the_internet_the_tools_are_drawn_here(page: Page, server: Server, diagnosed: str):
    tools = page.get_by_role("navigation", name="Tools")
    shown = figures(page)
    open_page(page, server, f"run={quote(diagnosed)}&tool=hlo_stats")
    # Our own figures first, then XProf's.
    own = shown.get_by_role("table", name="HLO operations").first
    expect(own.get_by_role("row").nth(1)).to_contain_text("wrapped_sine")
    expect(shown.get_by_role("heading", name="As XProf counts it")).to_be_visible()
    tools.get_by_role("button", name="Kernels").click()
    kernels = shown.get_by_role("table", name="Kernels", exact=True)
    expect(kernels.get_by_role("row")).to_have_count(4)
    head = kernels.get_by_role("columnheader", name="Total Duration")
    totals = [kernels.get_by_role("row").nth(row).get_by_role("cell").nth(-4) for row in (1, 3)]
    for order, (more, less) in (("descending", totals), ("ascending", totals[::-1])):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", order)
        assert float(more.inner_text()) > float(less.inner_text())
    tools.get_by_role("button", name="Roofline").click()
    expect(shown.get_by_role("img", name="Roofline").locator("circle")).to_have_count(3)
    tools.get_by_role("button", name="Memory").click()
    expect(shown.get_by_role("img", name="Memory in use of GPU_0_bfc")).to_be_visible()
    tools.get_by_role("button", name="Overview").click()
    expect(shown.get_by_text("operations a step are dispatched one by one")).to_be_visible()
    expect(shown.get_by_role("img", name="The parts of each step")).to_be_visible()
    assert "tool=overview_page" in page.url or "tag=overview_page" in page.url


def test_with_the_internet_there_is_no_notice(page: Page, server: Server, run: str):
    charts = "window.google = {charts: {safeLoad() {}, load() {}, setOnLoadCallback() {}}};"
    page.context.route(
        "https://www.gstatic.com/charts/loader.js",
        lambda route: route.fulfill(body=charts, content_type="application/javascript"),
    )
    open_page(page, server, f"run={run}")
    expect_trace(page)
    page.wait_for_timeout(1500)
    expect(page.get_by_role("complementary", name="Notice")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Tools")).to_be_hidden()


PARENT = """<!doctype html><title>parent</title><script>
window.states = [];
addEventListener('message', event => {
  const frames = [...document.querySelectorAll('iframe')];
  const index = frames.findIndex(frame => frame.contentWindow === event.source);
  window.states.push({index, origin: event.origin, ...event.data});
});
</script><body data-jp-theme-light="false">FRAMES"""


def test_inside_another_page_it_tells_its_state_and_touches_nothing(page: Page, server: Server, run: str):
    """As JupyterLab's tabs do: two side by side, in a fresh session, each with its own run."""
    other = publish_capture(server.store, "other").xprof_run or ""
    frames = "".join(
        f'<iframe width="640" height="700" src="{server.url}jaxprof/xprof?run={quote(name)}{tool}"></iframe>'
        for name, tool in ((run, ""), (other, "&tool=overview_page&theme=light"))
    )
    parent = f"{server.url}parent?untouched=1"
    page.route(
        parent, lambda route: route.fulfill(body=PARENT.replace("FRAMES", frames), content_type="text/html")
    )
    page.goto(parent)
    length = page.evaluate("history.length")
    left = page.frame_locator("iframe >> nth=0").frame_locator("#viewer")
    right = figures(page.frame_locator("iframe >> nth=1"))
    expect(left.frame_locator("iframe").get_by_text("XLA Modules").first).to_be_visible()
    expect(right.get_by_role("heading", name="Overview")).to_be_visible()
    states = page.evaluate("window.states")
    assert all(state["source"] == "jaxprof" and state["type"] == "state" for state in states)
    assert {state["origin"] for state in states} == {server.url.partition("/user")[0]}
    last = {state["index"]: state for state in states}
    assert [last[0]["status"], last[1]["status"]] == ["ready", "ready"]
    assert (last[0]["run"], last[0]["tool"], last[0]["host"]) == (run, "trace_viewer@", "vm")
    assert (last[1]["run"], last[1]["tool"]) == (other, "overview_page")
    # Another tool on the right: told, and nothing else changes.
    page.frame_locator("iframe >> nth=1").get_by_role("button", name="Kernels").click()
    page.wait_for_function("window.states.at(-1).tool === 'kernel_stats'")
    last = {state["index"]: state for state in page.evaluate("window.states")}
    assert (last[0]["run"], last[0]["tool"], last[1]["run"]) == (run, "trace_viewer@", other)
    assert page.url == parent
    assert page.title() == "parent"
    assert page.evaluate("history.length") == length
    # JupyterLab's theme is theirs, whatever it was when the address was made; later ones come as messages.
    for page_frame in page.frames[0].child_frames:
        assert page_frame.evaluate("document.documentElement.dataset.theme") == "dark"
    send = "message => frames[1].postMessage(message, location.origin)"
    page.evaluate(send, {"source": "jaxprof", "type": "theme", "theme": "light"})
    page.evaluate(send, {"source": "other", "type": "theme", "theme": "dark"})
    inner = page.frames[0].child_frames[1]
    inner.wait_for_function("document.documentElement.dataset.theme === 'light'")


def test_a_loading_viewer_leaves_the_keyboard_to_the_page_around_it(page: Page, server: Server, run: str):
    """The trace viewer takes the focus when it has loaded: typed text, and a dialog's keys, went there."""
    parent = f"{server.url}parent"
    frame = f'<iframe width="1400" height="800" src="{server.url}jaxprof/xprof?run={quote(run)}"></iframe>'
    page.set_viewport_size({"width": 1500, "height": 900})
    page.route(parent, lambda route: route.fulfill(body=f"<input>{frame}", content_type="text/html"))
    page.goto(parent)
    page.locator("input").focus()
    trace = page.frame_locator("iframe").frame_locator("#viewer").frame_locator("iframe")
    expect(trace.get_by_text("XLA Modules").first).to_be_visible()
    page.keyboard.type("typed meanwhile", delay=100)
    expect(page.locator("input")).to_have_value("typed meanwhile")
    # A click gives it to the viewer, which then moves it as it likes.
    search = trace.locator("input").first
    search.click()
    page.keyboard.type("train")
    expect(search).to_have_value("train")


def test_links_that_led_out_of_the_prefix_are_mended(page: Page, server: Server, run: str):
    module = server.get(f"xprof/data/plugin/profile/module_list?run={quote(run)}").text
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    query = f"run={quote(run)}&tool=graph_viewer&host=vm&module_name={quote(module)}&node_name=loop_fusion"
    with page.expect_response(lambda answer: "type=graph" in answer.url and "/data?" in answer.url) as graph:
        open_page(page, server, query)
    assert urlparse(graph.value.url).path == "/user/me@host.org/xprof/data/plugin/profile/data"
    origin = server.url.partition("/user")[0]
    own = [url for url in outside if url.startswith(origin)]
    assert own
    assert [url for url in own if not url.startswith(server.url)] == []
    # The links that XProf makes for a new tab lead to this page, and to XProf's data.
    frame = page.frame(url=lambda url: "/xprof/data/plugin/profile/graph_viewer" in url)
    assert frame
    built = frame.evaluate(
        "[`${document.baseURI.split('/data/plugin/profile')[0]}`,"
        " `${window.parent.location.origin}${window.parent.location.pathname}`]"
    )
    assert built == [f"{server.url}xprof", f"{server.url}jaxprof/xprof"]


def test_it_is_dark_where_the_system_is(page: Page, server: Server):
    background = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    open_page(page, server, "run=nothing/here")
    assert page.evaluate(background) == "rgb(17, 17, 17)"
    open_page(page, server, "run=nothing/here&theme=light")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_tensorboard_opens_at_the_run(page: Page, server: Server, run: str):
    page.goto(f"{server.url}jaxprof/tensorboard?run={quote(run)}")
    inner = page.frame_locator("#viewer").frame_locator("iframe")
    expect(inner.get_by_text("Performance Summary")).to_be_visible()
    expect(inner.get_by_text("CAPTURE PROFILE", exact=False)).to_have_count(0)
