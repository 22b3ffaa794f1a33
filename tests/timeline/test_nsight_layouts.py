"""Exports of other versions of nsys, cut short or damaged, and files that are no exports at all."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline.model import ReadError, Timeline
from jupyterlab_jaxprof.timeline.nsight import read_export
from jupyterlab_jaxprof.timeline.nsight_database import Database
from jupyterlab_jaxprof.timeline.nsight_pages import Column, PageFile, Undecodable
from tests.support.captures import content, unpacked, unpacked_to

NAMES = ("nsys_cold", "nsys_dp2", "nsys_eager", "nsys_gpu_bound", "nsys_mlp_graphmode", "nsys_two_processes")


@contextmanager
def changed(tmp_path: Path, name: str = "nsys_cold") -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A copy of an export, to be changed by SQL."""
    path = unpacked_to(tmp_path, f"{name}.sqlite")
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as connection:
        yield path, connection
        connection.commit()


def rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    connection.execute(f"alter table {old} rename to {new}")


def keep_columns(connection: sqlite3.Connection, table: str, columns: str) -> None:
    """Give a table fewer columns, in another order."""
    connection.execute(f"create table other as select {columns} from {table}")
    connection.execute(f"drop table {table}")
    connection.execute(f"alter table other rename to {table}")


def same(one: Timeline, other: Timeline) -> bool:
    """Whether two timelines tell the same, however their texts are numbered."""

    def texts(read: Timeline, numbers: np.ndarray) -> list[str]:
        return [read.text(number) for number in numbers]

    return (
        all(
            texts(one, getattr(one.ops, column)) == texts(other, getattr(other.ops, column))
            for column in ("name", "module", "hlo_op", "scope", "source")
        )
        and np.array_equal(one.ops.start_ns, other.ops.start_ns)
        and np.array_equal(one.ops.duration_ns, other.ops.duration_ns)
        and np.array_equal(one.calls.start_ns, other.calls.start_ns)
        and texts(one, one.ranges.name) == texts(other, other.ranges.name)
        and np.array_equal(one.ranges.start_ns, other.ranges.start_ns)
        and np.array_equal(one.steps.number, other.steps.number)
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_decoded_pages_are_what_sqlite_reads(name: str) -> None:
    """Every integer column of every table, NULLs included."""
    path = unpacked(f"{name}.sqlite")
    pages = PageFile(path)
    decoded = 0
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute(
            "select name, rootpage from sqlite_master where type = 'table'"
        ).fetchall()
        for table, root in tables:
            info = connection.execute(f"pragma table_info({table})").fetchall()
            integers = [row for row in info if row[2].upper().startswith("INT") and not row[5]]
            if not integers:
                continue
            fields = ", ".join(f"ifnull({row[1]}, -7)" for row in integers)
            expected = connection.execute(f"select {fields} from {table} order by rowid").fetchall()
            found, whole = pages.columns(root, [Column(row[0], -7) for row in integers])
            assert whole
            assert [
                tuple(row) for row in zip(*(column.tolist() for column in found), strict=True)
            ] == expected
            decoded += len(expected)
    assert decoded > 1000


@pytest.mark.parametrize("name", NAMES)
def test_the_decoded_texts_are_what_sqlite_reads(name: str, tmp_path: Path) -> None:
    with changed(tmp_path, name) as (path, connection):
        rows = connection.execute("select rowid, text from NVTX_EVENTS").fetchall()
        for number, _text in rows[: 200 * (name != "nsys_eager")]:  # of every length, in any letters
            text = ("é" * (number % 3) + "name of a range " * 9)[: number % 120]
            connection.execute("update NVTX_EVENTS set text = ? where rowid = ?", (text, number))
        expected = [
            text for _, text in connection.execute("select rowid, text from NVTX_EVENTS order by rowid")
        ]
    database = Database(path)
    numbers, texts = database.texts("NVTX_EVENTS", "text")
    assert [None if number < 0 else texts[number] for number in numbers] == expected


@pytest.mark.parametrize(
    "change",
    [
        "update {t} set streamId = 1.5",  # no integer
        "update {t} set end = -9223372036854775808; update {t} set start = 1 << 62 where rowid = 2",
        "alter table {t} add column wide integer; update {t} set wide = zeroblob(9000)",
    ],
)
def test_what_numpy_can_not_decode_sqlite_reads(tmp_path: Path, change: str) -> None:
    with changed(tmp_path) as (path, connection):
        connection.executescript(change.format(t="CUPTI_ACTIVITY_KIND_KERNEL"))
    database = Database(path)
    names = ("start", "end", "streamId", "wide")
    read = database.integers("CUPTI_ACTIVITY_KIND_KERNEL", *names)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select start, end, cast(streamId as int) from CUPTI_ACTIVITY_KIND_KERNEL")
        assert rows.fetchall() == list(zip(*(read[name].tolist() for name in names[:3]), strict=True))


def as_2022(connection: sqlite3.Connection) -> None:
    """What the schema 3.0 lacks or calls otherwise (as `nsys export --lazy=false` of 2022.4.2 shows)."""
    rename(connection, "META_DATA_EXPORT", "EXPORT_META_DATA")
    rename(connection, "CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
    for table in ("DIAGNOSTIC_EVENT", "TARGET_INFO_CUDA_DEVICE", "NVTX_PAYLOAD_SCHEMAS"):
        connection.execute(f"drop table {table}")
    connection.execute("alter table CUPTI_ACTIVITY_KIND_KERNEL drop column greenContextId")


def with_suffixes(connection: sqlite3.Connection) -> None:
    for table in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
        rename(connection, table, f"{table}_V3")
        connection.execute(f"create table {table} (start integer)")


def with_texts_in_rows(connection: sqlite3.Connection) -> None:
    connection.execute(
        "update NVTX_EVENTS set text = ifnull(text, (select value from StringIds where id = textId))"
    )
    connection.execute("update NVTX_EVENTS set textId = null")


def with_other_columns(connection: sqlite3.Connection) -> None:
    keep_columns(
        connection,
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "77 as new, demangledName, graphNodeId, globalPid, correlationId, streamId, deviceId, end, start",
    )


def test_an_export_with_a_log_leaves_no_files_beside_it(tmp_path: Path) -> None:
    with changed(tmp_path / "x y#1%41") as (path, connection):
        connection.execute("pragma journal_mode = wal")
        connection.execute("update StringIds set value = 'changed' where id = 1")
        connection.commit()
        assert len(list(path.parent.iterdir())) == 3
        assert same(read_export(path), read_export(unpacked("nsys_cold.sqlite")))
    assert same(read_export(path), read_export(unpacked("nsys_cold.sqlite")))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("change", [as_2022, with_suffixes, with_texts_in_rows, with_other_columns])
def test_other_layouts_are_read_the_same(
    tmp_path: Path, change: Callable[[sqlite3.Connection], None]
) -> None:
    with changed(tmp_path) as (path, connection):
        change(connection)
    read = read_export(path)
    assert read.notices == ()
    assert same(read, read_export(unpacked("nsys_cold.sqlite")))


def test_an_update_of_a_whole_graph_tells_its_operations_too(tmp_path: Path) -> None:
    """As when the graph was made before the recording: the third of the four steps sets all its 21 nodes."""
    with changed(tmp_path) as (path, connection):
        connection.execute("drop table CUDA_GRAPH_NODE_EVENTS")
    assert same(read_export(path), read_export(unpacked("nsys_cold.sqlite")))
    with changed(tmp_path / "without") as (path, connection):
        connection.execute("drop table CUDA_GRAPH_NODE_EVENTS")
        connection.execute(
            "delete from CUPTI_ACTIVITY_KIND_RUNTIME where nameId in "
            "(select id from StringIds where value like 'cuGraphExecKernelNodeSetParams%') and rowid % 7 = 0"
        )
    read = read_export(path)
    named = {
        read.text(op): read.text(scope) for op, scope in zip(read.ops.hlo_op, read.ops.scope, strict=True)
    }
    assert "gemm_fusion_dot.6" not in named
    # Of what several operations share only what they have in common is told.
    assert named["gemm_fusion_dot.5"] == "jit(train_step)"


@pytest.mark.parametrize(
    ("tables", "blind", "empty"),
    [
        (("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"), {"graphs"}, "ops"),
        (("CUPTI_ACTIVITY_KIND_RUNTIME",), set(), "calls"),
        (("NVTX_EVENTS",), {"compiles"}, "ranges"),
        (("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"), {"compiles", "host"}, "steps"),
        (
            ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"),
            {"devices"},
            "ops",
        ),
        (("StringIds",), {"compiles"}, "steps"),
        (("TARGET_INFO_GPU", "ThreadNames", "ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME"), set(), ""),
    ],
)
def test_tables_that_are_not_there(
    tmp_path: Path, tables: tuple[str, ...], blind: set[str], empty: str
) -> None:
    with changed(tmp_path) as (path, connection):
        for table in tables:
            connection.execute(f"drop table {table}")
    read = read_export(path)
    assert read.blind == {"allocator", "python"} | blind
    assert not empty or not len(getattr(read, empty))
    # nsys leaves out what has no rows, but there are always texts
    assert read.files[0].complete == ("StringIds" not in tables)


def test_a_newer_schema_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    with changed(tmp_path) as (path, connection):
        connection.execute("update META_DATA_EXPORT set value = '4.1.0' where name = 'EXPORT_SCHEMA_VERSION'")
        connection.execute("alter table CUPTI_ACTIVITY_KIND_MEMCPY rename column start to startNs")
    read = read_export(path)
    assert "schema 4; known here is 3" in read.notices[0]
    assert "CUPTI_ACTIVITY_KIND_MEMCPY has no times that are known here" in read.notices[1]
    assert not read.files[0].complete
    assert len(read.ops) == 84


def test_ranges_that_cross_are_on_a_lane_of_their_own(tmp_path: Path) -> None:
    with changed(tmp_path) as (path, connection):
        (start, end) = connection.execute(
            "select start, end from NVTX_EVENTS where textId in "
            "(select id from StringIds where value = 'load_data') order by start desc"
        ).fetchone()
        connection.execute(
            "update NVTX_EVENTS set start = ?, end = ? where eventType = 60", (start + 9, end + 9)
        )
    read = read_export(path)
    lanes = [thread for thread in read.threads if "cross" in thread.name]
    assert len(lanes) == 1
    on_it = read.ranges.take(read.ranges.thread == read.threads.index(lanes[0]))
    assert [read.text(name) for name in on_it.name] == ["epoch"]
    assert read.steps.number.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["step 0", "step 1", "step 2"], ("step", [0, 1, 2])),
        (["step=3", "step=4"], ("step", [3, 4])),
        (["train_step[7]", "train_step[8]"], ("train_step", [7, 8])),
        (["Iteration 10/", "Iteration 11"], ("Iteration", [11])),
        (["train 4"], ("train", [4])),
        (["layer 1"], None),  # one range of another name is no step
        (["12", "13"], None),
        (["load", "save"], None),
    ],
)
def test_names_of_steps(tmp_path: Path, names: list[str], expected: tuple[str, list[int]] | None) -> None:
    with changed(tmp_path) as (path, connection):
        connection.execute("delete from NVTX_EVENTS where domainId = 2 and eventType in (59, 60)")
        (thread,) = connection.execute("select globalTid from NVTX_EVENTS where eventType = 75").fetchone()
        for number, name in enumerate(names):
            connection.execute(
                "insert into NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) "
                "values (?, ?, 59, ?, ?, 2)",
                (number * 1000, number * 1000 + 900, name, thread),
            )
    read = read_export(path)
    found = (read.text(read.steps.name[0]), read.steps.number.tolist()) if len(read.steps) else None
    assert found == expected


