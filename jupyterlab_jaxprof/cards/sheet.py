"""A sheet of facts shown as text and as HTML: what `%jaxprof` and `%jaxprof doctor` give back."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from .html import style
from .paper import PLAIN, Paper
from .printable import printable

State = Literal["", "advice", "needed"]
_MARKS: dict[State, str] = {"": " ", "advice": "!", "needed": "✗"}
_CLASSES: dict[State, str] = {"": "", "advice": "jx-partial", "needed": "jx-failed"}


@dataclass(frozen=True)
class Fact:
    """One line: what it is about, what is so, and (where something is amiss) what helps.

    `command` is the part of `remedy`, or what is to be run beside it, that a user copies.
    """

    label: str
    value: str
    state: State = ""
    remedy: str = ""
    command: str = ""

    def parts(self) -> tuple[str, str, str]:
        """Give the remedy as what stands before the command, the command, and what stands after it."""
        if not self.command:
            return self.remedy, "", ""
        before, found, after = self.remedy.partition(self.command)
        return (before.rstrip(), found, after.lstrip(", .")) if found else (before, self.command, "")


@dataclass(frozen=True)
class Section:
    """Some facts under one heading."""

    title: str
    facts: Sequence[Fact]


@dataclass(frozen=True, repr=False)
class Sheet:
    """Sections of facts; a notebook shows the HTML form, a terminal the text."""

    title: str
    sections: Sequence[Section] = field(default_factory=tuple[Section, ...])

    @property
    def facts(self) -> list[Fact]:
        """Every fact of every section."""
        return [fact for section in self.sections for fact in section.facts]

    def __repr__(self) -> str:
        return self.text()

    def text(self, paper: Paper = PLAIN) -> str:
        """Write it for a terminal."""
        lines = [paper.paint(printable(self.title), "bold")]
        for section in self.sections:
            lines += ["", paper.paint(section.title, "bold")] if section.title else []
            width = min(max((len(fact.label) for fact in section.facts), default=0), 28)
            for fact in section.facts:
                lines += _lines(fact, width, paper.width)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f'<section class="jaxprof-card"><style>{style()}</style>']
        parts.append(
            f'<header><div><strong class="jx-title">{escape(printable(self.title))}</strong></div></header>'
        )
        for section in self.sections:
            if section.title:
                parts.append(f'<p class="jx-heading">{escape(section.title)}</p>')
            short = len(section.facts) > 6 and all(fact.label and not fact.remedy for fact in section.facts)
            kind = ' class="jx-columns"' if short else ""
            parts.append(f"<dl{kind}>" + "".join(_html(fact) for fact in section.facts) + "</dl>")
        return "".join([*parts, "</section>"])


def _lines(fact: Fact, width: int, most: int) -> list[str]:
    label, value = printable(fact.label), printable(fact.value)
    text = f"{label:<{width}}  {value}" if label else value
    lines = textwrap.wrap(
        text,
        most,
        initial_indent=f"{_MARKS[fact.state]} ",
        subsequent_indent=" " * (width + 4 if label else 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    indent = " " * (width + 4 if label else 4)
    before, command, after = map(printable, fact.parts())
    for part in (before, after):
        lines += textwrap.wrap(
            part,
            most,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        if command and part is before:
            lines.append(f"{indent}  {command}")  # in one line, however long: it is there to be copied
    return lines


def _html(fact: Fact) -> str:
    mark = {"": "", "advice": "advice", "needed": "needed"}[fact.state]
    chip = f'<span class="jx-status {_CLASSES[fact.state]}">{mark}</span> ' if mark else ""
    before, command, after = (escape(printable(part)) for part in fact.parts())
    code = f" <code>{command}</code> " if command else ""
    remedy = f'<div class="jx-remedy">{before}{code}{after}</div>' if fact.remedy else ""
    value = f"{chip}<bdi>{escape(printable(fact.value))}</bdi>{remedy}"
    if not fact.label:
        return f'<dd class="jx-wide">{value}</dd>'
    return f"<dt>{escape(printable(fact.label))}</dt><dd>{value}</dd>"
