"""The steps of two reports side by side: which are compared, and whether a difference can be told."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Literal

Verdict = Literal["faster", "slower", "alike", "unknown"]
Data = Mapping[str, Any]

_FEWEST_STEPS = 4
_KEPT = ("name", "count", "median_ms", "min_ms", "max_ms", "parts", "device_ms", "marks_dispatch")


#: Of steps that user code marks, in a trace without a device.
_UNSEEN = "no device is in the trace, so whether the step markers wait for their work can't be told"


def compare_steps(before: Data, after: Data) -> dict[str, Any]:
    """Compare the steps of two summaries: `{before, after, ratio, verdict, reason}`.

    The two sides are steps of one name where both have it. `ratio` is after / before, None where the two
    don't measure the same; `reason` is half a sentence on why the verdict is 'unknown', else empty.
    """
    both: list[Data] = [summary.get("steps") or {} for summary in (before, after)]
    name = _common_name(*both)
    sides = [_told(steps, name) for steps in both]
    found = {"before": sides[0], "after": sides[1], "ratio": None, "verdict": "unknown", "reason": ""}
    reason = _no_ratio(sides)
    if reason:
        return found | {"reason": reason}
    found["ratio"] = sides[1]["median_ms"] / sides[0]["median_ms"]  # pyright: ignore[reportOptionalSubscript]
    if of_two_recorders(before, after):
        return found | {"reason": "two different recorders, each of which takes time of its own"}
    if any(side and side["marks_dispatch"] is None for side in sides):
        return found | {"reason": _UNSEEN}
    verdict, reason = _verdict(*(_durations(steps, name) for steps in both))
    return found | {"verdict": verdict, "reason": reason}


def of_two_recorders(before: Data, after: Data) -> bool:
    """Tell whether two summaries come from different recorders, as far as that is known."""
    sources = {(summary.get("timeline") or {}).get("source") for summary in (before, after)}
    return len(sources - {None}) > 1


def count_in_window(summary: Data) -> int:
    """Give how many steps were marked in the window that a report judges, of whatever names."""
    steps: Data = summary.get("steps") or {}
    return int((summary.get("timeline") or {}).get("steps_in_window") or steps.get("count") or 0)


def _names(steps: Data) -> list[str]:
    """Give the names of the marked steps; the report is about the first."""
    names = [steps.get("name"), *(other.get("name") for other in steps.get("others") or ())]
    return [name for name in names if name]


def _common_name(before: Data, after: Data) -> str | None:
    first, second = _names(before), _names(after)
    chosen = [*(name for name in first[:1] if name in second), *(name for name in second if name in first)]
    return chosen[0] if chosen else None


def _told(steps: Data, name: str | None) -> dict[str, Any] | None:
    """Give what is known of the steps of this name, or where there is none of those the report is about."""
    if not steps.get("count") or steps.get("median_ms") is None:
        return None
    if name is None or steps.get("name") == name:
        return {key: steps.get(key) for key in _KEPT} | {"marks_dispatch": _marks_dispatch(steps)}
    other = next(one for one in steps["others"] if one["name"] == name)
    return dict.fromkeys(_KEPT) | dict(other) | {"marks_dispatch": _marks_dispatch(steps)}


def _marks_dispatch(steps: Data) -> bool | None:
    """Tell whether the markers end ahead of the work; None where that can't be told. The magics' own wait."""
    return steps.get("marks_dispatch", False)


def _no_ratio(sides: list[dict[str, Any] | None]) -> str:
    """Say why the two don't measure the same; empty where they do."""
    first, second = sides
    if not first or not second:
        return "not both have steps"
    if first["name"] != second["name"]:
        return f"these are other steps, `{first['name']}` before and `{second['name']}` after"
    early = [
        side for side, one in zip(("before", "after"), (first, second), strict=True) if one["marks_dispatch"]
    ]
    if early:
        where = f"of the one {early[0]}" if len(early) == 1 else "of both"
        return f"the step markers {where} end ahead of the devices' work, so they time its dispatch alone"
    if not first["median_ms"] or second["median_ms"] is None:
        return "the steps took no time"
    return ""


def _durations(steps: Data, name: str | None) -> list[float] | None:
    """Give each step's duration; None for steps of which no more than the median is kept."""
    if steps.get("name") != name:
        return None
    return [value for value in steps.get("durations_ms") or () if value is not None]


def _verdict(before: list[float] | None, after: list[float] | None) -> tuple[Verdict, str]:
    """Tell which steps are faster: those whose quartiles lie beyond the other's. Few steps tell nothing."""
    spans: list[tuple[float, float]] = []
    for durations in (before, after):
        if durations is None:
            return "unknown", "other steps take more time, so no more than the median of these is kept"
        if len(durations) < _FEWEST_STEPS:
            return "unknown", "too few steps to tell a difference from their spread"
        lower, _, upper = statistics.quantiles(durations, n=4, method="inclusive")
        spans.append((lower, upper))
    (low, high), (new_low, new_high) = spans
    if new_high < low:
        return "faster", ""
    return ("slower" if new_low > high else "alike"), ""
