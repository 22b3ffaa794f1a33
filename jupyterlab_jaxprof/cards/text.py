"""A card as plain text: for a terminal, a log, or a front end that shows no HTML."""

from __future__ import annotations

import textwrap

from .block_text import lines_of
from .model import Card, Steps
from .paper import PLAIN, Paper

#: Labels of what may take several lines.
_SENTENCES = ("notice", "XProf", "devices", "reason")
#: Columns that labels take.
_LABEL = 14
_BARS = "▁▂▃▄▅▆▇█"


def render(card: Card, paper: Paper = PLAIN) -> str:
    """Write the card in lines of `label  value`; nothing that a terminal would obey but `paper`'s colours."""
    lines = [card.sentence] if card.sentence else []
    name = paper.paint(card.name, "bold")
    lines.append(f"{card.kind}  {name}  {card.status}" + (f"  ({card.when})" if card.when != "–" else ""))
    facts, measured = _facts(card), _measured(card, paper)
    width = max(len(label) for label, _ in (*facts, *measured))
    if card.reason:
        lines += _row("reason", card.reason, 0, paper)
    inner = paper.indented(2)
    lines += [f"  {line}" for block in card.lead for line in lines_of(block, inner)]
    lines += [line for row in measured for line in _row(*row, width, paper)]
    lines += [f"  {line}" for block in card.blocks for line in lines_of(block, inner)]
    lines += [line for row in facts for line in _row(*row, width, paper)]
    if card.link is not None:
        lines += _row("XProf", f"{card.link.sentence}:", width, paper)
        lines.append(f"  {'':<{width}}  {card.link.command}")
    return "\n".join(lines)


def _measured(card: Card, paper: Paper) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if card.headline is not None and card.steps is None:
        rows.append((card.headline[0], card.headline[1]))
    if card.steps is not None:
        rows += _steps(card.steps, paper.width - _LABEL)
    return [row for row in (*rows, ("wall time", card.wall)) if row[1]]


def _facts(card: Card) -> list[tuple[str, str]]:
    rows = [("devices", card.devices), ("files", card.total)]
    rows += [("", f"{name}  {size}") for name, size in card.files]
    if card.more_files:
        rows.append(("", f"and {card.more_files} more"))
    rows.append(("stored in", card.directory))
    rows += [("notice", notice) for notice in card.notices]
    return [row for row in rows if row[1]]


def _row(label: str, value: str, width: int, paper: Paper) -> list[str]:
    """Write a label and its value; sentences go on below themselves, but a path stays in one piece."""
    indent = " " * (width + 4 if width else 2)
    lines = textwrap.wrap(
        value,
        paper.width if label in _SENTENCES else len(indent + value),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if lines and width:
        lines[0] = f"  {paper.paint(f'{label:<{width}}', 'dim')}  {lines[0][len(indent) :]}"
    return lines


def _steps(steps: Steps, room: int) -> list[tuple[str, str]]:
    """Tell the steps, and draw them beside it or below, as there is room."""
    if steps.count == 1:
        return [("steps", f"1 × {steps.name}, {steps.median}")]
    bars = "".join(_BARS[min(int(bar.fraction * len(_BARS)), len(_BARS) - 1)] for bar in steps.bars)
    told = f"{steps.count:,} × {steps.name}, median {steps.median} ({steps.least} to {steps.most})"
    if len(told) + 2 + len(bars) <= room:
        return [("steps", f"{told}  {bars}".rstrip())]
    return [("steps", told), ("", bars if len(bars) <= room else "")]
