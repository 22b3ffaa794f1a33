"""A timeline's drawing as HTML: a plain SVG for each lane, without script; its colours are the card's.

A lane stretches to the width there is; its name and the axis are text beside it, so that they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .blocks import Drawing, Lane, Mark
from .printable import printable

_WIDTH = 1000
_HEIGHT = 12
_LEAST = 1.5
_MAX_TOOLTIP = 80
_DENSE, _PALEST = 0.95, 0.3
_KINDS = ("steps", "compiles", "device", "copies", "collectives", "host")


def render(drawing: Drawing) -> str:
    """Write the lanes, the axis and the causes of the marked gaps."""
    lanes = "".join(_lane(lane) for lane in drawing.lanes)
    ends = f"<span>{_text(drawing.low)}</span> <span>{_text(drawing.high)}</span>"
    causes = "".join(
        f'<li><span class="jx-swatch jx-gap{tone}"></span> {_text(cause)} '
        f"<strong>{_text(value)}</strong></li>"
        for cause, value, tone in drawing.causes
    )
    legend = f'<ul class="jx-legend"><li>idle gaps:</li>{causes}</ul>' if causes else ""
    more = f'<p class="jx-remark">{_text(drawing.more)}</p>' if drawing.more else ""
    return (
        f'<div class="jx-drawing" role="img" aria-label="{_text(drawing.label)}">{lanes}'
        f'<div class="jx-lane"><span></span><span class="jx-ends">{ends}</span><span></span></div></div>'
        f"{legend}{more}"
    )


def _lane(lane: Lane) -> str:
    kind = lane.kind if lane.kind in _KINDS else "host"
    gaps = "".join(_rect(gap, f"jx-gap{gap.tone}") for gap in lane.gaps)
    if lane.kind == "steps":  # neighbours differ, so that each can be told from the next
        paths = _path(lane.spans[::2], "") + _path(lane.spans[1::2], ' class="jx-other"')
    else:
        # Paler where many short spans are drawn as one.
        shade = f' opacity="{max(lane.density, _PALEST):.2f}"' if lane.density < _DENSE else ""
        paths = _path(lane.spans, shade)
    named = "".join(_rect(mark, "jx-named") for mark in lane.named)
    part = " jx-part" if lane.is_part else ""
    return (
        '<div class="jx-lane">'
        f'<span class="jx-lane-name{part}"><bdi>{escape(printable(lane.label, 40))}</bdi></span>'
        f'<svg class="jx-{kind}" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">'
        f"{gaps}{paths}{named}</svg>"
        f'<span class="jx-lane-value">{_text(lane.value)}</span></div>'
    )


def _path(spans: Iterable[tuple[float, float]], kind: str) -> str:
    """Draw spans as one path: thick lines are much shorter to write than rectangles."""
    lines = "".join(f"M{_place(start)} 6h{_length(start, end)}" for start, end in spans)
    return f'<path{kind} d="{lines}"></path>' if lines else ""


def _rect(mark: Mark, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{_place(mark.start)}" y="0" width="{_length(mark.start, mark.end)}" '
        f'height="{_HEIGHT}"><title>{escape(printable(mark.label, _MAX_TOOLTIP))}</title></rect>'
    )


def _place(fraction: float) -> str:
    return f"{min(fraction * _WIDTH, _WIDTH - _LEAST):.1f}".removesuffix(".0")


def _length(start: float, end: float) -> str:
    return f"{max((end - start) * _WIDTH, _LEAST):.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(printable(text))
