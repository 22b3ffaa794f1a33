"""Full and read-only disks, damaged and newer records, hostile links: a sentence each, no harm to others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import (
    Record,
    Status,
    Store,
    StoreError,
    UnknownCapture,
    UnreadableCapture,
)

from .conftest import Disk, fill, publish


def assert_sentence(text: str | None, *parts: str) -> None:
    assert text is not None
    assert text[0].isupper()
    assert text.endswith(".")
    assert "Traceback" not in text
    for part in parts:
        assert part in text, text


def names(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


# Full


FULL = ("the disk is full", "ulimit -f")  # the second where no disk could be mounted


def assert_full(error: pytest.ExceptionInfo[StoreError]) -> None:
    assert_sentence(str(error.value), "JAXPROF_DIR")
    assert any(part in str(error.value) for part in FULL)


def test_a_full_disk_is_told_before_anything_is_measured(disk: Disk) -> None:
    store = Store(disk.place / "store")
    kept = publish(store)
    before = names(store.root)
    disk.exhaust()
    with pytest.raises(StoreError) as error:
        store.begin("trace", "x")
    assert_full(error)
    if disk.mounted:
        assert_sentence(store.problem(), FULL[0])
        assert store.list().problems == [store.problem()]
    assert [row.record for row in store.list().rows] == [kept]
    disk.relieve()
    assert names(store.root) == before
    assert store.problem() is None
    publish(store, "again")


def test_a_disk_that_fills_up_meanwhile_loses_that_capture_only(disk: Disk) -> None:
    store = Store(disk.place / "store")
    kept = publish(store)
    before = names(store.root)
    draft = store.begin("trace", "x")
    fill(draft)
    disk.exhaust()
    with pytest.raises(StoreError) as error:
        draft.publish(status=Status.OK, cell="x" * 60_000)
    assert_full(error)
    assert "nothing of it was kept" in str(error.value)
    assert names(store.root) == before
    assert [row.record for row in store.list().rows] == [kept]


def test_on_a_full_disk_nothing_is_lost_and_captures_can_be_deleted(disk: Disk) -> None:
    store = Store(disk.place / "store")
    kept, other = publish(store), publish(store)
    before = names(store.root)
    disk.exhaust()
    with pytest.raises(StoreError) as error:
        store.update(kept.id, notes="x" * 60_000)
    assert_full(error)
    assert store.get(kept.id) == kept
    assert names(store.root) == before
    store.delete(other.id)
    assert [row.record for row in store.list().rows] == [kept]


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """The same as a full disk, in a process of its own; Python turns the signal into an error."""
    program = """
import resource, sys
from jupyterlab_jaxprof.captures import Status, Store, StoreError
store = Store(sys.argv[1])
draft = store.begin("trace", "x")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    draft.publish(status=Status.OK, cell="x" * 1000)
except StoreError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    (said,) = done.stdout.splitlines()
    assert_sentence(said, "a file would be larger than allowed (ulimit -f)", "'x'")
    assert Store(tmp_path).list().total == 0


# Read-only, or no store at all


def test_a_read_only_store_can_be_read(disk: Disk) -> None:
    store = Store(disk.place / "store")
    record = publish(store)
    disk.protect(writable=False)
    reason = "read-only" if disk.mounted else "no permission"
    assert_sentence(store.problem(), reason, "JAXPROF_DIR")
    for attempt in (
        lambda: store.begin("trace", "x"),
        lambda: store.update(record.id, name="x"),
        lambda: store.delete(record.id),
    ):
        with pytest.raises(StoreError) as error:
            attempt()
        assert_sentence(str(error.value), reason, str(store.root))
    page = store.list()
    assert [row.record for row in page.rows] == [record]
    assert page.problems == [store.problem()]
    with store.open(record.id, record.files[0].path) as file:
        assert len(file.read()) == 1000
    disk.protect(writable=True)
    assert store.problem() is None
    store.delete(record.id)


def make_file(place: Path) -> None:
    place.write_text("mine")


def make_dangling(place: Path) -> None:
    place.symlink_to(place.with_name("nowhere"))


def make_circle(place: Path) -> None:
    place.symlink_to(place)


