"""What happened in a program, as columns: one model, filled from an XProf trace or an Nsight report.

timeline = read("…/plugins/profile/2026_01_31")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from .build import merge
from .files import Kind, find
from .model import File, ReadError, Source, Timeline
from .xplane import read_xplane

__all__ = ["ReadError", "Timeline", "read"]


def read(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Timeline:
    """Read what was recorded of one run: a trace, a report, a directory, or the files of several processes.

    A directory is a session's (`plugins/profile/<session>`), or any above it that holds one session or one
    report. Of several files those that can't be read are listed as incomplete, with a notice. Raises
    ReadError, a sentence that names the file and says why it can't be read, where none can.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = find(Path(path) for path in given)
    timeline = _read_one(*found.files[0]) if len(found.files) == 1 else _read_several(found.files)
    return replace(timeline, notices=(*found.notices, *timeline.notices)) if found.notices else timeline


def _read_several(files: Iterable[tuple[Path, Kind]]) -> Timeline:
    timelines: list[Timeline] = []
    problems: list[str] = []
    unread: list[File] = []
    for path, kind in files:
        try:
            timelines.append(_read_one(path, kind))
        except ReadError as error:
            problems.append(str(error))
            source = Source.XPLANE if kind is Kind.XPLANE else Source.NSIGHT
            unread.append(File(str(path), source, path.stat().st_size, "", complete=False))
    if not timelines:
        raise ReadError(" ".join(problems))
    merged = merge(timelines, problems)
    return replace(merged, files=(*merged.files, *unread)) if unread else merged


def _read_one(path: Path, kind: Kind) -> Timeline:
    if kind is Kind.XPLANE:
        return read_xplane(path)
    from . import nsight, nsight_export

    if kind is Kind.REPORT:
        return nsight_export.read_report(path)
    return nsight.read_export(path)
