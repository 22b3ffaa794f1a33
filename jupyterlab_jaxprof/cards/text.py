"""A card as plain text: for a terminal, a log, or a front end that shows no HTML."""

from __future__ import annotations

from .block_text import lines_of
from .model import Card, Steps

_BARS = "▁▂▃▄▅▆▇█"


def render(card: Card) -> str:
    """Write the card in lines of `label  value`; nothing that a terminal would obey."""
    lines = [card.sentence] if card.sentence else []
    lines.append(f"{card.kind}  {card.name}  {card.status}  ({card.when})")
    if card.reason and card.blocks:
        lines.append(f"  {card.reason}")
    lines += [f"  {line}" for block in card.blocks for line in lines_of(block)]
    rows: list[tuple[str, str]] = []
    if card.reason and not card.blocks:
        rows.append(("reason", card.reason))
    if card.headline is not None and card.steps is None:
        rows.append((card.headline[0], card.headline[1]))
    if card.steps is not None:
        rows.append(("steps", _steps(card.steps)))
    rows += [("wall time", card.wall), ("devices", card.devices), ("files", card.total)]
    rows += [("", f"{name}  {size}") for name, size in card.files]
    if card.more_files:
        rows.append(("", f"and {card.more_files} more"))
    rows.append(("stored in", card.directory))
    rows += [("notice", notice) for notice in card.notices]
    if card.link is not None:
        rows.append(("XProf", f"{card.link.sentence}: {card.link.command}"))
    width = max(len(label) for label, _ in rows)
    lines += [f"  {label:<{width}}  {value}" for label, value in rows if value]
    return "\n".join(lines)


def _steps(steps: Steps) -> str:
    bars = "".join(_BARS[min(int(bar.fraction * len(_BARS)), len(_BARS) - 1)] for bar in steps.bars)
    if steps.count == 1:
        return f"1 × {steps.name}, {steps.median}"
    spread = f"median {steps.median} ({steps.least} to {steps.most})"
    return f"{steps.count:,} × {steps.name}, {spread}  {bars}".rstrip()
