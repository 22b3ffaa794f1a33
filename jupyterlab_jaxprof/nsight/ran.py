"""What a run tells: the events of the program and of its guardian, and what nsys prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .progress import Phase

_MOST_SAID, _LONGEST_SAID = 400, 4000
_BAR = re.compile(r"\[\d+/\d+\] \[.*%")
_PHASE_AFTER = {
    "start": Phase.SET_UP,
    "ready": Phase.WARM_UP,
    "capture": Phase.CAPTURE,
    "captured": Phase.IMPORT,
}


@dataclass
class Ran:
    """What is known of a run so far."""

    phase: Phase = Phase.START
    pid: int = 0
    """The program's own, once it has started."""
    files: list[str] = field(default_factory=lambda: [])
    """What nsys has written for it outside of its temporary directory, and forgets when it is killed."""
    interrupted: bool = False
    given_up: bool = False
    """Interrupted twice, or before there was anything to record: all was ended at once."""
    stuck: bool = False
    """The program ignored an interrupt and was killed."""
    timed_out: bool = False
    """The program never gave a sign of life."""
    nsys_status: int | None = None
    nsys_failure: str = ""
    hung: bool = False
    """nsys never stopped recording."""
    lingered: bool = False
    """nsys went on without a word after the program's end."""
    cut_short: bool = False
    """Interrupted while nsys was at work after the program's end."""
    waited_s: float = 0.0
    """For how long, where it never started, never stopped, or lingered."""
    guardian_killed: bool = False
    left_behind: int = 0
    no_nvtx: str = ""
    error: Mapping[str, Any] | None = None
    """The event of the program's own error."""
    done: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] = field(default_factory=lambda: {})
    """What a record says of the program's process."""
    notices: list[str] = field(default_factory=lambda: [])
    durations_ms: list[float] = field(default_factory=lambda: [])
    captured: bool = False
    said: list[str] = field(default_factory=lambda: [])
    """The lines that nsys printed."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        self.phase = _PHASE_AFTER.get(event["event"], self.phase)
        match event["event"]:
            case "start":
                self.pid, self.files = event["pid"], event.get("files", [])
            case "ready":
                self.notices += event["notices"]
                self.environment = event["environment"]
            case "step":
                self.durations_ms.append(event["duration_ms"])
            case "captured":
                self.captured = True
            case "error":
                self.error = self.error or event
            case "no-nvtx":
                self.no_nvtx = event["reason"]
            case "no-nsys":
                self.nsys_failure = event["error"]
            case "done":
                self.done = event
                self.environment = event["environment"]
                self.notices += event["notices"]
            case "nsys-ended":
                self.nsys_status = event["status"]
                self.left_behind = len(set(event["left"]) - {self.pid})
                self.stuck |= self.interrupted and self.pid in event["left"]
            case _:
                return

    def hear(self, line: str) -> None:
        """Take a line that nsys printed; its progress bars say nothing."""
        line = line.rpartition("\r")[2].strip()
        if line and not _BAR.search(line) and len(self.said) < _MOST_SAID:
            self.said.append(line[:_LONGEST_SAID])
