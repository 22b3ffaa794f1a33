"""A SQLite export of an Nsight report, opened read-only: which tables it has, and their columns.

Exports of 2022.4 to 2026 differ in which tables and columns there are: one without rows is absent, a new
layout gets a suffix (`NVTX_EVENTS_V2`), and some were renamed. So everything is looked up before it is read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .figures import read_number, whole_number
from .model import ReadError
from .nsight_pages import Column, PageFile, Undecodable

IntegerColumn = NDArray[np.int64]
SQLITE_MAGIC = b"SQLite format 3\0"
#: The newest layout that this was tried with; a greater first number is read as far as it is the same.
KNOWN_SCHEMA = (3, 20)
_OURS = re.compile(
    r"CUPTI_ACTIVITY_KIND_\w+|NVTX_EVENTS\w*|TARGET_INFO_\w+|META_DATA_EXPORT|EXPORT_META_DATA"
)
_WAIT_S = 1.0


#: Stands for a time that is NULL.
NO_TIME = -(1 << 62)
#: Times from here on (104 days) can only be damage: up to it a float64 holds every nanosecond.
_NEVER = 1 << 53


def timed(start: IntegerColumn, end: IntegerColumn) -> NDArray[np.bool_]:
    """Tell which rows have a beginning and an end after it."""
    return (start > -_NEVER) & (end < _NEVER) & (end >= start)


@dataclass(frozen=True)
class _Table:
    name: str
    root: int
    columns: tuple[str, ...]


class Database:
    """One export. What can't be read is left out, and `lost` says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lost: list[str] = []
        _check_file(path)
        try:
            self._connection = _connect(path)
            self._tables = self._find_tables()
        except sqlite3.DatabaseError as error:
            raise _unreadable(path, error) from error
        if not any(map(_OURS.fullmatch, self._tables)):
            self.close()
            raise ReadError(
                f"{path} is a SQLite database, but not the export of an Nsight Systems report: it has none "
                "of its tables. Make one with: nsys export --type sqlite REPORT.nsys-rep"
            )
        try:
            self._pages = PageFile(path)
        except (Undecodable, OSError, ValueError):
            self._pages = None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def table(self, *names: str) -> str | None:
        """Give the first of these tables that is there, by its name or with a newer layout's suffix."""
        for name in names:
            pattern = re.compile(rf"{name}(?:_V(\d+))?")
            found = [
                (read_number(match.group(1) or "1"), has)
                for has in self._tables
                if (match := pattern.fullmatch(has))
            ]
            if found:
                return max(found)[1]
        return None

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether a table (by its own name) has these columns."""
        return set(columns) <= set(self._tables[table].columns)

    def integers(self, table: str, *names: str, **nulls: int) -> dict[str, IntegerColumn]:
        """Read columns of a table (by its own name), in the order of its rows.

        What is NULL, or a column that this layout lacks, gives 0, or what `nulls` says.
        """
        there = _Table(table, 0, ()) if table not in self._tables else self._tables[table]
        present = [name for name in names if name in there.columns]
        values = self._decoded(there, present, nulls)
        length = len(values[0]) if values else self._count(there)
        result = dict(zip(present, values, strict=True))
        for name in names:
            if name not in result:
                result[name] = np.full(length, nulls.get(name, 0), dtype=np.int64)
        return result

    def texts(self, table: str, name: str) -> tuple[IntegerColumn, list[str]]:
        """Read a column of texts: for each row the number of its text in the list; -1 for NULL."""
        there = self._tables[table]
        if self._pages is not None:
            try:
                column = Column(there.columns.index(name), is_text=True)
                (keys,), _whole = self._pages.columns(there.root, [column])
            except Undecodable:
                pass
            else:
                found, number = np.unique(keys, return_inverse=True)
                texts = [_decode(self._pages.texts.get(int(key), b"")) for key in found]
                return np.where(keys == 0, -1, number.reshape(-1)), texts
        own: dict[str, int] = {}
        rows = (row[0] for row in self.rows(f'select "{name}" from "{table}" order by rowid'))
        numbers = [-1 if text is None else own.setdefault(str(text), len(own)) for text in rows]
        return np.array(numbers, dtype=np.int64), list(own)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Run a query, yielding its rows; damage ends them, and is noted."""
        try:
            yield from self._connection.execute(query)
        except sqlite3.Error as error:
            self._lose(query.partition(" from ")[2].split()[0].strip('"'), error)

    def mapping(self, *tables: str) -> Mapping[str, str]:
        """Read a table of names and values; empty where there is none."""
        table = self.table(*tables)
        if table is None or not self.has(table, "name", "value"):
            return {}
        return {str(name): str(value) for name, value in self.rows(f'select name, value from "{table}"')}

    def strings(self) -> dict[int, str]:
        """Read the texts that other tables name by number."""
        table = self.table("StringIds")
        if table is None:
            self.lost.append(f"{self.path} lacks the table StringIds, so all names are missing.")
            return {}
        return {
            whole_number(number): str(text) for number, text in self.rows(f'select id, value from "{table}"')
        }

    def schema(self) -> tuple[int, ...]:
        """Give the version of the layout; empty where the export does not tell."""
        version = self.mapping("META_DATA_EXPORT", "EXPORT_META_DATA").get("EXPORT_SCHEMA_VERSION", "")
        return tuple(read_number(part) for part in re.findall(r"\d+", version))

    def _find_tables(self) -> dict[str, _Table]:
        found: dict[str, _Table] = {}
        # in a damaged file the list of tables may hold anything
        query = (
            "select name, rootpage from sqlite_master "
            "where type = 'table' and typeof(name) = 'text' and typeof(rootpage) = 'integer'"
        )
        for name, root in self._connection.execute(query).fetchall():
            columns = self._connection.execute("select name from pragma_table_info(?)", (name,))
            found[name] = _Table(name, root, tuple(column for (column,) in columns))
        return found

    def _decoded(self, table: _Table, names: list[str], nulls: Mapping[str, int]) -> list[IntegerColumn]:
        if not names:
            return []
        if self._pages is not None:
            wanted = [Column(table.columns.index(name), nulls.get(name, 0)) for name in names]
            try:
                values, whole = self._pages.columns(table.root, wanted)
            except Undecodable:
                pass  # SQLite itself reads it, or says what is wrong with it
            else:
                if not whole:
                    self._lose(table.name, None)
                return values
        return self._selected(table, names, nulls)

    def _selected(self, table: _Table, names: list[str], nulls: Mapping[str, int]) -> list[IntegerColumn]:
        """Read columns by SQL: slower, and right for whatever SQLite can store."""
        fields = ", ".join(f'cast(ifnull("{name}", {nulls.get(name, 0)}) as integer)' for name in names)
        rows = self.rows(f'select {fields} from "{table.name}" order by rowid')
        values = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
        return list(values.reshape(-1, len(names)).T)

    def _count(self, table: _Table) -> int:
        return next((row[0] for row in self.rows(f'select count(*) from "{table.name}"')), 0)

    def _lose(self, table: str, error: sqlite3.Error | None) -> None:
        why = f"({error})" if error is not None else "(the file is cut short)"
        self.lost.append(f"{self.path}: the table {table} could not be read to its end {why}.")


