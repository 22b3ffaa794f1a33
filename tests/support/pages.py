"""The documentation's pages, read as Markdown: their code, their tables and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Code:
    """A block of code: its language, the words behind that, and the line in the page at which it stands."""

    page: str
    line: int
    language: str
    marks: frozenset[str]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Table:
    """A table's header and rows, each cell as it is written."""

    header: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> list[str]:
        place = self.header.index(name)
        return [row[place] for row in self.rows]


def pages() -> list[str]:
    """Give every page below docs/, and those of the repository that the site has too."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
        if "_build" not in path.parts
    )


@cache
def tokens(page: str) -> list[Token]:
    """Parse a page, given by its path below the repository's root."""
    return MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text("utf-8"))


def code_of(page: str) -> list[Code]:
    """Give the page's blocks of code in their order, those within directives (tabs, notes) included."""
    return list(_code(page, tokens(page), 0))


def _code(page: str, parsed: list[Token], offset: int) -> Iterator[Code]:
    for token in parsed:
        if token.type != "fence" or token.map is None:
            continue
        language, *marks = token.info.split() or [""]
        line = offset + token.map[0] + 1
        if language.startswith("{"):
            inner = MarkdownIt("commonmark").enable("table").parse(token.content)
            yield from _code(page, inner, line)
        else:
            yield Code(page, line, language, frozenset(marks), token.content)


def spans_of(page: str) -> list[str]:
    """Give what stands between backticks in the page's text."""
    return [
        child.content
        for token in tokens(page)
        for child in token.children or []
        if child.type == "code_inline"
    ]


def tables_of(page: str) -> list[Table]:
    tables: list[Table] = []
    row: list[str] = []
    is_head = False
    for before, token in zip([None, *tokens(page)], tokens(page), strict=False):
        if token.type == "thead_open":
            is_head = True
        elif token.type == "tr_open":
            row = []
        elif token.type == "inline" and before is not None and before.type in ("th_open", "td_open"):
            row.append(token.content)
        elif token.type == "tr_close" and is_head:
            tables.append(Table(row, []))
            is_head = False
        elif token.type == "tr_close":
            tables[-1].rows.append(row)
    return tables


def section_of(page: str, title: str) -> str:
    """Give the Markdown below a heading of the second level, up to the next."""
    text = (ROOT / page).read_text("utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no section {title!r}"
    return found[1]
