"""What happened in a program, as columns: one model, filled from an XProf trace or an Nsight report.

timeline = read("…/plugins/profile/2026_01_31")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .build import merge
from .files import Kind, find
from .model import ReadError, Timeline
from .xplane import read_xplane

__all__ = ["ReadError", "Timeline", "read"]


def read(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Timeline:
    """Read what was recorded of one run: a trace, a report, a directory, or the files of several processes.

    A directory is a session's (`plugins/profile/<session>`), or any above it that holds one session or one
    report. Raises ReadError, a sentence that names the file and says why it can't be read.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = find(Path(path) for path in given)
    if len(files) == 1:
        return _read_one(*files[0])
    timelines: list[Timeline] = []
    problems: list[str] = []
    for path, kind in files:
        try:
            timelines.append(_read_one(path, kind))
        except ReadError as error:
            problems.append(str(error))
    if not timelines:
        raise ReadError(" ".join(problems))
    return merge(timelines, problems)


def _read_one(path: Path, kind: Kind) -> Timeline:
    if kind is Kind.XPLANE:
        return read_xplane(path)
    from . import nsight, nsight_export

    if kind is Kind.REPORT:
        return nsight_export.read_report(path)
    return nsight.read_export(path)
