"""The record of one capture, `capture.json`: what it holds, and how it is read and written.

Whatever stands in the file, `parse` returns a whole Record or raises a RecordError that says in a sentence
what is wrong; and whatever a Record holds, `serialize` writes standard JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from .names import SESSION_PATTERN, created_at, is_id
from .shapes import FINDING, SUMMARY, misfit

SCHEMA = 1
RECORD_FILE = "capture.json"
MAX_RECORD_BYTES = 16 * 1024 * 1024
MAX_CELL_BYTES = 64 * 1024
_INT64 = 2**63


class RecordError(ValueError):
    """A record that can't be used; the message is a sentence for the user."""


class DamagedRecord(RecordError):
    """Not JSON, not complete, or of the wrong types."""


class NewerRecord(RecordError):
    """Written by a later version: only what was readable of it is kept, in `known`."""

    def __init__(self, message: str, known: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.known = known


class Status(StrEnum):
    """How the run went."""

    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class CaptureFile:
    """One file of a capture; `path` is relative to the capture's directory and `/`-separated."""

    path: str
    size_bytes: int
    role: str

    def to_json(self) -> dict[str, Any]:
        """Give the file's entry in the record."""
        return {"path": self.path, "size_bytes": self.size_bytes, "role": self.role}


def _no_mapping() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Record:
    """One capture's record; docs/architecture.md describes every key."""

    schema: int = SCHEMA
    id: str
    kind: str
    name: str
    created: str
    status: Status
    reason: str = ""
    notebook: str = ""
    magic: str = ""
    cell: str = ""
    environment: Mapping[str, Any] = field(default_factory=_no_mapping)
    files: tuple[CaptureFile, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=_no_mapping)
    notices: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    xprof_run: str | None = None
    notes: str = ""
    pinned: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that the record lists."""
        return sum(file.size_bytes for file in self.files)

    @property
    def steps(self) -> Mapping[str, Any] | None:
        """`{name, count, median_ms, min_ms, max_ms, durations_ms}`, or None where no steps were marked."""
        steps = self.summary.get("steps")
        return cast("Mapping[str, Any]", steps) if isinstance(steps, Mapping) else None

    def to_json(self) -> dict[str, Any]:
        """Give the record as the plain values of JSON; `from_json` reads them back."""
        data: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        data["status"] = str(self.status)
        data["files"] = [file.to_json() for file in self.files]
        return clean(data)

    @classmethod
    def from_json(cls, data: Any) -> Record:
        """Read a record out of parsed JSON; raises DamagedRecord or NewerRecord."""
        if not isinstance(data, dict):
            raise DamagedRecord(f"Its {RECORD_FILE} holds no JSON object, so the record is damaged.")
        return _read(cls, cast("dict[str, Any]", data))


def load(content: bytes, *, floats: bool = True) -> Any:
    """Read JSON so that it can be written as standard JSON again; raises ValueError or RecursionError.

    Whoever takes no floating-point number out of it can save the time that a look at each one costs.
    """
    text = content.decode("utf-8")
    data = (
        json.loads(text, parse_constant=lambda _: None, parse_float=_finite) if floats else json.loads(text)
    )
    # An escaped half of a surrogate pair would break every answer that it is in.
    return clean(data) if "\\ud" in text or "\\uD" in text else data


def parse(content: bytes) -> Record:
    """Read a record out of a file's content; raises DamagedRecord or NewerRecord."""
    return Record.from_json(decode(content))


def decode(content: bytes) -> Any:
    """Read the JSON in a record's file, whatever it holds; raises DamagedRecord."""
    try:
        return load(content)
    except (ValueError, RecursionError) as error:
        empty = "is empty" if not content.strip(b"\0 \n\r\t") else "is not JSON (cut short, or overwritten)"
        raise DamagedRecord(f"Its {RECORD_FILE} {empty}, so the record is damaged.") from error


def serialize(record: Record) -> bytes:
    """Give the file's content: standard JSON (no NaN, no half characters), UTF-8."""
    return encode(record.to_json())


def encode(data: Mapping[str, Any]) -> bytes:
    """Write a record's plain values as its file's content."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8") + b"\n"


def clean(value: Any) -> Any:
    """Make a value fit for standard JSON: numbers that aren't finite become null, lone surrogates U+FFFD.

    Arrays and tuples become lists, numpy's numbers int or float, and anything else its text: no capture may
    be lost for an odd value in its environment.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(item) for item in cast("list[Any]", value)]
    if hasattr(value, "tolist"):  # an array or a number of numpy's or JAX's
        return clean(value.tolist())
    if hasattr(value, "__index__"):
        return int(value)
    if hasattr(value, "__float__"):
        number = float(value)
        return number if math.isfinite(number) else None
    return clean(str(value))


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _read(cls: type[Record], data: dict[str, Any]) -> Record:
    data = of_this_schema(data)
    schema = data.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise DamagedRecord(f"Its {RECORD_FILE} has no valid schema number, so the record is damaged.")
    if schema > SCHEMA:
        raise NewerRecord(
            f"A later version of jupyterlab-jaxprof wrote it (record schema {schema}; this one reads up "
            f"to {SCHEMA}): run 'pip install --upgrade jupyterlab-jaxprof', then restart Jupyter.",
            data,
        )
    values: dict[str, Any] = {"schema": schema}
    for key in ("id", "kind", "name", "created", "reason", "notebook", "magic", "cell", "notes"):
        values[key] = _typed(data, key, str, "" if key not in ("id", "kind", "name", "created") else None)
    for key in ("environment", "summary"):
        values[key] = _typed(data, key, dict, {})
    values["pinned"] = _typed(data, "pinned", bool, False)
    values["notices"] = _items(data, "notices", str)
    values["findings"] = _items(data, "findings", dict)
    values["files"] = tuple(_file(item) for item in _items(data, "files", dict))
    values["status"] = _status(data)
    _check_identity(values["id"], values["created"], data.get("xprof_run"))
    _check_shapes(values["summary"], values["findings"])
    return cls(**values, xprof_run=data.get("xprof_run"))


