"""A card as HTML for any notebook front end: one element, no script, nothing fetched.

Its elements say what they are (description list, table), so that it still reads well where a front end drops
the styles, as JupyterLab does for the outputs of a notebook that it doesn't trust.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from .block_html import render_block, sentence
from .model import TOOL, Card, Link, Steps


@cache
def style() -> str:
    """Give the cards' style sheet, as one line. A value may go on over several lines, so spaces stay."""
    lines = files(__package__ or "").joinpath("card.css").read_text("utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("/*"))


def render(card: Card) -> str:
    """Write the card; every text of the capture is escaped."""
    parts = [
        f'<section class="jaxprof-card" aria-label="Capture {escape(card.name)}"><style>{style()}</style>',
        f'<header><div><span class="jx-kind">{escape(card.kind)}</span> '
        f'<strong class="jx-name"><bdi>{escape(card.name)}</bdi></strong> '
        f'<span class="jx-status jx-{card.status}">{card.status}</span></div> '
        f'<span class="jx-when">{escape(card.when)}</span></header>',
    ]
    if card.sentence:
        parts.insert(1, f'<p class="jx-sentence">{sentence(card.sentence)}</p>')
    if card.reason:
        parts.append(f'<p class="jx-reason">{sentence(card.reason)}</p>')
    parts += [render_block(block) for block in card.lead]
    parts.append(_figures(card))
    parts += [render_block(block) for block in card.blocks]
    parts.append(_facts(card))
    if card.notices:
        items = "".join(f"<li>{sentence(notice)}</li>" for notice in card.notices)
        parts.append(f'<ul class="jx-notices">{items}</ul>')
    parts.append(_origin(card))
    if card.link is not None:
        parts.append(_link(card.link))
    parts.append("</section>")
    return "".join(parts)


def page(card: Card) -> str:
    """Write the card as a whole page, for a browser without a notebook around it."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(card.name)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"></head>'
        f'<body style="margin:16px">{render(card)}</body></html>\n'
    )


def _figures(card: Card) -> str:
    figures: list[str] = []
    if card.steps is not None:
        several = card.steps.count > 1
        figures.append(
            _figure(f"{card.steps.name}, median" if several else card.steps.name, card.steps.median)
        )
        if several:
            figures.append(_figure("shortest", card.steps.least, small=True))
            figures.append(_figure("longest", card.steps.most, small=True))
            figures.append(_figure("steps", f"{card.steps.count:,}", small=True))
    elif card.headline is not None:
        figures.append(_figure(*card.headline))
    if card.wall:
        figures.append(_figure("wall time", card.wall, small=bool(figures)))
    chart = _chart(card.steps) if card.steps is not None and card.steps.bars else ""
    return f'<div class="jx-figures"><dl>{"".join(figures)}</dl>{chart}</div>' if figures else ""


def _figure(label: str, value: str, *, small: bool = False) -> str:
    kind = ' class="jx-small"' if small else ""
    return f"<div{kind}><dt>{escape(label)}</dt> <dd>{escape(value)}</dd></div>"


def _chart(steps: Steps) -> str:
    label = f"The durations of {steps.count:,} steps in order, from {steps.least} to {steps.most}"
    beyond = sum(bar.beyond for bar in steps.bars)
    if beyond:
        label += f"; {beyond} higher than the chart"
    bars = "".join(
        f'<span{" class=jx-beyond" if bar.beyond else ""} style="height:{max(bar.fraction * 100, 3):.0f}%" '
        f'title="{escape(bar.label)}"></span>'
        for bar in steps.bars
    )
    many = " jx-many" if len(steps.bars) > 20 else ""
    return f'<div class="jx-chart{many}" role="img" aria-label="{escape(label)}">{bars}</div>'


def _facts(card: Card) -> str:
    rows = [("Devices", f"<bdi>{escape(card.devices)}</bdi>")] if card.devices else []
    names = "".join(
        f"<tr><td><bdi>{escape(name)}</bdi></td><td>{escape(size)}</td></tr>" for name, size in card.files
    )
    more = f"<tr><td>and {card.more_files:,} more</td><td></td></tr>" if card.more_files else ""
    table = f"<table><tbody>{names}{more}</tbody></table>" if names else ""
    if card.total:
        rows.append(("Files", f"{escape(card.total)}{table}"))
    rows.append(("Stored in", f"<code>{escape(card.directory)}</code>"))
    return "<dl>" + "".join(f"<dt>{label}</dt><dd>{value}</dd>" for label, value in rows) + "</dl>"


def _origin(card: Card) -> str:
    """Write the cell and where it ran, folded."""
    if not card.source and not card.environment:
        return ""
    code = "\n".join(escape(line) for line in card.source)
    cell = f'<pre class="jx-cell">{code}</pre>' if code else ""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in card.environment)
    return (
        '<details class="jx-more"><summary>Cell and environment</summary>'
        f'{cell}<dl class="jx-environment">{facts}</dl></details>'
    )


def _link(link: Link) -> str:
    instead = f"{escape(link.sentence)} <code>{escape(link.command)}</code>"
    if not link.address:
        return f'<p class="jx-link">{instead}</p>'
    return (
        f'<div class="jx-link"><a data-jaxprof-run="{escape(link.run)}" data-jaxprof-tool="{TOOL}" '
        f'href="{escape(link.address)}" target="_blank" rel="noopener">Open in XProf</a>'
        # Away from the Jupyter server's own pages (VS Code, an exported notebook) it can't be followed.
        f"<details><summary>the link leads nowhere?</summary>{instead}</details></div>"
    )