def _check_file(path: Path) -> None:
    """Say what is wrong with a file that can't be an export, going by its first bytes."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise ReadError(f"{path} can't be read: {error.strerror or error}.") from error
    if not begin:
        raise ReadError(f"{path} is empty: its writing was cut off. Export the report again.")
    if begin != SQLITE_MAGIC:
        raise ReadError(f"{path} is no SQLite database. Export the report again, or give the report itself.")
    journal = path.with_name(path.name + "-journal")
    if journal.is_file() and journal.stat().st_size:
        raise ReadError(
            f"{path} is still being written, or its writing was cut off: there is {journal.name} beside it. "
            "Wait for the export to end, or export the report again."
        )


def _connect(path: Path) -> sqlite3.Connection:
    """Open for reading only; a file that another process keeps locked is refused rather than half read."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with path.open("rb") as file:
        keeps_a_log = file.read(20)[18:] == b"\2\2"
    if keeps_a_log and not path.with_name(path.name + "-wal").exists():
        uri += "&immutable=1"  # else SQLite would make its log's files beside it
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, check_same_thread=False)
    try:
        _prepare(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise
        # A write-ahead log in a directory that can't be written to, or a file system without locks
        again = uri if "immutable" in uri else f"{uri}&immutable=1"
        connection = sqlite3.connect(again, uri=True, check_same_thread=False)
        _prepare(connection)
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    # Lets SQLite open a file that is cut short: its first tables can be whole.
    connection.execute("pragma writable_schema = on")
    connection.text_factory = _decode
    connection.execute("select count(*) from sqlite_master").fetchone()


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _unreadable(path: Path, error: sqlite3.DatabaseError) -> ReadError:
    if "locked" in str(error):
        return ReadError(
            f"{path} is locked: another program is writing it. Wait for the export to end, then try again."
        )
    return ReadError(f"{path} is damaged: {error}. Export the report again.")
