"""Exports that no nsys made: real ones with a few rows a table, changed by SQL and by bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from random import Random

from hypothesis import strategies as st

from tests.support.captures import unpacked
from tests.support.odd_values import NUMBERS, byte_changes, mutated, odd_text, pool

_MOST_ROWS = 30
SOURCES = ("nsys_dp2", "nsys_child_graphs", "nsys_cold")
NAMES = (
    "train_step_3", "step=99999999999999999999", "XlaModule:#hlo_module=jit_f,program_id=" + "9" * 40 + "#",
    "Thunk:#hlo_op=dot.1#", "TSL:PjitFunction(f)", "_" * 20_000, " " * 20_000 + "x", "1" * 20_000,
    "a=1," * 5_000, "jaxprof-string 99999999999999999999", "cudaGraphLaunch_v10000",
    "PjRtCompile:#module_name=jit_f#",
)  # fmt: skip

Change = Callable[[sqlite3.Connection], None]


@cache
def small_export(name: str) -> bytes:
    """Give a real export with a few rows in each table, and only those texts that they name."""
    with closing(sqlite3.connect(":memory:")) as small:
        with closing(sqlite3.connect(unpacked(f"{name}.sqlite"))) as whole:
            whole.text_factory = lambda text: text.decode("utf-8", "replace")
            whole.backup(small)
        small.text_factory = bytes
        named: set[object] = set()
        for table in _tables(small):
            if table != "StringIds":
                small.execute(
                    f'delete from "{table}" where rowid > (select min(rowid) from "{table}") + {_MOST_ROWS}'
                )
                for row in small.execute(f'select * from "{table}"'):
                    named.update(value for value in row if isinstance(value, int))
        for (number,) in small.execute("select id from StringIds").fetchall():
            if number not in named:
                small.execute("delete from StringIds where id = ?", (number,))
        small.execute("delete from StringIds where length(value) > 2000")
        small.commit()
        small.execute("vacuum")
        return small.serialize()


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("select name from sqlite_master where type = 'table' order by name")
    return [name if isinstance(name, str) else name.decode() for (name,) in rows]


def _value(chance: Random) -> object:
    return chance.choice(
        [
            None,
            chance.randrange(100),
            chance.randrange(10**9),
            chance.choice([number for number in NUMBERS if -(1 << 63) <= number < 1 << 63]),
            chance.choice([1.5, -1e300, float("inf"), 1e18]),
            odd_text(chance).encode("utf-8", "surrogatepass"),
            chance.choice(NAMES),
            chance.randbytes(40),
        ]
    )


def _change(chance: Random) -> Change:
    """Make one change of a schema or of values; `pick` numbers stand for whichever table there is then."""
    kind = chance.choice(
        ["value"] * 6 + ["values"] * 3 + ["row", "drop", "column", "rename", "type", "newer", "view"]
    )
    table_pick, column_pick, row_pick = (chance.randrange(1 << 30) for _ in range(3))
    value = _value(chance)
    text = odd_text(chance).replace("\0", "").encode("utf-8", "replace").decode() or "x"

    def change(connection: sqlite3.Connection) -> None:
        tables = _tables(connection)
        if not tables:
            return
        table = tables[table_pick % len(tables)]
        columns = [found[1] for found in connection.execute(f'pragma table_info("{table}")')]
        if not columns:
            return
        name = columns[column_pick % len(columns)]
        name = name if isinstance(name, str) else name.decode()
        quoted = text.replace('"', '""')
        if kind == "value":
            where = f'where rowid = (select rowid from "{table}" limit 1 offset {row_pick % _MOST_ROWS})'
            connection.execute(f'update "{table}" set "{name}" = ? {where}', (value,))
        elif kind == "values":
            connection.execute(f'update "{table}" set "{name}" = ?', (value,))
        elif kind == "row":
            marks = ", ".join("?" * len(columns))
            connection.execute(f'insert into "{table}" values ({marks})', [value] * len(columns))
        elif kind == "drop":
            connection.execute(f'drop table "{table}"')
        elif kind == "column":
            connection.execute(f'alter table "{table}" drop column "{name}"')
        elif kind == "rename":
            connection.execute(f'alter table "{table}" rename column "{name}" to "{quoted}"')
        elif kind == "type":  # without types, primary keys and their order
            connection.execute(f'create table "x{row_pick}" as select * from "{table}" order by rowid desc')
            connection.execute(f'drop table "{table}"')
            connection.execute(f'alter table "x{row_pick}" rename to "{table}"')
        elif kind == "newer":
            connection.execute(f'alter table "{table}" rename to "{table}_V{row_pick}"')
        else:
            connection.execute(f'create view "{quoted}" as select * from "{table}"')

    return change


def _made(name: str, changes: list[Change], damage: list[tuple[int, int, bytes]]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(small_export(name))
        for change in changes:
            with suppress(sqlite3.Error, OverflowError):
                change(connection)
        connection.commit()
        return mutated(connection.serialize(), damage)


#: An export's bytes: changed in its schema and values, and every third one damaged besides.
exports = st.builds(
    _made,
    st.sampled_from(SOURCES),
    st.lists(pool(_change, 6000), max_size=8),
    st.one_of(st.just([]), st.just([]), byte_changes(12, in_place=True)),
)
