"""A diagnosis of trace files as the parts of a record; the one place that calls the timeline's readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .find import ReportError

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timeline.model import Timeline

#: Files whose name ends so hold a timeline; of Nsight's a later one is made of the ones before it.
ENDINGS = (".xplane.pb", ".qdstrm", ".nsys-rep", ".sqlite")


@dataclass(frozen=True)
class Examined:
    """What files say: a record's findings, the new keys of its summary, and sentences for the user."""

    timeline: Timeline
    findings: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]

    @property
    def notices(self) -> Sequence[str]:
        """What the reader has to say of damage, dropped events and clocks."""
        return self.timeline.notices

    def summary_with(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Give the summary with a capture's `own`: where that has steps, all times of steps are its.

        A magic that runs the steps itself has measured them by a clock, up to the devices' end; the trace
        tells where their time went, and why some are slow.
        """
        merged = {**self.summary, **{key: value for key, value in own.items() if value is not None}}
        seen, steps = self.summary.get("steps"), own.get("steps")
        if steps and seen:
            merged["steps"] = _steps(seen, steps)
        if not merged.get("headline"):
            merged["headline"] = headline(merged)
        return merged


def _steps(seen: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Give our own steps, with what a trace that has `seen` them tells besides."""
    kept = ("name", "count", "median_ms")
    others = [{key: seen.get(key) for key in kept}, *(seen.get("others") or ())]
    if seen.get("name") != own.get("name"):
        return {**own, "others": [one for one in others if one["name"] != own.get("name")]}
    causes = {one["number"]: one["why"] for one in seen.get("slowest") or ()}
    steps = {**seen, **own, "marks_dispatch": False, "slowest": _slowest(own, causes)}
    return _fitted(steps) if seen.get("count") == own.get("count") else steps | {"parts": None}


def _slowest(own: Mapping[str, Any], causes: Mapping[int, str]) -> list[dict[str, Any]]:
    from jupyterlab_jaxprof.diagnosis import thresholds

    durations_ms: Sequence[float] = own.get("durations_ms") or ()
    order = sorted(range(len(durations_ms)), key=lambda number: -durations_ms[number])
    return [
        {"number": number, "duration_ms": durations_ms[number], "why": causes.get(number, "")}
        for number in order[: thresholds.SLOWEST]
        if durations_ms[number] > thresholds.SLOW_STEP * own["median_ms"]
    ]


def _fitted(steps: dict[str, Any]) -> dict[str, Any]:
    """Let the parts of a step add up to its median: what the clock and the trace differ by is waiting."""
    parts, median_ms = steps.get("parts"), steps.get("median_ms")
    if not parts or median_ms is None:
        return steps
    over_ms = sum(parts.values()) - median_ms
    fitted = dict(parts)
    for part in ("idle_ms", "host_ms", *parts):
        taken_ms = min(over_ms, fitted[part])
        fitted[part] -= taken_ms
        over_ms -= taken_ms
    return steps | {"parts": fitted}


def headline(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the one number that a list shows: the median step, else the share that the devices were busy.

    Of steps whose markers time the dispatch alone it is what the devices work for one.
    """
    steps: Mapping[str, Any] = summary.get("steps") or {}
    if steps.get("marks_dispatch") and steps.get("device_ms") is not None:
        return {"label": "device time a step", "value": steps["device_ms"], "unit": "ms"}
    if steps.get("median_ms") is not None:
        return {"label": "median step", "value": steps["median_ms"], "unit": "ms"}
    busy = (summary.get("timeline") or {}).get("busy_share")
    return None if busy is None else {"label": "devices busy", "value": busy * 100, "unit": "percent"}


def examine(paths: Sequence[Path]) -> Examined:
    """Read the files of one run and diagnose them; raises ReportError with the reader's sentence."""
    from jupyterlab_jaxprof import diagnosis, timeline
    from jupyterlab_jaxprof.timeline.model import ReadError

    try:
        read = timeline.read(paths[0] if len(paths) == 1 else list(paths))
    except ReadError as error:
        raise ReportError(str(error)) from error
    found = diagnosis.diagnose(read).to_json()
    return Examined(read, found["findings"], found["summary"])


def devices_of(timeline: Timeline) -> list[dict[str, Any]]:
    """Give the devices as a record's `environment` lists them."""
    return [
        {
            "id": device.ordinal,
            "platform": device.name.partition(" ")[0].lower(),
            "kind": device.model or device.name,
            "process_index": device.process,
        }
        for device in timeline.devices
    ]


def pattern_ids() -> list[str]:
    """Give the name of every finding that the diagnosis may make."""
    from jupyterlab_jaxprof.diagnosis.patterns import IDS

    return sorted(IDS)
