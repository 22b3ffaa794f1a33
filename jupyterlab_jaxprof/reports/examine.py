"""A diagnosis of trace files as the parts of a record; the one place that calls the timeline's readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .find import ReportError

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timeline.model import Timeline

#: Files whose name ends so hold a timeline.
ENDINGS = (".xplane.pb", ".nsys-rep", ".sqlite")


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
        """Give the summary with a capture's `own`: where that counted the same steps, its times hold.

        A magic that runs the steps itself has measured them by a clock, up to the devices' end.
        """
        merged = {**self.summary, **{key: value for key, value in own.items() if value is not None}}
        seen, steps = self.summary.get("steps"), own.get("steps")
        if steps and seen:
            same = (seen.get("name"), seen.get("count")) == (steps.get("name"), steps.get("count"))
            merged["steps"] = _fitted({**seen, **steps}) if same else steps
        if not merged.get("headline"):
            merged["headline"] = headline(merged)
        return merged


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
    """Give the one number that a list shows: the median step, else the share that the devices were busy."""
    steps: Mapping[str, Any] = summary.get("steps") or {}
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
