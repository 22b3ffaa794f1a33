"""The course: its notebooks are made of its pages, and each runs to its end in a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbclient import NotebookClient

from jupyterlab_jaxprof.cards import MIME_TYPE
from scripts import lessons
from tests.support.kernels import kernel_environment

pytestmark = pytest.mark.long

RECORDED = lessons.DOCS / "recorded"
#: What begins a cell that shows a card.
CARDS = ("%%jaxtime", "%%jaxtrace", "%%jaxsweep", "%%nsys", "%jaxtrace stop", "%jaxtrace --remote", "%jaxmem")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one page has compiled, the next need not: all have the network in common."""
    return tmp_path_factory.mktemp("programs")


def test_each_page_has_its_notebook_and_no_other_is_there() -> None:
    assert sorted(lessons.NOTEBOOKS.glob("*.ipynb")) == sorted(map(lessons.notebook_path, lessons.PAGES))
    for page in lessons.PAGES:
        made = lessons.notebook_path(page).read_text("utf-8")
        assert made == lessons.written(page), "the page has changed: python -m scripts.lessons"


def test_what_is_recorded_belongs_to_a_cell() -> None:
    cells = [(page, cell) for page in lessons.PAGES for cell in lessons.cells(page, gpu=True)]
    named = {f"{page.stem}-{cell.name}.txt" for page, cell in cells if cell.name}
    for device in ("cpu", "gpu"):
        assert {file.name for file in (RECORDED / device).iterdir()} <= named
    assert all(file.read_text("utf-8").startswith("Recorded on a") for file in RECORDED.glob("*/*.txt"))


@pytest.mark.parametrize("page", lessons.PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, programs: Path, tmp_path: Path) -> None:
    notebook = lessons.notebook(page)
    client = NotebookClient(
        notebook, kernel_name="python3", extra_arguments=["--log-level=ERROR"], timeout=240
    )
    client.execute(
        env=kernel_environment(
            tmp_path,
            JAX_COMPILATION_CACHE_DIR=str(programs),
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        ),
        cwd=str(tmp_path),
    )
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, made in zip(lessons.cells(page), ran, strict=True):
        errors = [output for output in made.outputs if output.output_type == "error"]
        assert bool(errors) == cell.raises, cell.source
        assert made.outputs or not cell.name, cell.source
        if cell.source.startswith(CARDS) and "--watch" not in cell.source:
            assert any(MIME_TYPE in output.get("data", {}) for output in made.outputs), cell.source
