"""Make the pages' pictures: `python -m scripts.picture_lessons cpu|gpu STORE [PICTURE...]`.

STORE is where `scripts/record_lessons.py --store` has kept the captures of that device. Each picture is of
the newest capture of its name, drawn live by the present code in JupyterLab's light theme, 1400 pixels wide.
It needs a build of the labextension (`jlpm run build`), `chromium` and Pillow.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
from PIL import Image
from playwright.sync_api import Browser, Locator, expect

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Record, Store
from scripts.lessons import DOCS
from tests.support.browser import Lab, chromium, lab_page, set_theme
from tests.support.servers import Server, running_server

_WIDTH, _HEIGHT = 1400, 900
_PATIENCE_MS = 120_000


@dataclass
class Picture:
    """A picture of one capture's card; `height` is where to cut it off."""

    file: str
    device: str
    capture: str
    height: int = 720


PICTURES = [
    Picture("quickstart-finding", "cpu", "an epoch", height=860),
    Picture("timing-first", "cpu", "train_step"),
    Picture("batch-sizes", "cpu", "batch sizes", height=860),
    Picture("tracing-loader-gpu", "gpu", "slow loader", height=860),
]


def newest(store: Store, name: str) -> Record | None:
    """Give the newest capture of this name."""
    return next((row.record for row in store.list().rows if row.record and row.record.name == name), None)


def write_notebook(server: Server, store: Store, record: Record) -> None:
    """Save a notebook that shows a capture's card, as its cell left it."""
    bundle = cards.bundle(record, directory=store.directory(record.id), in_store=True)
    source = f"{record.magic}\n{record.cell}".strip()
    cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("display_data", data=bundle)])
    kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernelspec})
    nbformat.write(notebook, server.home / "work" / "course.ipynb")


def keep(picture: bytes, file: str) -> None:
    """Write a picture in the smallest form that browsers show."""
    directory = DOCS / "pictures"
    directory.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).save(directory / f"{file}.webp", quality=80, method=6)
    print(f"{file}: {(directory / f'{file}.webp').stat().st_size / 1000:.0f} kB", flush=True)


def card_of(lab: Lab) -> Locator:
    """Give the live card; its first finding is open."""
    card = lab.page.locator(".jp-JaxProf-card")
    expect(card.locator(".jx-live")).to_be_visible(timeout=_PATIENCE_MS)
    # the buttons are there once the store has answered, which draws the card anew
    expect(card.get_by_role("button", name="Rename")).to_be_visible(timeout=_PATIENCE_MS)
    lab.page.mouse.move(0, 0)
    return card


def take(browser: Browser, server: Server, store: Store, picture: Picture) -> None:
    """Make one picture; a capture that isn't there leaves the one that was made before."""
    record = newest(store, picture.capture)
    if record is None:
        print(f"{picture.file}: there is no capture {picture.capture!r} in {store.root}", flush=True)
        return
    write_notebook(server, store, record)
    with lab_page(browser, server) as lab:
        lab.page.set_default_timeout(_PATIENCE_MS)
        lab.page.set_viewport_size({"width": _WIDTH, "height": 2400})
        lab.go("lab/tree/course.ipynb")
        box = card_of(lab).bounding_box()
        assert box is not None
        cell = lab.page.locator(".jp-Notebook-cell").first.bounding_box()
        assert cell is not None
        clip = {
            "x": cell["x"],
            "y": cell["y"],
            "width": cell["width"],
            "height": min(cell["height"], picture.height),
        }
        keep(lab.page.screenshot(clip=clip), picture.file)


def take_xprof(browser: Browser, server: Server) -> None:
    """Make the picture of the sidebar with XProf at a capture beside it."""
    with lab_page(browser, server) as lab:
        lab.page.set_default_timeout(_PATIENCE_MS)
        lab.page.set_viewport_size({"width": _WIDTH, "height": _HEIGHT})
        lab.go()
        lab.show_panel()
        lab.open_in_xprof(lab.row("slow loader").first)
        lab.trace_events()
        bar = lab.page.frame_locator(".jp-JaxProf-tab:visible iframe").get_by_text("Don’t show again")
        if bar.count():  # where the machine that makes the pictures has no internet
            bar.click()
        lab.page.wait_for_timeout(2000)  # the viewer draws when it likes
        keep(lab.page.screenshot(), "tracing-xprof")


def main() -> int:
    """Make the pictures of a device, or those whose names are given."""
    device, store, names = sys.argv[1], Store(Path(sys.argv[2]).resolve()), sys.argv[3:]
    wanted = [one for one in PICTURES if one.device == device and (not names or one.file in names)]
    with chromium() as browser, running_server(store=store.root, lab=True) as server:
        set_theme(server, "JupyterLab Light")
        for picture in wanted:
            take(browser, server, store, picture)
        if device == "gpu" and (not names or "tracing-xprof" in names):
            take_xprof(browser, server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
