"""Blocks of a card as HTML. Their numbers stand in them as text: a chart only shows them once more."""

from __future__ import annotations

import base64
from html import escape

from . import curve, drawing_html, units
from .blocks import (
    Block,
    Chart,
    Comparison,
    Curve,
    Details,
    Download,
    Drawing,
    Figures,
    Finding,
    Findings,
    Remark,
    Row,
    Shares,
    Table,
)
from .printable import MAX_CELL, printable


def render_block(block: Block) -> str:
    """Write one block; every text is made printable and escaped."""
    match block:
        case Figures():
            return _heading(block.title) + _figures(block)
        case Shares():
            return _heading(block.title) + _shares(block)
        case Chart():
            return _chart(block)
        case Comparison():
            return _heading(block.title) + _comparison(block)
        case Table():
            return _heading(block.title) + _table(block)
        case Remark():
            return f'<p class="jx-remark">{sentence(block.text)}</p>'
        case Download():
            data = base64.b64encode(block.content).decode()
            return (
                f'<p class="jx-remark"><a download="{_text(block.name)}" '
                f'href="data:application/octet-stream;base64,{data}">Download {_text(block.name)}</a> '
                f"({units.size(len(block.content))})</p>"
            )
        case Findings():
            return _heading(block.title) + _findings(block)
        case Drawing():
            return _heading(block.title) + drawing_html.render(block)
        case Details():
            inner = "".join(render_block(one) for one in block.blocks)
            return f'<details class="jx-more"><summary>{_text(block.title)}</summary>{inner}</details>'
        case Curve():
            return _heading(block.title) + curve.html(block)


def _text(text: str) -> str:
    return escape(printable(text))


def _heading(title: str) -> str:
    return f'<p class="jx-heading">{_text(title)}</p>' if title else ""


def _findings(block: Findings) -> str:
    more = f'<p class="jx-remark">{_text(block.more)}</p>' if block.more else ""
    return "".join(_finding(finding) for finding in block.findings) + more


def _finding(finding: Finding) -> str:
    """Write the title, cost and first evidence in sight, and what is told of it below when it is opened."""
    first, *others = finding.evidence or ("",)
    brief = f'<span class="jx-brief">{sentence(first)}</span>' if first else ""
    cost = f' <span class="jx-cost">{_text(finding.cost)}</span>' if finding.cost else ""
    parts = [f'<p class="jx-brief">{sentence(one)}</p>' for one in others]
    parts += [f"<p>{sentence(finding.meaning)}</p>" if finding.meaning else ""]
    if finding.remedies:
        items = "".join(f"<li>{sentence(remedy)}</li>" for remedy in finding.remedies)
        parts.append(f'<p class="jx-label">What to try</p><ul>{items}</ul>')
    if finding.places:
        places = _text("; ".join(finding.places))
        parts.append(f'<p class="jx-label">Where in the trace</p><p class="jx-places">{places}</p>')
    if finding.document:
        parts.append(f'<p class="jx-document">More on this: <code>%{_text(finding.document)}</code></p>')
    return (
        f'<details class="jx-finding jx-{finding.level}"{" open" if finding.is_open else ""}>'
        f'<summary><strong class="jx-finding-title">{sentence(finding.title)}</strong>'
        f"{cost}{brief}</summary>"
        f'<div class="jx-told">{"".join(parts)}</div></details>'
    )


def sentence(text: str) -> str:
    """Write a sentence, with what stands in it between a pair of backticks as code."""
    parts = _text(text).split("`")
    if len(parts) % 2 == 0:  # one without its other
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def _figures(block: Figures) -> str:
    items = "".join(
        f"<div{' class=jx-small' if number else ''}><dt>{_text(label)}</dt> <dd>{_text(value)}</dd></div>"
        for number, (label, value) in enumerate(block.figures)
    )
    return f'<div class="jx-figures"><dl>{items}</dl></div>'


def _shares(block: Shares) -> str:
    bar = "".join(
        f'<span class="jx-tone{share.tone}" style="width:{share.fraction * 100:.2f}%" '
        f'title="{_text(share.label)}: {_text(share.value)}"></span>'
        for share in block.shares
    )
    legend = "".join(
        f'<li><span class="jx-swatch jx-tone{share.tone}"></span> {_text(share.label)} '
        f"<strong>{_text(share.value)}</strong></li>"
        for share in block.shares
    )
    return f'<div class="jx-shares" aria-hidden="true">{bar}</div><ul class="jx-legend">{legend}</ul>'


def _chart(block: Chart) -> str:
    bars = "".join(
        f'<span style="height:{max(fraction * 100, 3 if fraction else 0):.0f}%" title="{_text(label)}">'
        "</span>"
        for fraction, label in block.bars
    )
    return (
        '<div class="jx-histogram">'
        f'<div class="jx-chart" role="img" aria-label="{_text(block.label)}">{bars}</div>'
        f'<div class="jx-ends"><span>{_text(block.low)}</span> <span>{_text(block.high)}</span></div></div>'
    )


def _comparison(block: Comparison) -> str:
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(printable(label, MAX_CELL))}</bdi></th><td>{_text(value)}</td>'
        f'<td class="jx-length"><div style="width:{max(fraction * 100, 0.5):.1f}%"></div></td></tr>'
        + (f'<tr class="jx-note"><td colspan="3">{sentence(remark)}</td></tr>' if remark else "")
        for label, value, fraction, remark in block.rows
    )
    return f'<table class="jx-bars"><tbody>{rows}</tbody></table>'


def _table(block: Table) -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in block.columns)
    width = len(block.columns)
    rows = "".join(_row(row, width) for row in block.rows)
    more = f'<tr class="jx-note"><td colspan="{width}">{_text(block.more)}</td></tr>' if block.more else ""
    return (
        f'<div class="jx-wide-table"><table class="jx-data"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}{more}</tbody></table></div>"
    )


def _row(row: Row, width: int) -> str:
    cells = "".join(f"<td><bdi>{escape(printable(cell, MAX_CELL))}</bdi></td>" for cell in row.cells)
    note = f'<tr class="jx-note"><td colspan="{width}">{sentence(row.note)}</td></tr>' if row.note else ""
    return f"<tr>{cells}</tr>{note}"