def test_steps_within_an_epoch_are_the_steps(tmp_path: Path) -> None:
    with changed(tmp_path) as (path, connection):
        connection.execute("update StringIds set value = 'epoch 1' where value = 'capture'")
    read = read_export(path)
    assert {read.text(name) for name in read.steps.name} == {"train_step"}


def test_what_is_no_export_is_refused_in_a_sentence(tmp_path: Path) -> None:
    def refused(body: bytes | None, words: str) -> None:
        path = tmp_path / "x.sqlite"
        path.unlink(missing_ok=True)
        if body is not None:
            path.write_bytes(body)
        with pytest.raises(ReadError) as caught:
            read_export(path)
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert str(caught.value).endswith((".", "nsys-rep"))

    refused(None, "can't be read: No such file")
    refused(b"", "is empty")
    refused(b"NVIDIA Tegra Profiler Report 1.", "is no SQLite database")
    refused(b"SQLite format 3\0", "damaged")
    refused(b"SQLite format 3\0" + bytes(5000), "damaged")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        connection.execute("create table people (name text)")
    refused((tmp_path / "other.sqlite").read_bytes(), "not the export of an Nsight Systems report")


def test_an_export_that_is_being_written_is_refused(tmp_path: Path) -> None:
    with changed(tmp_path) as (path, connection):
        connection.execute("begin exclusive")
        with pytest.raises(ReadError, match="is locked: another program is writing it"):
            read_export(path)
    (tmp_path / f"{path.name}-journal").write_bytes(b"x")
    with pytest.raises(ReadError, match="still being written, or its writing was cut off"):
        read_export(path)