def of_this_schema(data: dict[str, Any]) -> dict[str, Any]:
    """Give an early record, without a schema number or of number 0, as one of number 1; others as they are.

    What such a record does not say is taken from its identifier and its files, and how the run went is not
    known then. A record that lacks more than that is refused like any other.
    """
    if type(data.get("schema", 0)) is not int or data.get("schema", 0) != 0:
        return data
    newer: dict[str, Any] = {"schema": 1}
    capture_id, run = data.get("id"), data.get("xprof_run")
    if isinstance(capture_id, str) and is_id(capture_id):
        newer["created"] = created_at(capture_id)
        newer["name"] = run.partition("/")[2] if isinstance(run, str) and "/" in run else capture_id
    listed = data.get("files")
    roles = (
        {item.get("role") for item in listed if isinstance(item, dict)} if isinstance(listed, list) else ()
    )
    kinds = [kind for role, kind in (("xplane", "trace"), ("nsys", "nsys")) if role in roles]
    if kinds:
        newer["kind"] = kinds[0]
    if "status" not in data:
        reason = "An early version of jupyterlab-jaxprof wrote it, and did not say how the run went."
        newer |= {"status": str(Status.PARTIAL), "reason": reason}
    return newer | {key: value for key, value in data.items() if key != "schema"}


def _typed(data: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = data.get(key, default)
    if not isinstance(value, kind):
        problem = "is missing" if value is None else f"is {type(value).__name__}, not {kind.__name__}"
        raise DamagedRecord(f"In its {RECORD_FILE}, '{key}' {problem}, so the record is damaged.")
    return value


def _items(data: Mapping[str, Any], key: str, kind: type) -> tuple[Any, ...]:
    items: list[Any] = _typed(data, key, list, [])
    if not all(isinstance(item, kind) for item in items):
        raise DamagedRecord(f"In its {RECORD_FILE}, '{key}' holds a wrong type, so the record is damaged.")
    return tuple(items)


def _status(data: Mapping[str, Any]) -> Status:
    try:
        return Status(data.get("status", ""))
    except ValueError:
        raise DamagedRecord(f"In its {RECORD_FILE}, 'status' is unknown, so the record is damaged.") from None


def is_relative_path(path: str) -> bool:
    """Tell whether `path` stays inside the directory it is relative to, by its text alone."""
    return bool(path) and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))


def _file(data: Mapping[str, Any]) -> CaptureFile:
    path, size, role = data.get("path"), data.get("size_bytes"), data.get("role", "other")
    if (
        not isinstance(path, str)
        or not isinstance(role, str)
        or isinstance(size, bool)
        or not isinstance(size, int)
    ):
        raise DamagedRecord(
            f"In its {RECORD_FILE}, an entry of 'files' is not valid, so the record is damaged."
        )
    if not 0 <= size < _INT64 or not is_relative_path(path):
        raise DamagedRecord(f"Its {RECORD_FILE} lists a file that can't be there, so the record is damaged.")
    return CaptureFile(path, size, role)


def _check_identity(capture_id: str, created: str, xprof_run: Any) -> None:
    if not is_id(capture_id):
        raise DamagedRecord(f"In its {RECORD_FILE}, 'id' is not an identifier, so the record is damaged.")
    try:
        datetime.fromisoformat(created)
    except ValueError:
        raise DamagedRecord(
            f"In its {RECORD_FILE}, 'created' is not a time, so the record is damaged."
        ) from None
    if xprof_run is None:
        return
    run_id, _, session = xprof_run.partition("/") if isinstance(xprof_run, str) else ("", "", "")
    if run_id != capture_id or not SESSION_PATTERN.fullmatch(session):
        raise DamagedRecord(
            f"In its {RECORD_FILE}, 'xprof_run' is not a run of it, so the record is damaged."
        )


def _check_shapes(summary: Mapping[str, Any], findings: Sequence[Any]) -> None:
    """Refuse what whoever shows the record (here or in the browser) would stumble over."""
    wrong = misfit(summary, SUMMARY, "summary") or misfit(list(findings), [FINDING], "findings")
    if wrong is not None:
        raise DamagedRecord(f"In its {RECORD_FILE}, '{wrong}' is of a wrong type, so the record is damaged.")
