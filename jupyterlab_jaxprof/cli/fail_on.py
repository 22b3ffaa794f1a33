"""`--fail-on`: which findings make a run in continuous integration fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from jupyterlab_jaxprof.reports import ReportError, pattern_ids, unseen

#: Stands for every finding that costs time, whatever its name.
ANY = "problem"
_WELL = "nothing-wrong"


def patterns(text: str) -> list[str]:
    """Read the option's value; raises ReportError for a name that no finding has: a typo must not pass."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if not wanted:
        raise ReportError(f"--fail-on names no finding: give a name, or {ANY!r} for all that cost time.")
    known = pattern_ids()
    for part in wanted:
        if part != ANY and not any(fnmatchcase(name, part) for name in known):
            close = get_close_matches(part, [ANY, *known], n=1)
            meant = f"Did you mean {close[0]}?" if close else f"There are: {ANY}, {', '.join(known)}."
            raise ReportError(f"--fail-on: no finding is called {part!r}. {meant}")
    return wanted


def matched(findings: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Give the names of the findings that match; one that says that all is well never does."""
    hits = [
        str(finding.get("id"))
        for finding in findings
        if finding.get("level") != "fine" and any(_matches(finding, pattern) for pattern in wanted)
    ]
    return list(dict.fromkeys(hits))


def untold(wanted: Sequence[str], blind: Sequence[str]) -> list[str]:
    """Give the names that are asked for and that a recorder which was `blind` to so much can't tell."""
    hidden = [name for name in unseen(blind) if name != _WELL]
    return [name for name in hidden if any(part == ANY or fnmatchcase(name, part) for part in wanted)]


def _matches(finding: Mapping[str, Any], pattern: str) -> bool:
    if pattern == ANY:
        return finding.get("level") == "problem"
    return fnmatchcase(str(finding.get("id")), pattern)
