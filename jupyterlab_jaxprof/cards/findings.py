"""A record's findings as a block: the most costly first, the first problem opened."""

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


def block(findings: Sequence[Data], window_ms: float) -> Findings | None:
    """Give the block of a record's findings; None where there are none."""
    if not findings:
        return None
    shown = [_finding(finding, window_ms) for finding in findings[:MAX_FINDINGS]]
    first = next((number for number, one in enumerate(shown) if one.level == "problem"), 0)
    shown[first] = replace(shown[first], is_open=True)
    hidden = len(findings) - len(shown)
    return Findings("Findings", shown, f"and {hidden} more: see the record's findings" if hidden > 0 else "")


def cost(finding: Data) -> str:
    """Say what a finding cost: '20.4 ms, 64 %'; empty where it cost no time that is known."""
    lost_ms, share = finding.get("lost_ms"), finding.get("share")
    parts = [units.duration(lost_ms)] if lost_ms else []
    return ", ".join([*parts, *([units.share(share)] if share else [])])


def level(finding: Data) -> Level:
    """Give how much a finding matters; what is unknown here is a note."""
    return _LEVELS.get(str(finding.get("level")), "note")


def _finding(finding: Data, window_ms: float) -> Finding:
    document = str(finding.get("doc") or "")
    return Finding(
        title=_cut(finding.get("title") or finding.get("id")),
        level=level(finding),
        cost=cost(finding),
        evidence=_sentences(finding.get("evidence")),
        meaning=_cut(finding.get("meaning")),
        remedies=_sentences(finding.get("next")),
        places=[_place(place, window_ms) for place in _mappings(finding.get("ranges"))[:MAX_PLACES]],
        document=f"docs/{document}.md" if document else "",
    )


def _cut(sentence: Any) -> str:
    text = str(sentence or "")
    return text if len(text) <= MAX_SENTENCE else text[:MAX_SENTENCE] + "…"


def _sentences(value: Any) -> list[str]:
    items = cast("Sequence[Any]", value or ())
    return [_cut(item) for item in items if item][:MAX_SENTENCES]


def _mappings(value: Any) -> list[Data]:
    return [item for item in cast("Sequence[Any]", value or ()) if isinstance(item, Mapping)]


def _place(place: Data, window_ms: float) -> str:
    start, end = (units.instant(place.get(key), window_ms) for key in ("start_ms", "end_ms"))
    label = str(place.get("label") or "")
    return f"{start} to {end}" + (f" ({label})" if label else "")
