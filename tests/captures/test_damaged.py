"""Damaged and newer records: a row with a sentence each, no harm to others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import (
    Store,
    StoreError,
    UnknownCapture,
    UnreadableCapture,
)

from .conftest import assert_sentence, publish


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
    "schema -1": changed(schema=-1),
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
