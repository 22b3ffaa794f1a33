"""What a user means by NAME, ID or PATH."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from jupyterlab_jaxprof.captures import Record, RecordError, Row, Store, StoreError, is_id
from jupyterlab_jaxprof.captures.index import read_record
from jupyterlab_jaxprof.captures.record import RECORD_FILE

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

    What has a slash in it, or begins with a dot or `~`, is a path; all else is first looked for in the store.
    """
    target = target.strip()
    if not target:
        raise ReportError("An empty text names no capture: give a capture's name or identifier, or a path.")
    path = _path(target)
    if "/" in target or target.startswith((".", "~")):
        return _at(path, target)
    try:
        record = store.get(target) if is_id(target) else _newest(store, target)
    except StoreError as error:
        raise ReportError(str(error)) from None
    if record is not None:
        return Found(store.captures_dir / record.id, record, True)
    if path.exists():
        return _at(path, target)
    raise ReportError(_nothing_called(store, target))


def _at(path: Path, target: str) -> Found:
    if not path.exists():
        raise ReportError(
            f"There is no {target}: give a capture's name (`jaxprof list` tells it), or the path of a trace "
            "(*.xplane.pb or a directory with one) or of an Nsight report (*.nsys-rep, *.sqlite)."
        )
    if (path / RECORD_FILE).is_file():
        try:
            return Found(path, read_record(path))
        except RecordError as error:
            raise ReportError(f"The capture in {path} can't be used. {error}") from None
    return Found(path)


def _newest(store: Store, name: str) -> Record | None:
    unreadable: Row | None = None
    for row in _rows(store):
        if row.name != name:
            continue
        if row.record is not None:
            return row.record
        unreadable = unreadable or row
    if unreadable is not None:
        raise ReportError(f"The capture {name!r} can't be used. {unreadable.problem}")
    return None


def _rows(store: Store) -> Iterator[Row]:
    """Give every capture, the newest first."""
    offset = 0
    while rows := store.list(offset=offset, limit=_PAGE).rows:
        yield from rows
        offset += _PAGE


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
