"""JupyterLab in a real Chromium: pages that log in, run cells and drive the JaxProf panel."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Download,
    Error,
    Frame,
    Locator,
    Page,
    expect,
    sync_playwright,
)

from tests.support.servers import Server

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 30_000
"""For what a busy machine does slowly: starting a kernel, importing JAX, starting XProf."""

expect.set_options(timeout=PATIENCE_MS)  # of itself it waits for 5 s, too few on a busy machine


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium, and end it at the end."""
    executable = shutil.which("chromium")
    assert executable, "There is no `chromium` on the PATH: install the system's package of that name."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def write_notebook(
    server: Server, name: str, sources: Sequence[str], outputs: Sequence[nbformat.NotebookNode] = ()
) -> None:
    """Write a notebook with these code cells into the server's directory; `outputs` are the first one's."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].outputs = list(outputs)
    notebook = nbformat.v4.new_notebook(
        cells=cells,
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, server.home / "work" / name)


def set_theme(server: Server, theme: str) -> None:
    """Choose JupyterLab's theme, and no questions about news."""
    directory = server.home / "settings/@jupyterlab/apputils-extension"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    (directory / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )


class Lab:
    """A page of JupyterLab (or Notebook 7), and what a person does on it."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        self.errors: list[str] = []
        page.on("pageerror", self._on_error)

    def _on_error(self, error: Error) -> None:
        # Notebook 7 and XProf throw on their own account.
        if "extensions/jupyterlab-jaxprof" in (error.stack or "") or "jaxprof/static" in (error.stack or ""):
            self.errors.append(f"{error}\n{error.stack}")

    def go(self, path: str = "lab", *, reset: bool = True) -> None:
        """Open a page below the base URL, in a workspace without earlier tabs."""
        self.page.goto(self.server.lab_address(path) + ("&reset" if reset else ""), timeout=60_000)
        if path.startswith("lab"):
            self.page.wait_for_selector("#jp-main-content-panel", timeout=60_000)
            self.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=60_000)
        if path == "lab" and reset:
            # JupyterLab opens its launcher late, and gives it the keyboard.
            self.page.wait_for_selector(".jp-Launcher:focus-within", timeout=60_000)

    def reload(self) -> None:
        """Load the page anew, as it was."""
        self.page.reload(timeout=60_000)
        self.page.wait_for_selector("#jp-main-content-panel", timeout=60_000)

    # The panel

    @property
    def panel(self) -> Locator:
        return self.page.locator("#jaxprof-captures")

    def show_panel(self) -> None:
        tab = self.page.locator('.jp-SideBar [data-id="jaxprof-captures"]')
        tab.wait_for()
        if not self.panel.is_visible():
            tab.click()
        expect(self.panel).to_be_visible()

    @property
    def rows(self) -> Locator:
        return self.panel.locator(".jp-JaxProf-row[data-id]")

    def row(self, name: str) -> Locator:
        """The row of the capture of this name."""
        return self.rows.filter(has=self.page.get_by_text(name, exact=True))

    def menu(self, row: Locator, item: str) -> None:
        """Choose from the menu behind a row's three dots."""
        row.hover()
        row.get_by_role("button", name="More actions").click()
        self.page.locator(".lm-Menu-item").filter(has_text=item).first.click()

    def open_in_xprof(self, row: Locator) -> None:
        """Open a row's capture in XProf, by the keyboard."""
        row.focus()
        self.page.keyboard.press("Control+Enter")

    def command(self, label: str) -> None:
        """Choose a command from the palette."""
        self.page.locator("#jp-main-statusbar").click()  # the keys of a frame stay in it
        self.page.keyboard.press("Control+Shift+C")
        self.page.locator(".lm-CommandPalette-input:visible").fill(label)
        item = self.page.locator(".lm-CommandPalette-item:visible")
        item.filter(has=self.page.get_by_text(label, exact=True)).first.click()

    # Notebooks

    def wait_for_kernel(self) -> None:
        """Wait until the notebook has its kernel: a cell run before has JupyterLab ask for one."""
        status = self.page.locator("#jp-main-statusbar")
        expect(status).to_contain_text("Python 3 (ipykernel) | Idle", timeout=PATIENCE_MS * 2)

    @property
    def cells(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:visible .jp-Notebook-cell")

    def begin_cell(self, index: int) -> tuple[Locator, str]:
        """Run a cell; gives its prompt, and what that said before."""
        prompt = self.cells.nth(index).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        for _ in range(10):
            prompt.click()
            self.page.keyboard.press("Control+Enter")
            # A notebook that is still being laid out may lose the key.
            with suppress(AssertionError):
                expect(prompt).not_to_have_text(before, timeout=3000)
                break
        return prompt, before

    def run_cell(self, index: int) -> Locator:
        """Run a cell to its end and give it."""
        prompt, before = self.begin_cell(index)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE_MS * 2)
        expect(prompt).not_to_have_text(before, timeout=PATIENCE_MS * 2)
        return self.cells.nth(index)

    # Downloads

    def download(self, action: Any) -> tuple[str, bytes]:
        """Do something that downloads a file; gives its suggested name and its bytes."""
        with self.page.expect_download(timeout=PATIENCE_MS) as started:
            action()
        download: Download = started.value
        return download.suggested_filename, Path(download.path()).read_bytes()

    # XProf

    @property
    def tabs(self) -> list[str]:
        """The labels of the tabs in the main area."""
        return self.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").all_inner_texts()

    def viewer_frame(self) -> Frame:
        """The trace viewer within XProf within our page within the tab that is in sight."""
        frame = self.page.locator(".jp-JaxProf-tab:visible iframe")
        frame.wait_for(timeout=PATIENCE_MS)
        seen: list[str] = []
        for _ in range(PATIENCE_MS // 100):
            page = frame.element_handle().content_frame()  # none while the tab puts a new one there
            within = [*_descendants(page)] if page else []
            for child in within:
                if "trace_viewer_index" in child.url:
                    return child
            seen = [child.url for child in within]
            self.page.wait_for_timeout(100)
        raise AssertionError(f"No frame of trace_viewer_index in {seen}")

    def trace_events(self) -> dict[str, int]:
        """The events that trace_viewer has loaded, by name."""
        frame = self.viewer_frame()
        frame.wait_for_function(f"() => ({MODEL})()?.getDescendantEvents", timeout=PATIENCE_MS)
        return frame.evaluate(
            f"""() => {{
                const counts = {{}};
                for (const {{ title }} of ({MODEL})().getDescendantEvents()) {{
                    counts[title] = (counts[title] ?? 0) + 1;
                }}
                return counts;
            }}"""
        )

    def drawn_colours(self) -> int:
        """How many colours trace_viewer has drawn on its canvas."""
        return self.viewer_frame().evaluate(COLOURS)


# The trace viewer replaces querySelectorAll by a polyfill whose answer is no iterable.
MODEL = "() => Array.prototype.slice.call(document.getElementsByTagName('tf-trace-viewer'))[0]?._model"

COLOURS = """() => {
    const find = node => Array.prototype.slice.call(node.querySelectorAll('*')).flatMap(element => [
        ...(element.tagName === 'CANVAS' ? [element] : []),
        ...(element.shadowRoot ? find(element.shadowRoot) : [])
    ]);
    const colours = new Set();
    for (const canvas of find(document)) {
        const { width, height } = canvas;
        if (width && height) {
            const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
            for (let i = 0; i < data.length; i += 4) {
                colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
            }
        }
    }
    return colours.size;
}"""


def save_screenshot(lab: Lab, name: str) -> None:
    """Save the page as a picture when JAXPROF_SCREENSHOTS names a directory."""
    directory = os.environ.get("JAXPROF_SCREENSHOTS")
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
        lab.page.screenshot(path=str(Path(directory, f"{name}.png")))


def _descendants(frame: Frame) -> Iterator[Frame]:
    for child in frame.child_frames:
        yield child
        yield from _descendants(child)


@contextmanager
def lab_page(browser: Browser, server: Server, **options: Any) -> Iterator[Lab]:
    """Open an own browser context on a server; errors of the page fail the test."""
    context: BrowserContext = browser.new_context(viewport={"width": 1400, "height": 900}, **options)
    context.set_default_timeout(15_000)
    try:
        lab = Lab(context.new_page(), server)
        yield lab
        if lab.errors:
            raise AssertionError("Errors on the page:\n" + "\n".join(lab.errors))
    except BaseException:
        save_screenshot(lab, f"failure-{time.strftime('%H%M%S')}")
        raise
    finally:
        context.close()
