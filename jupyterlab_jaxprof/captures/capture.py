"""A capture as a Python object: what `--save VAR` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UnknownCapture
from .record import CaptureFile, Record, Status


@dataclass(frozen=True, repr=False)
class Capture:
    """One capture's record and the directory that holds its files."""

    record: Record
    directory: Path

    @property
    def id(self) -> str:
        """Its identifier, which sorts by time."""
        return self.record.id

    @property
    def name(self) -> str:
        """Its name at the time it was taken."""
        return self.record.name

    @property
    def kind(self) -> str:
        """What measured it: `trace`, ..."""
        return self.record.kind

    @property
    def status(self) -> Status:
        """How the run went."""
        return self.record.status

    @property
    def summary(self) -> Mapping[str, Any]:
        """Its main numbers: `headline`, `wall_ms`, `steps`."""
        return self.record.summary

    @property
    def steps(self) -> Mapping[str, Any] | None:
        """`{name, count, median_ms, min_ms, max_ms, durations_ms}`, or None."""
        return self.record.steps

    @property
    def findings(self) -> tuple[Mapping[str, Any], ...]:
        """What the diagnosis found, the most costly first: `id`, `title`, `level`, `lost_ms`, ..."""
        return self.record.findings

    @property
    def files(self) -> tuple[CaptureFile, ...]:
        """Its files, as the record lists them."""
        return self.record.files

    def file(self, role: str) -> Path:
        """Give the path of the first file of a role (`xplane`, `trace_json`, `perfetto`, ...)."""
        for file in self.files:
            if file.role == role:
                return self.directory / file.path
        roles = ", ".join(sorted({file.role for file in self.files})) or "none"
        raise UnknownCapture(f"The capture {self.name!r} has no file of the role {role!r}; it has: {roles}.")

    def to_dict(self) -> dict[str, Any]:
        """Give the record as plain values, and the directory."""
        return self.record.to_json() | {"directory": str(self.directory)}

    def __repr__(self) -> str:
        parts = [repr(self.name), f"kind={self.kind!r}", f"status={str(self.status)!r}"]
        if self.steps is not None and self.steps.get("count"):
            parts.append(f"steps={self.steps['count']}")
        return f"<Capture {', '.join(parts)}: {self.directory}>"