@pytest.mark.parametrize("below", ["", "captures", "partial"])
@pytest.mark.parametrize("obstacle", [make_file, make_dangling, make_circle])
def test_something_else_is_in_the_way(tmp_path: Path, below: str, obstacle: Any) -> None:
    root = tmp_path / "store"
    place = root / below
    place.parent.mkdir(exist_ok=True)
    obstacle(place)
    store = Store(root)
    assert_sentence(store.problem(), str(root), "JAXPROF_DIR")
    with pytest.raises(StoreError) as error:
        store.begin("trace", "x")
    assert_sentence(str(error.value), str(root))
    page = store.list()
    assert (page.rows, page.total) == ([], 0)
    assert page.problems == [store.problem()]
    assert place.is_symlink() or place.read_text() == "mine"


def test_a_store_below_a_file(tmp_path: Path) -> None:
    make_file(tmp_path / "file")
    for place in (tmp_path / "file" / "store", tmp_path / ("x" * 300)):
        store = Store(place)
        assert_sentence(store.problem(), str(place))
        assert store.version() == 0.0
        with pytest.raises(StoreError) as error:
            store.begin("trace", "x")
        assert_sentence(str(error.value), str(place))
        with pytest.raises(StoreError) as error:
            Store.begin_in(place, "trace", "x")
        assert_sentence(str(error.value), "--dir")


# Damaged and newer records


def changed(**changes: object) -> Any:
    return lambda content: json.dumps(json.loads(content) | changes).encode()


