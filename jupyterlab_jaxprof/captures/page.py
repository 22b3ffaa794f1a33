"""What a list of captures gives back: rows, and what is true of the whole store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .names import created_at
from .record import Record
from .shapes import IN_LISTS


@dataclass(frozen=True)
class OverLimit:
    """By how many bytes a store is over its limit, and which captures, deleted, would bring it under."""

    bytes: int
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One capture in a list: its record, or (record None) what is known of one that can't be read.

    `problem` is a sentence, with a record too: then some of its files are gone or not whole.
    """

    id: str
    record: Record | None
    problem: str | None
    kind: str
    name: str
    size_bytes: int
    disk_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Give the row as the REST route does: without cell, findings, environment, a summary's details."""
        if self.record is None:
            data: dict[str, Any] = {
                "id": self.id,
                "kind": self.kind,
                "name": self.name,
                "created": created_at(self.id),
            }
            data |= {
                "status": "failed",
                "reason": "",
                "files": [],
                "summary": {},
                "notices": [],
                "xprof_run": None,
            }
            data |= {"notebook": "", "magic": "", "notes": "", "pinned": False, "schema": None}
        else:
            data = self.record.to_json()
            for key in ("cell", "findings", "environment"):
                del data[key]
            data["summary"] = {key: value for key, value in data["summary"].items() if key in IN_LISTS}
            if self.record.steps is not None:
                data["summary"]["steps"].pop("durations_ms", None)
        return data | {"size_bytes": self.size_bytes, "disk_bytes": self.disk_bytes, "problem": self.problem}


def files_problem(record: Record, found: Mapping[str, int]) -> str | None:
    """Compare the files that a record lists with those `found` as {path: bytes}; None when all are whole."""
    total = len(record.files)
    missing = sum(file.path not in found for file in record.files)
    changed = sum(found.get(file.path, file.size_bytes) != file.size_bytes for file in record.files)
    sentences: list[str] = []
    if missing:
        sentences.append(f"{_of_files(missing, total)} missing from its directory.")
    if changed:
        sentences.append(f"{_of_files(changed, total)} no longer of the size that was written.")
    if not sentences:
        return None
    sentences.append("What is told of it here still holds, but a viewer may fail on it: run the cell again.")
    return " ".join(sentences)


def _of_files(number: int, total: int) -> str:
    if total == 1:
        return "Its only file is"
    return f"{number} of its {total} files {'is' if number == 1 else 'are'}"


@dataclass(frozen=True)
class Page:
    """Some rows of a list, and what is true of the whole store; `matched` counts what fits the filters.

    `kinds` and `notebooks`: each that a capture of the store has, sorted, whatever the filters.
    """

    rows: Sequence[Row]
    matched: int
    total: int
    size_bytes: int
    size_limit_bytes: int | None
    over_limit: OverLimit
    problems: Sequence[str]
    kinds: Sequence[str] = ()
    notebooks: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Give the page as the REST route does."""
        return {
            "captures": [row.to_json() for row in self.rows],
            "matched": self.matched,
            "total": self.total,
            "size_bytes": self.size_bytes,
            "size_limit_bytes": self.size_limit_bytes,
            "over_limit": {"bytes": self.over_limit.bytes, "ids": list(self.over_limit.ids)},
            "problems": list(self.problems),
            "kinds": list(self.kinds),
            "notebooks": list(self.notebooks),
        }
