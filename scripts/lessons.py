"""The pages of the course as notebooks: `python -m scripts.lessons` writes examples/tutorial/*.ipynb.

A page is the only source. Its blocks of the language `python` are cells, in the page's order and in one
kernel; what is between them is prose. A block `{recorded} NAME` shows what the cell before it gave where it
was recorded (`docs/_ext/recorded.py`); its option `:raises:` says that this cell's error is what is to be
seen, `:gpu:` that it runs on a GPU only. A block `{literalinclude} FILE` is a cell too: the pages have the
network in common, and each begins in a kernel of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = ROOT / "examples" / "tutorial"
CHAPTERS = ["setting-up", "timing", "tracing", "host-reads", "batch-sizes-and-memory", "nsight"]
PAGES = [
    DOCS / "quickstart.md",
    *(DOCS / "tutorial" / f"{chapter}.md" for chapter in CHAPTERS),
    DOCS / "numbers.md",
]

_FENCE = re.compile(r"^(`{3,})(\{?[\w-]*\}?) *(.*)$")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
_METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
    "language_info": {"name": "python"},
}


@dataclass
class Cell:
    """A block of code that runs."""

    source: str
    name: str = ""
    """What its recorded outputs are called; empty where none is shown."""
    raises: bool = False
    gpu: bool = False
    """Runs on a GPU only: in the notebooks it is shown, so that *Run All* is safe elsewhere."""


@dataclass
class Block:
    """A fenced block of a page."""

    kind: str
    argument: str
    lines: list[str]
    text: str


def parts(page: Path) -> list[str | Cell]:
    """Give a page's prose and cells in their order."""
    found: list[str | Cell] = []
    for piece in _pieces(page.read_text("utf-8")):
        match piece:
            case str():
                found.append(piece)
            case Block(kind="python"):
                found.append(Cell("\n".join(piece.lines)))
            case Block(kind="{literalinclude}"):
                found.append(Cell((page.parent / piece.argument).read_text("utf-8").rstrip("\n")))
            case Block(kind="{recorded}"):
                cell = next(part for part in reversed(found) if isinstance(part, Cell))
                cell.name = piece.argument
                cell.raises, cell.gpu = (f":{option}:" in piece.lines for option in ("raises", "gpu"))
            case Block(kind="{image}"):
                described = next(line for line in piece.lines if line.startswith(":alt:"))
                found.append(f"![{described.removeprefix(':alt:').strip()}]({piece.argument})")
            case Block(kind=kind) if not kind.startswith("{"):
                found.append(piece.text)
            case _:  # what only a page has: lists of pages
                pass
    return found


def cells(page: Path, *, gpu: bool = False) -> list[Cell]:
    """Give a page's cells alone; with `gpu` those too that need one."""
    return [part for part in parts(page) if isinstance(part, Cell) and (gpu or not part.gpu)]


def notebook_path(page: Path) -> Path:
    """Tell where a page's notebook is."""
    return NOTEBOOKS / f"{page.stem}.ipynb"


def notebook(page: Path, *, gpu: bool = False) -> NotebookNode:
    """Make a page's notebook, without outputs; with `gpu` the cells that need one are to run too."""
    made: list[NotebookNode] = []
    prose: list[str] = []

    def end_prose() -> None:
        text = re.sub(r"^:{3,}.*$", "", "\n".join(prose), flags=re.MULTILINE)  # what a page folds
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        if text:
            made.append(nbformat.v4.new_markdown_cell(_relinked(text, page)))
        prose.clear()

    for part in parts(page):
        if isinstance(part, str):
            prose.append(part)
            continue
        if part.gpu and not gpu:
            prose.append(f"```python\n{part.source}\n```")
            continue
        end_prose()
        cell = nbformat.v4.new_code_cell(part.source)
        if part.raises:
            cell.metadata["tags"] = ["raises-exception"]
        made.append(cell)
    end_prose()
    for number, cell in enumerate(made):  # nbformat's own identifiers are new each time
        cell["id"] = hashlib.sha256(f"{page.stem} {number}".encode()).hexdigest()[:8]
    return nbformat.v4.new_notebook(cells=made, metadata=_METADATA)


def written(page: Path) -> str:
    """Give a page's notebook as the text of its file."""
    return nbformat.writes(notebook(page)) + "\n"


def _pieces(text: str) -> Iterator[str | Block]:
    """Split a page at its fenced blocks."""
    prose: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            prose.append(line)
            continue
        yield "\n".join(prose)
        prose = []
        within: list[str] = []
        for inner in lines:
            if inner == fence[1]:
                break
            within.append(inner)
        yield Block(fence[2], fence[3].strip(), within, "\n".join([line, *within, fence[1]]))
    yield "\n".join(prose)


def _relinked(text: str, page: Path) -> str:
    """Let links of a page lead to the same places from its notebook."""

    def there(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        if target in PAGES:
            target = notebook_path(target)
        return f"]({os.path.relpath(target, NOTEBOOKS)}{link[2] or ''})"

    return _LINK.sub(there, text)


def main() -> int:
    """Write the notebooks."""
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        notebook_path(page).write_text(written(page), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