DAMAGE: dict[str, Any] = {
    "empty": lambda _: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "null bytes": lambda content: b"\0" * len(content),
    "not JSON": lambda _: b"hello",
    "not UTF-8": lambda content: content.replace(b"run", b"\xff\xfe"),
    "a list": lambda _: b"[]",
    "deep": lambda _: b"[" * 100_000,
    "deep object": lambda _: b'{"a":' * 100_000,
    "huge number": lambda content: content.replace(b'"schema": 1', b'"schema": 1' + b"0" * 5000),
    "huge": lambda content: content + b" " * (17 * 1024 * 1024),
    "no schema": changed(schema=None),
    "schema true": changed(schema=True),
    "schema 0": changed(schema=0),
    "other id": changed(id="20260101-000000-000-abcdef"),
    "no id": changed(id=None),
    "name a number": changed(name=3),
    "no status": changed(status=None),
    "unknown status": changed(status="great"),
    "created": changed(created="yesterday"),
    "files an object": changed(files={}),
    "files of text": changed(files=["a"]),
    "file outside": changed(files=[{"path": "../x", "size_bytes": 1, "role": "xplane"}]),
    "file absolute": changed(files=[{"path": "/etc/passwd", "size_bytes": 1, "role": "xplane"}]),
    "file null": changed(files=[{"path": "a\0b", "size_bytes": 1, "role": "xplane"}]),
    "negative size": changed(files=[{"path": "a", "size_bytes": -1, "role": "xplane"}]),
    "size a text": changed(files=[{"path": "a", "size_bytes": "1", "role": "xplane"}]),
    "size beyond all": changed(files=[{"path": "a", "size_bytes": 10**400, "role": "xplane"}]),
    "count beyond all": changed(summary={"steps": {"count": 10**400}}),
    "half a character": changed(kind="\ud800", name="\udfff", status="x"),
    "newer, half a character": changed(kind="\ud800", name="\udfff", schema=2),
    "notices": changed(notices=[1]),
    "findings": changed(findings=["x"]),
    "pinned a text": changed(pinned="yes"),
    "run elsewhere": changed(xprof_run="../../etc"),
    "run a number": changed(xprof_run=3),
    "steps a list": changed(summary={"steps": []}),
    "headline a text": changed(summary={"headline": "fast"}),
    "median a text": changed(summary={"steps": {"median_ms": "1"}}),
    "durations of text": changed(summary={"steps": {"durations_ms": ["1"]}}),
    "wall a text": changed(summary={"wall_ms": "1"}),
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of three captures; a test that damages one mends it again."""
    store = Store(tmp_path_factory.mktemp("three"))
    for _ in range(3):
        publish(store, "run")
    store.list()
    return store


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_a_row_with_a_sentence(three: Store, damage: str) -> None:
    first, broken, last = (row.record for row in three.list().rows)
    path = three.captures_dir / broken.id / "capture.json"
    whole = path.read_bytes()
    content = DAMAGE[damage](whole)
    assert content != whole
    path.write_bytes(content)
    try:
        for reader in (three, Store(three.root, size_limit_bytes=1)):
            page = reader.list()
            rows = {row.id: row for row in page.rows}
            assert (page.total, page.problems) == (3, [])
            assert [rows[record.id].record for record in (first, last)] == [first, last]
            assert rows[broken.id].record is None
            assert_sentence(rows[broken.id].problem)
            assert json.loads(json.dumps(page.to_json(), allow_nan=False).encode("utf-8"))["total"] == 3
            assert reader.list(text=broken.id).matched == 1
        for attempt in (three.get, lambda capture_id: three.update(capture_id, name="x")):
            with pytest.raises(UnreadableCapture) as error:
                attempt(broken.id)
            assert_sentence(str(error.value), broken.id)
        assert path.read_bytes() == content
        with pytest.raises(StoreError):
            three.open(broken.id, broken.files[0].path)
    finally:
        path.write_bytes(whole)
    assert three.list().rows[1].record == broken


def test_a_damaged_capture_can_be_deleted(store: Store) -> None:
    record, broken = publish(store), publish(store)
    (store.captures_dir / broken.id / "capture.json").write_bytes(b"\0" * 100)
    assert {row.problem is None for row in store.list().rows} == {True, False}
    store.delete(broken.id)
    assert [row.record for row in store.list().rows] == [record]


def test_damage_that_only_json_can_show_is_mended(store: Store) -> None:
    record = publish(store)
    path = store.captures_dir / record.id / "capture.json"
    data = json.loads(path.read_text())
    data |= {"name": "half \ud800 pair", "summary": {"wall_ms": 1e308, "steps": {"count": 2, "median_ms": 7}}}
    path.write_text(json.dumps(data).replace("1e+308", "1e999").replace("7}", "NaN}"))
    (row,) = store.list().rows
    assert row.problem is None
    assert json.dumps(row.to_json(), allow_nan=False).encode("utf-8")
    assert row.to_json()["summary"] == {"wall_ms": None, "steps": {"count": 2, "median_ms": None}}


def test_a_newer_record_is_listed_with_the_way_out(store: Store) -> None:
    record, other = publish(store, "from the future"), publish(store)
    path = store.captures_dir / record.id / "capture.json"
    path.write_bytes(changed(schema=2, status=["new"], files={"new": 1}, pinned=True)(path.read_bytes()))
    row = next(row for row in store.list().rows if row.id == record.id)
    assert (row.name, row.kind, row.record) == ("from the future", "trace", None)
    assert_sentence(row.problem, "schema 2", "pip install --upgrade jupyterlab-jaxprof")
    assert row.to_json()["name"] == "from the future"
    assert store.list(text="future").matched == 1
    with pytest.raises(UnreadableCapture, match="upgrade"):
        store.update(record.id, name="x")
    # It is pinned, as far as we can tell.
    assert Store(store.root, size_limit_bytes=1).list().over_limit.ids == (other.id,)


def test_a_missing_record_and_strange_neighbours(store: Store, tmp_path: Path) -> None:
    record, bare = publish(store), publish(store)
    (store.captures_dir / bare.id / "capture.json").unlink()
    (store.captures_dir / "mine").mkdir()
    (store.captures_dir / "20260101-000000-000-abcdef").write_text("a file")
    (store.captures_dir / "20260101-000000-000-abcde0").symlink_to(tmp_path)
    (store.captures_dir / "20260101-000000-000-ABCDEF").mkdir()
    rows = {row.id: row for row in store.list().rows}
    assert set(rows) == {record.id, bare.id}
    assert_sentence(rows[bare.id].problem, "has no capture.json")
    for name in ("mine", "20260101-000000-000-abcdef", "20260101-000000-000-abcde0"):
        with pytest.raises(UnknownCapture):
            store.delete(name)
        assert os.path.lexists(store.captures_dir / name)


def test_a_record_that_is_a_link_or_no_file(store: Store, tmp_path: Path) -> None:
    linked, piped = publish(store), publish(store)
    (tmp_path / "elsewhere.json").write_bytes((store.captures_dir / linked.id / "capture.json").read_bytes())
    for record in (linked, piped):
        (store.captures_dir / record.id / "capture.json").unlink()
    (store.captures_dir / linked.id / "capture.json").symlink_to(tmp_path / "elsewhere.json")
    os.mkfifo(
        store.captures_dir / piped.id / "capture.json"
    )  # nobody writes: opening it plainly would wait forever
    for row in store.list().rows:
        assert_sentence(row.problem, "is not a plain file")


# Files


def test_only_listed_plain_files_can_be_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.xplane.pb").write_text("secret")
    with store.begin("trace", "x") as draft:
        fill(draft)
        for name in ("link.pb", "pipe.pb", "sub/x.xplane.pb", "folder.pb", "ünï + #%20.pb"):
            path = draft.directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        record = draft.publish(status=Status.OK)
    directory = store.directory(record.id)
    for name in ("link.pb", "pipe.pb", "folder.pb", "sub/x.xplane.pb"):
        (directory / name).unlink()
    (directory / "link.pb").symlink_to(tmp_path / "secret" / "x.xplane.pb")
    os.mkfifo(directory / "pipe.pb")
    (directory / "folder.pb").mkdir()
    (directory / "sub").rmdir()
    (directory / "sub").symlink_to(tmp_path / "secret")
    (directory / "unlisted").write_text("x")
    with store.open(record.id, "ünï + #%20.pb") as file:
        assert file.read() == b"x"
    session = "plugins/profile/x/vm.xplane.pb"
    store.open(record.id, session).close()
    for path in (
        "link.pb", "pipe.pb", "folder.pb", "sub/x.xplane.pb", "unlisted", "capture.json", "", ".", "plugins",
        f"../{record.id}/{session}", f"./{session}", f"/{session}", f"{directory}/{session}", f"{session}\0",
        session.replace("/", "//"), f"{session}/", "../../../secret/x.xplane.pb", "%2e%2e/x",
    ):  # fmt: skip
        with pytest.raises(UnknownCapture) as error:
            store.open(record.id, path)
        assert_sentence(str(error.value), record.id)


def test_links_are_never_published(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret.xplane.pb").write_text("secret")
    with store.begin("trace", "x") as draft:
        fill(draft)
        (draft.directory / "secret.xplane.pb").symlink_to(tmp_path / "secret.xplane.pb")
        (draft.directory / "all").symlink_to(tmp_path)
        record = draft.publish(status=Status.OK)
    assert [file.path for file in record.files] == ["plugins/profile/x/vm.xplane.pb"]
    store.delete(record.id)
    assert (tmp_path / "secret.xplane.pb").read_text() == "secret"


def test_a_capture_whose_files_are_gone_or_cut_short_says_so_and_stays_usable(store: Store) -> None:
    def write(name: str) -> tuple[Record, list[Path]]:
        with store.begin("trace", name) as draft:
            fill(draft)
            session = draft.directory / "plugins" / "profile" / draft.session
            (session / "vm.trace.json.gz").write_bytes(b"x" * 100)
            record = draft.publish(status=Status.OK)
        return record, [store.directory(record.id) / file.path for file in record.files]

    gone, cut, whole, both = (write(name) for name in ("gone", "cut", "whole", "both"))
    for path in gone[1]:
        path.unlink()
    for record_and_paths in (cut, both):
        os.truncate(record_and_paths[1][0], 10)
    both[1][1].unlink()
    (whole[1][0].parent / "vm.cache").write_bytes(b"XProf's own")
    rows = {row.name: row for row in store.list().rows}
    problems = {name: row.problem for name, row in rows.items()}
    assert problems["whole"] is None
    assert str(problems["gone"]).startswith("2 of its 2 files are missing")
    assert str(problems["cut"]).startswith("1 of its 2 files is no longer of the size that was written")
    assert str(problems["both"]).count("1 of its 2 files is ") == 2
    assert all(row.record is not None and row.to_json()["schema"] == 1 for row in rows.values())
    assert rows["gone"].to_json()["status"] == "ok"
    assert store.update(gone[0].id, name="renamed").name == "renamed"
    store.delete(gone[0].id)
    assert store.list().total == 3
