"""The documentation's page about each finding, by its name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from difflib import get_close_matches

from jupyterlab_jaxprof.environment.documentation import finding_page

from .examine import pattern_ids
from .find import ReportError

_WIDTH = 100


def page_of(name: str) -> str:
    """Give the Markdown of the page about a finding, by its name; raises ReportError."""
    name = name.strip()
    if name not in pattern_ids():
        close = get_close_matches(name, pattern_ids(), n=1)
        meant = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(pattern_ids())}."
        raise ReportError(f"No finding is called {name!r}. {meant}")
    try:
        page = finding_page(name)
    except OSError as error:
        raise ReportError(f"The page about {name} can't be read: {error.strerror or error}.") from error
    if page is None:
        raise ReportError(
            f"There is no page about {name} in this installation: install the package once more."
        )
    return page


def as_text(page: str) -> str:
    """Give a page as a terminal can show it: a table's rows, too long for a line there, as paragraphs."""
    return "\n".join(_lines(page.splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    header: list[str] = []
    for line in lines:
        if not line.startswith("|"):
            header = []
            yield line
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif not all(set(cell) <= {"-"} for cell in cells):
            first, *others = zip(header, cells, strict=False)
            told = "; ".join(f"{name}: {cell}" for name, cell in others)
            yield textwrap.fill(f"- {first[1]}: {told}", _WIDTH, subsequent_indent="  ")
