"""Run the course and keep what it prints: `python -m scripts.record_lessons cpu|gpu [PAGE...]`.

Each page's notebook runs in a kernel of its own. What a named cell gave is written to
`docs/recorded/<device>/`, below a line that says what it was recorded on. The captures themselves go to
`--store`, for the pictures (`scripts/picture_lessons.py`).
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from scripts import lessons
from tests.support.kernels import kernel_environment

RECORDED = lessons.DOCS / "recorded"
#: What the pages name in place of this machine's own directory of captures.
STORE = "~/.local/share/jupyter/jaxprof"
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# what a reader's own machine has otherwise, and what says nothing of JaxProf
_OWN = [
    (re.compile(re.escape(str(Path(sys.prefix) / "bin")) + r"/(python)?[\d.]*"), r"~/venv/bin/\1"),
    (re.compile(r"(Linux-[\d.]+)-\S*?-?(x86_64|aarch64)"), r"\1-\2"),
    (re.compile(r"ipykernel_\d+/\d+\.py"), "ipykernel_1/1.py"),
]
_PLATFORM = {"cpu": "cpu", "gpu": "cuda"}
_DESCRIBE = """
import jax, os
_device = jax.devices()[0]
_kind = f"a CPU with {os.cpu_count()} cores" if _device.platform == "cpu" else f"an {_device.device_kind}"
f"{_kind}, JAX {jax.__version__}"
"""


def run(page: Path, device: str, store: Path) -> tuple[NotebookNode, str]:
    """Run a page's notebook in a new kernel; give it with its outputs, and what it ran on."""
    notebook = lessons.notebook(page, gpu=device == "gpu")
    described = len(notebook.cells)
    notebook.cells.append(
        NotebookNode(cell_type="code", id="described", metadata={}, source=_DESCRIBE, outputs=[])
    )
    with tempfile.TemporaryDirectory() as directory:
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            timeout=600,
        )
        client.execute(
            env=kernel_environment(directory, JAX_PLATFORMS=_PLATFORM[device], JAXPROF_DIR=str(store)),
            cwd=directory,
        )
    where = shown(notebook.cells.pop(described).outputs).strip("'\n")
    return notebook, where


def shown(outputs: list[NotebookNode]) -> str:
    """Give a cell's outputs as a terminal has them."""
    texts: list[str] = []
    for output in outputs:
        match output.output_type:
            case "stream":
                texts.append(output.text.rstrip("\n"))
            case "error":
                texts.append("\n".join(output.traceback))
            case _:
                texts.append(output.data.get("text/plain", "").rstrip("\n"))
    return _ESCAPES.sub("", "\n".join(texts))


def without_own(text: str, store: Path) -> str:
    """Put general names for those of this machine."""
    text = text.replace(str(store), STORE)
    for own, general in _OWN:
        text = own.sub(general, text)
    return text


def record(page: Path, device: str, store: Path) -> None:
    """Run a page and write what its named cells gave."""
    notebook, where = run(page, device, store)
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    directory = RECORDED / device
    directory.mkdir(parents=True, exist_ok=True)
    for cell, made in zip(lessons.cells(page, gpu=device == "gpu"), ran, strict=True):
        if cell.name:
            text = without_own(shown(made.outputs), store)
            caption = f"Recorded on {where}, {time.strftime('%Y-%m-%d')}."
            (directory / f"{page.stem}-{cell.name}.txt").write_text(f"{caption}\n\n{text}\n", "utf-8")


def main() -> int:
    """Record all pages, or those whose names are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=_PLATFORM)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as timing; default: all")
    parser.add_argument("--store", type=Path, help="keep the captures in this directory")
    options = parser.parse_args()
    failed: list[str] = []
    store = options.store.resolve() if options.store else Path(tempfile.mkdtemp(prefix="jaxprof-course-"))
    try:
        for page in lessons.PAGES:
            if not options.pages or page.stem in options.pages:
                started = time.perf_counter()
                try:
                    record(page, options.device, store)
                except CellExecutionError as error:  # the other pages may run
                    failed.append(page.stem)
                    print(error, file=sys.stderr)
                print(f"{page.stem}: {time.perf_counter() - started:.1f} s", flush=True)
    finally:
        if not options.store:
            shutil.rmtree(store)
    if failed:
        print(f"Not recorded, since a cell failed: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
