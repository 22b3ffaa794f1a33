"""A record's findings as a block: the most costly first, the first that is no mere note opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from . import units
from .blocks import Finding, Findings, Level

MAX_FINDINGS = 10
MAX_SENTENCES = 5
MAX_SENTENCE = 400
MAX_PLACES = 3

Data = Mapping[str, Any]

_LEVELS: dict[str, Level] = {"problem": "problem", "note": "note", "fine": "fine"}


def block(findings: Sequence[Data]) -> Findings | None:
    """Give the block of a record's findings; None where there are none."""
    if not findings:
        return None
    shown = [_finding(finding) for finding in findings[:MAX_FINDINGS]]
    first = next((number for number, one in enumerate(shown) if one.level != "note"), None)
    if first is not None:
        shown[first] = replace(shown[first], is_open=True)
    hidden = len(findings) - len(shown)
    return Findings("Findings", shown, f"and {hidden} more: see the record's findings" if hidden > 0 else "")


def cost(finding: Data) -> str:
    """Say what a finding cost: '20.4 ms, 64 %'; empty where it cost no time that is known."""
    return ", ".join(_costs(finding))


def _costs(finding: Data) -> list[str]:
    lost_ms, share = finding.get("lost_ms"), finding.get("share")
    return [*([units.duration(lost_ms)] if lost_ms else []), *([units.share(share)] if share else [])]


def level(finding: Data) -> Level:
    """Give how much a finding matters; what is unknown here is a note."""
    return _LEVELS.get(str(finding.get("level")), "note")


def _finding(finding: Data) -> Finding:
    page = str(finding.get("doc") or "").rpartition("/")[2]
    title = _cut(finding.get("title") or finding.get("id"))
    return Finding(
        title=title,
        level=level(finding),
        cost=", ".join(part for part in _costs(finding) if part not in title),
        evidence=_sentences(finding.get("evidence")),
        meaning=_cut(finding.get("meaning")),
        remedies=_sentences(finding.get("next")),
        places=_places(_mappings(finding.get("ranges"))),
        document=f"jaxprof explain {page}" if page else "",
    )


def _cut(sentence: Any) -> str:
    text = str(sentence or "")
    return text if len(text) <= MAX_SENTENCE else text[:MAX_SENTENCE] + "…"


def _sentences(value: Any) -> list[str]:
    items = cast("Sequence[Any]", value or ())
    return [_cut(item) for item in items if item][:MAX_SENTENCES]


def _mappings(value: Any) -> list[Data]:
    return [item for item in cast("Sequence[Any]", value or ()) if isinstance(item, Mapping)]


def _places(ranges: Sequence[Data]) -> list[str]:
    """Give the first ranges as a viewer shows them, those of one label together."""
    places: dict[str, list[str]] = {}
    for place in ranges[:MAX_PLACES]:
        start_ms, end_ms = place.get("start_ms"), place.get("end_ms")
        if start_ms is None or end_ms is None:
            continue
        # a short range needs more digits; a moment is told to the microsecond
        fine_ms = (end_ms - start_ms) * 10 if end_ms > start_ms else 1.0
        start, end = (units.instant(one, fine_ms) for one in (start_ms, end_ms))
        told = start if start == end else f"{start} to {end}"
        places.setdefault(str(place.get("label") or ""), []).append(told)
    return [f"{label}: {', '.join(told)}" if label else ", ".join(told) for label, told in places.items()]
