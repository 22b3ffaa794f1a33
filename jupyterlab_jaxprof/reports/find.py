"""What a user means by NAME, ID or PATH."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from jupyterlab_jaxprof.captures import Record, RecordError, Row, Store, StoreError, is_id
from jupyterlab_jaxprof.captures.index import read_record
from jupyterlab_jaxprof.captures.record import RECORD_FILE

_BEFORE = re.compile(r"(.+)~(\d{1,6})")
_PAGE = 200
_NAMED = 6


class ReportError(RuntimeError):
    """There is nothing to report on; the message is a sentence: what happened, why, and what to do."""


@dataclass(frozen=True)
class Found:
    """A capture (its record, and the directory of its files), or with no record a plain path."""

    path: Path
    record: Record | None = None
    in_store: bool = False


def find(store: Store, target: str) -> Found:
    """Find a capture by its identifier or name (the newest of that name), or a path; raises ReportError.

    What has a slash in it, or begins with a dot or `~`, is a path, and only where there is none a name; all
    else is first looked for in the store. `NAME~1` is the capture before the newest of that name, as in git.
    """
    target = target.strip()
    if not target:
        raise ReportError("An empty text names no capture: give a capture's name or identifier, or a path.")
    path = _path(target)
    is_path = "/" in target or target.startswith((".", "~"))
    if is_path and path.exists():
        return _at(path)
    try:
        record = store.get(target) if is_id(target) else _called(store, target)
    except StoreError as error:
        raise ReportError(str(error)) from None
    if record is not None:
        return Found(store.captures_dir / record.id, record, True)
    if path.exists():
        return _at(path)
    raise ReportError(_no_path(target) if is_path else _nothing_called(store, target))


def _at(path: Path) -> Found:
    if (path / RECORD_FILE).is_file():
        try:
            return Found(path, read_record(path))
        except RecordError as error:
            raise ReportError(f"The capture in {path} can't be used. {error}") from None
    return Found(path)


def _called(store: Store, target: str) -> Record | None:
    """Give the capture that a name means: the newest, or so many before it."""
    record = _of_name(store, target, 0)
    before = _BEFORE.fullmatch(target)
    return record or (_of_name(store, before[1], int(before[2])) if before else None)


def _of_name(store: Store, name: str, back: int) -> Record | None:
    rows = [row for row in _rows(store) if row.name == name]
    readable = [row.record for row in rows if row.record is not None]
    if len(readable) > back:
        return readable[back]
    if readable:
        many = "is only one capture" if len(readable) == 1 else f"are only {len(readable)} captures"
        raise ReportError(f"There {many} called {name!r}, so none is {name}~{back}.")
    if rows:
        raise ReportError(f"The capture {name!r} can't be used. {rows[0].problem}")
    return None


def _rows(store: Store) -> Iterator[Row]:
    """Give every capture, the newest first."""
    offset = 0
    while rows := store.list(offset=offset, limit=_PAGE).rows:
        yield from rows
        offset += _PAGE


def _no_path(target: str) -> str:
    return (
        f"There is no {target}, neither a file nor a capture: give a capture's name or identifier (`jaxprof "
        "list` tells both), or the path of a trace (*.xplane.pb or a directory with one) or of an Nsight "
        "report (*.nsys-rep, *.qdstrm, *.sqlite)."
    )


def _nothing_called(store: Store, target: str) -> str:
    names = list(dict.fromkeys(row.name for row in _rows(store)))
    close = get_close_matches(target, names, n=1, cutoff=0.6)
    if close:
        hint = f"Did you mean {close[0]!r}?"
    elif names:
        hint = "There are: " + ", ".join(repr(name) for name in names[:_NAMED]) + "."
    else:
        hint = f"The store ({store.root}) holds no capture yet."
    return f"No capture is called {target!r}, and there is no file of that name here. {hint}"


def _path(target: str) -> Path:
    try:
        return Path(target).expanduser()
    except RuntimeError:  # `~nobody`
        return Path(target)
