"""The report on one capture, or on any trace or Nsight report, as a record with its findings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import CaptureFile, Record, Status, Store
from jupyterlab_jaxprof.captures.draft import role_of
from jupyterlab_jaxprof.environment import own_version

from .examine import ENDINGS, Examined, devices_of, examine
from .find import Found, ReportError, find

_KINDS = {"nsight": "nsys", "xplane": "trace"}


@dataclass(frozen=True)
class Report:
    """A record whose findings are filled in; of a file that is no capture of ours it has no identifier."""

    record: Record
    directory: Path
    in_store: bool
    path: Path
    """What was read: a file, or the capture's directory."""

    def to_json(self) -> dict[str, Any]:
        """Give the record as plain values, and where its files lie."""
        return self.record.to_json() | {"directory": str(self.directory), "in_store": self.in_store}

    def text(self, paper: cards.Paper = cards.PLAIN) -> str:
        """Write the card for a terminal."""
        return cards.plain(self.record, directory=self.directory, in_store=self.in_store, paper=paper)

    def page(self) -> str:
        """Write the card as a whole HTML page."""
        return cards.page(self.record, directory=self.directory, in_store=self.in_store)


def report(store: Store, target: str) -> Report:
    """Report on a capture's name or identifier, or on a path; raises ReportError.

    A capture that was diagnosed when it was taken is reported as it stands; files are read where it wasn't.
    """
    found = find(store, target)
    if found.record is None:
        return _of_path(Path(os.path.abspath(found.path)))  # noqa: PTH100 (resolve() would follow links)
    if "timeline" in found.record.summary:
        return Report(found.record, found.path, found.in_store, found.path)
    return _of_capture(found, found.record)


def _of_capture(found: Found, record: Record) -> Report:
    traces = [found.path / file.path for file in record.files if file.path.endswith(ENDINGS)]
    if not traces:
        return Report(record, found.path, found.in_store, found.path)
    try:
        # of a report and its export, which hold the same, the export
        ending = next(one for one in reversed(ENDINGS) if any(path.name.endswith(one) for path in traces))
        examined = examine([path for path in traces if path.name.endswith(ending)])
    except ReportError as error:  # what its record says still holds
        record = replace(record, notices=(*record.notices, f"There are no findings. {error}"))
        return Report(record, found.path, found.in_store, found.path)
    record = replace(
        record,
        findings=tuple(examined.findings),
        summary=examined.summary_with(record.summary),
        notices=tuple(dict.fromkeys((*record.notices, *examined.notices))),
    )
    return Report(record, found.path, found.in_store, found.path)


def _of_path(path: Path) -> Report:
    examined = examine([path])
    directory = path if path.is_dir() else path.parent
    return Report(record_of(examined, path, directory), directory, False, path)


def record_of(examined: Examined, path: Path, directory: Path) -> Record:
    """Give what `path` says as a record without an identifier; paths of files are relative to `directory`."""
    files = examined.timeline.files
    complete = all(file.complete for file in files)
    return Record(
        id="",
        kind=_KINDS.get(str(examined.timeline.source), "trace"),
        name=path.name or str(path),
        created=_created(examined.timeline.origin_ns),
        status=Status.OK if complete else Status.PARTIAL,
        reason="" if complete else "A part of it could not be read; what is told here is of the rest.",
        environment=_environment(examined),
        files=tuple(_file(Path(file.path), directory, file.size_bytes) for file in files),
        summary=examined.summary_with({}),
        notices=tuple(examined.notices),
        findings=tuple(examined.findings),
    )


def _file(path: Path, directory: Path, size_bytes: int) -> CaptureFile:
    inside = path.relative_to(directory) if path.is_relative_to(directory) else Path(path.name)
    return CaptureFile(inside.as_posix(), size_bytes, role_of(path.name))


def _created(origin_ns: int) -> str:
    try:
        return datetime.fromtimestamp(origin_ns / 1e9, UTC).isoformat() if origin_ns > 0 else ""
    except (OverflowError, OSError, ValueError):
        return ""


def _environment(examined: Examined) -> Mapping[str, Any]:
    timeline = examined.timeline
    hosts = ", ".join(dict.fromkeys(file.host for file in timeline.files if file.host))
    return {"devices": devices_of(timeline), "host": hosts, **timeline.versions, "jaxprof": own_version()}
