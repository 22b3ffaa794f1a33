"""Make the README's pictures: `python scripts/screenshots.py` writes docs/images/*.png.

A real JupyterLab with traces that were recorded on an NVIDIA H200 (tests/data), imported as a user would. It
needs the labextension built (`jlpm run build`), Chromium, and the extra `dev`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import nbformat
from PIL import Image
from playwright.sync_api import expect

from jupyterlab_jaxprof import cards, reports
from jupyterlab_jaxprof.captures import Record, Store
from tests.support import servers
from tests.support.browser import PATIENCE_MS, Lab, chromium, lab_page, set_theme
from tests.support.captures import unpacked_to
from tests.support.servers import Server, running_server

IMAGES = Path(__file__).parents[1] / "docs/images"
#: What is recorded, the oldest first: its file, its name, and the cell that recorded it.
RECORDINGS = (
    ("healthy.xplane.pb", "after: prefetched"),
    ("float_loss.xplane.pb", "loss read each step"),
    ("tiny_scan.xplane.pb", "scan over layers"),
    ("host_starved.xplane.pb", "before: loader in the loop"),
)
_WIDTH, _HEIGHT = 1400, 820
_COLOURS = 128
servers.START_TIMEOUT_S = 300


def fill(store: Store) -> Record:
    """Import the recordings; gives the last one's record."""
    with tempfile.TemporaryDirectory() as place:
        for file, name in RECORDINGS:
            path = unpacked_to(Path(place), file)
            record = reports.import_path(store, path, name=name)
    return record


def write_notebook(server: Server, store: Store, record: Record) -> None:
    """Save a notebook whose one cell shows the record's card."""
    bundle = cards.bundle(record, directory=store.directory(record.id), in_store=True)
    cell = nbformat.v4.new_code_cell(
        f'%jaxprof report "{record.name}"', execution_count=1,
        outputs=[nbformat.v4.new_output("display_data", data=bundle)],
    )  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    nbformat.write(notebook, server.home / "work/training.ipynb")


def picture(lab: Lab, name: str) -> None:
    """Save the page with few colours: a README is read over slow lines too."""
    path = IMAGES / f"{name}.png"
    lab.page.screenshot(path=str(path), animations="disabled")
    with Image.open(path) as image:
        image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def shoot(lab: Lab, suffix: str) -> None:
    """The card beside the sidebar; in the light theme the trace in XProf too."""
    lab.go("lab/tree/training.ipynb")
    lab.show_panel()
    expect(lab.rows).to_have_count(len(RECORDINGS), timeout=PATIENCE_MS * 4)
    card = lab.page.locator(".jp-JaxProf-card .jaxprof-card")
    expect(card).to_be_visible(timeout=PATIENCE_MS * 4)
    lab.page.wait_for_timeout(2000)  # the notebook's layout
    picture(lab, f"card{suffix}")
    if not suffix:
        lab.open_in_xprof(lab.row(RECORDINGS[-1][1]))
        assert lab.trace_events()
        notice = lab.page.frame_locator(".jp-JaxProf-tab:visible iframe").get_by_role(
            "button", name="show again"
        )
        if notice.count():  # where Google's charts are out of reach
            notice.click()
        lab.page.wait_for_timeout(2000)  # what it draws
        picture(lab, "xprof")


def main() -> None:
    """Make all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser, running_server(lab=True) as server:
        store = Store(server.store)
        write_notebook(server, store, fill(store))
        for suffix, theme in (("", "JupyterLab Light"), ("-dark", "JupyterLab Dark")):
            set_theme(server, theme)
            with lab_page(browser, server) as lab:
                lab.page.set_viewport_size({"width": _WIDTH, "height": _HEIGHT})
                lab.page.set_default_timeout(120_000)
                shoot(lab, suffix)


if __name__ == "__main__":
    main()