def read_or_refuse(path: Path) -> Timeline | None:
    """Read a damaged file; None where it is refused in a sentence that names it."""
    with contextlib.suppress(ReadError):
        return read_export(path)
    with pytest.raises(ReadError, match=re.escape(str(path))):
        read_export(path)
    return None


@pytest.mark.parametrize("percent", range(2, 100, 7))
@pytest.mark.parametrize("name", ["nsys_cold", "nsys_eager"])
def test_an_export_that_is_cut_short_gives_what_is_left(tmp_path: Path, name: str, percent: int) -> None:
    whole = content(f"{name}.sqlite")
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[: len(whole) * percent // 100])
    read = read_or_refuse(path)
    if read is None:
        return
    complete = read_export(unpacked(f"{name}.sqlite"))
    assert not read.files[0].complete
    assert "could not be read to its end" in " ".join(read.notices)
    assert set(read.ops.start_ns.tolist()) <= set(complete.ops.start_ns.tolist())
    assert len(read.ranges) <= len(complete.ranges)


@pytest.mark.parametrize("seed", range(34))
def test_damage_anywhere_is_survived(tmp_path: Path, seed: int) -> None:
    """Bytes changed or blocks of zeros: what comes out is a timeline or a sentence, never another error."""
    chance = random.Random(seed)
    body = bytearray(content("nsys_cold.sqlite"))
    if seed % 2:
        for _ in range(chance.choice([1, 20, 400])):
            body[chance.randrange(100, len(body))] = chance.randrange(256)
    else:
        begin = chance.randrange(0, len(body))
        body[begin : begin + 8192] = bytes(len(body[begin : begin + 8192]))
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(body)
    read = read_or_refuse(path)
    if read is not None:
        assert len(read.texts) >= 1
        assert np.all(read.ops.duration_ns >= 0)
        assert np.all(np.diff(read.ops.start_ns) >= 0)


def test_pages_that_go_in_circles_end(tmp_path: Path) -> None:
    body = bytearray(content("nsys_eager.sqlite"))
    with closing(sqlite3.connect(unpacked("nsys_eager.sqlite"))) as connection:
        query = "select rootpage from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_RUNTIME'"
        (root,) = connection.execute(query).fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    place = (root - 1) * size
    assert body[place] == 5  # an interior page: let all its children be itself
    cells = int.from_bytes(body[place + 3 : place + 5], "big")
    for number in range(cells):
        cell = int.from_bytes(body[place + 12 + 2 * number : place + 14 + 2 * number], "big")
        body[place + cell : place + cell + 4] = root.to_bytes(4, "big")
    body[place + 8 : place + 12] = root.to_bytes(4, "big")
    path = tmp_path / "circle.sqlite"
    path.write_bytes(body)
    with pytest.raises(Undecodable):
        PageFile(path).columns(root, [Column(0)])
