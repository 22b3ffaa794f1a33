"""The store used as it should be: begin, publish, list, change, delete, and who may read what."""

from __future__ import annotations

import json
import os
import stat
import time
from itertools import pairwise
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import (
    Capture,
    InvalidValue,
    Status,
    Store,
    StoreError,
    UnknownCapture,
    is_id,
    session_slug,
)
from jupyterlab_jaxprof.captures import draft as draft_module

from .conftest import fill, publish


def ids(store: Store, **filters: object) -> list[str]:
    return [row.id for row in store.list(**filters).rows]


def test_a_published_capture_is_whole_and_where_xprof_looks(store: Store) -> None:
    with store.begin("trace", "première étape/1") as draft:
        fill(draft, 1234)
        (draft.directory / "notes.txt").write_text("x")
        assert draft.directory.parent.name == "partial"
        assert store.list().total == 0
        record = draft.publish(
            status=Status.PARTIAL, reason="Some events are missing.", notebook="a/b.ipynb", magic="--steps 2",
            cell="x = 1", environment={"jax": "0.10"}, summary={"wall_ms": 1.5}, notices=["A notice."],
        )  # fmt: skip
    assert is_id(record.id)
    assert record.xprof_run == f"{record.id}/premiere-etape-1"
    assert (
        store.captures_dir / record.id / "plugins/profile/premiere-etape-1/vm.xplane.pb"
    ).stat().st_size == 1234
    assert [(file.path, file.size_bytes, file.role) for file in record.files] == [
        ("notes.txt", 1, "other"),
        ("plugins/profile/premiere-etape-1/vm.xplane.pb", 1234, "xplane"),
    ]
    assert Store(store.root).get(record.id) == record
    assert sorted(path.name for path in (store.captures_dir / record.id).iterdir()) == [
        "capture.json", "notes.txt", "plugins",
    ]  # fmt: skip
    assert list((store.root / "partial").iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_the_user_can_read_whatever_the_umask(store: Store, umask: int) -> None:
    before = os.umask(umask)
    try:
        record = publish(store)
        store.update(record.id, pinned=True)
    finally:
        os.umask(before)
    for place in (store.root, *store.root.rglob("*")):
        expected = 0o700 if place.is_dir() else 0o600
        assert stat.S_IMODE(place.stat().st_mode) == expected, place


@pytest.mark.parametrize("status", [Status.FAILED, Status.INTERRUPTED])
def test_a_run_that_went_wrong_is_a_capture_too(store: Store, status: Status) -> None:
    with store.begin("trace", "bad") as draft:
        record = draft.publish(status=status, reason="The cell raised ValueError.")
    assert record.xprof_run is None
    (row,) = store.list().rows
    assert (row.record, row.problem) == (record, None)


def test_what_is_not_published_leaves_nothing(store: Store) -> None:
    draft = store.begin("trace", "x")

    def interrupted() -> None:
        with draft:
            fill(draft)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list((store.root / "partial").iterdir()) == []
    with pytest.raises(StoreError, match="start another"):
        draft.publish(status=Status.OK)
    assert store.list().total == 0


def test_an_interrupt_right_after_the_rename_keeps_the_capture(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        if path.name == ".owner":
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish(store)
    (row,) = store.list().rows
    assert row.problem is None
    assert (store.directory(row.id) / row.record.files[0].path).stat().st_size == 1000


def test_list_pages_filters_and_searches(store: Store) -> None:
    made = [
        publish(store, "Über-step", notebook="a.ipynb", cell="train(params)"),
        publish(store, "second run", notebook="b.ipynb", magic="--steps 3"),
        publish(store, "third", notebook="a.ipynb"),
    ]
    newest_first = sorted((record.id for record in made), reverse=True)
    assert ids(store) == newest_first
    assert ids(store, offset=1, limit=1) == newest_first[1:2]
    assert ids(store, offset=99) == ids(store, limit=0) == []
    page = store.list(notebook="a.ipynb", limit=1)
    assert (page.matched, page.total, len(page.rows)) == (2, 3, 1)
    assert (page.kinds, page.notebooks) == (["trace"], ["a.ipynb", "b.ipynb"])
    assert store.list(kind="nsys").matched == 0
    assert (
        ids(store, text="ÜBER") == ids(store, text="u\u0308ber step") == [made[0].id]
    )  # however é is written
    assert ids(store, text="TRAIN(") == [made[0].id]
    assert ids(store, text="run second") == [made[1].id]
    assert ids(store, text="second third") == []
    store.update(made[2].id, notes="compare with the baseline")
    assert ids(store, text="baseline") == [made[2].id]


def test_only_name_notes_and_pin_change(store: Store) -> None:
    record = publish(store, summary={"wall_ms": 2.0})
    changed = store.update(record.id, name="  neuer Name 🚀 ", notes="line\nline", pinned=True)
    assert (changed.name, changed.notes, changed.pinned) == ("neuer Name 🚀", "line\nline", True)
    assert store.get(record.id) == changed
    assert changed.files == record.files
    assert changed.xprof_run == record.xprof_run
    assert store.update(record.id, pinned=False).notes == "line\nline"


def test_a_change_keeps_what_another_version_wrote_into_the_record(store: Store) -> None:
    record = publish(store)
    path = store.captures_dir / record.id / "capture.json"
    data = json.loads(path.read_text())
    data["colour"] = {"of": ["the", "future"]}
    data["files"][0]["sha256"] = "abc"
    path.write_text(json.dumps(data))
    assert store.update(record.id, pinned=True).pinned
    assert json.loads(path.read_text()) == data | {"pinned": True}


@pytest.mark.parametrize(
    "name", ["", "   ", "a\nb", "a\u202eb", "a\x00", "a\x1b[31m", "\u2028", "\ud800", "x" * 201, 7, None]
)
def test_bad_names_get_a_sentence_and_change_nothing(store: Store, name: object) -> None:
    record = publish(store)
    for attempt in (lambda: store.begin("trace", name), lambda: Store.begin_in(store.root, "trace", name)):
        with pytest.raises(InvalidValue, match=r"\.$"):
            attempt()
    if name is not None:
        with pytest.raises(InvalidValue, match=r"\.$"):
            store.update(record.id, name=name, pinned=True)
    assert store.get(record.id) == record
    assert list((store.root / "partial").iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 200, "日本語", "a/b", "../..", "<script>", "👩‍👩‍👧", "%20+#é", "-rf"])
def test_any_visible_name_is_allowed(store: Store, name: str) -> None:
    record = publish(store, name)
    assert record.name == name
    session = session_slug(name)
    assert session not in (".", "..")
    assert record.xprof_run == f"{record.id}/{session}"
    assert store.get(record.id).name == name


def test_bad_notes_and_pins_are_refused(store: Store) -> None:
    record = publish(store)
    for changes in ({"notes": "a\0"}, {"notes": 3}, {"notes": "x" * 70_000}, {"pinned": "yes"}):
        with pytest.raises(InvalidValue, match=r"\.$"):
            store.update(record.id, **changes)
    assert store.get(record.id) == record


@pytest.mark.parametrize(
    "capture_id", ["", ".", "..", "../x", "20260101-000000-000-abcdef", "x\0", "/etc", "partial"]
)
def test_unknown_captures_get_a_sentence(store: Store, capture_id: str) -> None:
    publish(store)
    for attempt in (store.get, store.directory, store.delete, store.disk_bytes, store.update):
        with pytest.raises(UnknownCapture, match="no capture"):
            attempt(capture_id)
    assert store.list().total == 1


def test_delete_removes_every_byte(store: Store) -> None:
    record, other = publish(store), publish(store)
    with store.open(record.id, record.files[0].path) as file:
        store.delete(record.id)
        assert len(file.read()) == 1000  # a download that has begun ends well
    assert ids(store) == [other.id]
    assert not (store.captures_dir / record.id).exists()
    assert list((store.root / "partial").iterdir()) == []
    with pytest.raises(UnknownCapture):
        store.delete(record.id)


def test_every_change_makes_a_greater_version(store: Store) -> None:
    assert store.version() == 0.0
    record = publish(store)
    versions = [store.version()]
    for number in range(100):  # many within one tick of the kernel's clock
        store.update(record.id, notes=str(number))
        versions.append(store.version())
    store.delete(record.id)
    versions.append(store.version())
    assert all(before < after for before, after in pairwise(versions))


def test_caches_of_xprof_count_on_disk_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyterlab_jaxprof.captures.index._TRUSTED_S", 0)
    record = publish(store)
    session = store.directory(record.id) / "plugins/profile/run"
    past = time.time() - 3600
    os.utime(session, (past, past))
    before = store.list()
    (session / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"x" * 5000)
    after = store.list()
    assert after.rows[0].size_bytes == before.rows[0].size_bytes == 1000
    assert after.rows[0].disk_bytes == before.rows[0].disk_bytes + 5000 == store.disk_bytes(record.id)
    assert after.size_bytes == before.size_bytes + 5000 == after.rows[0].disk_bytes
    with (session / "ALL_HOSTS.op_stats_v2.pb").open("ab") as file:
        file.write(b"x" * 100)  # a cache that still grows leaves its directory's time as it is
    assert store.list().size_bytes == after.size_bytes + 100
    assert store.get(record.id).files == record.files


def test_the_oldest_unpinned_are_offered_and_nothing_is_deleted(store: Store) -> None:
    made = [publish(store, f"run {number}", size_bytes=10_000) for number in range(4)]
    made.sort(key=lambda record: record.id)
    store.update(made[0].id, pinned=True)
    assert store.list().over_limit.bytes == 0
    limited = Store(store.root, size_limit_bytes=25_000)
    offer = limited.list(limit=0).over_limit
    assert offer.bytes == limited.list().size_bytes - 25_000
    assert offer.ids == (made[1].id, made[2].id)
    assert limited.list().total == 4
    for capture_id in offer.ids:
        limited.delete(capture_id)
    assert limited.list().over_limit.bytes == 0
    assert ids(limited) == [made[3].id, made[0].id]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("", None),
        ("0", None),
        ("5000", 5000),
        ("2 GB", 2_000_000_000),
        ("1.5GiB", 3 * 2**29),
        ("many", "is no size"),
    ],
)
def test_the_limit_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, limit: int | str | None
) -> None:
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path))
    monkeypatch.setenv("JAXPROF_SIZE_LIMIT", text)
    store = Store.default()
    if isinstance(limit, str):
        assert limit in store.list().problems[0]
        publish(store)
    else:
        assert store.list().size_limit_bytes == limit
        assert store.list().problems == []


def test_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JAXPROF_DIR", "")
    assert Store.default().root == tmp_path / "data" / "jaxprof"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAXPROF_DIR", "~/my captures")
    assert Store.default().root == tmp_path / "my captures"


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    relative = Store("relative/store")
    monkeypatch.chdir("/")  # a notebook may change its directory
    for store in (
        relative,
        Store(tmp_path / "mit Leerzeichen é 日本"),
        Store("~/home"),
        Store(tmp_path / "link"),
    ):
        assert store.problem() is None
        record = publish(store)
        assert Store(store.root).get(record.id) == record
    assert (tmp_path / "relative" / "store" / "captures").is_dir()
    assert (tmp_path / "home" / "captures").is_dir()
    assert (tmp_path / "real" / "captures").is_dir()
    assert Store("~nobody-of-this-name/x").root == Path("/~nobody-of-this-name/x")


def test_a_capture_elsewhere_is_a_plain_directory(tmp_path: Path, store: Store) -> None:
    place = tmp_path / "my traces"
    before = os.umask(0o022)
    try:
        with Store.begin_in(place, "trace", "run") as draft:
            fill(draft)
            record = draft.publish(status=Status.OK)
    finally:
        os.umask(before)
    assert draft.directory == place / record.id
    assert [path.name for path in place.iterdir()] == [record.id]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (place / record.id).rglob("*") if path.is_file()}
    assert modes == {0o644}  # as other files of the user's own directories
    assert record.xprof_run == f"{record.id}/run"
    assert json.loads((place / record.id / "capture.json").read_text())["name"] == "run"
    assert store.list().total == 0


@pytest.mark.parametrize("where", ["", "captures", "partial"])
def test_no_later_capture_deletes_what_was_published_with_dir(store: Store, where: str) -> None:
    """Neither in a directory of one's own nor in those of a store, which hold the same kind of names."""
    publish(store)
    place = store.root / (where or "own")
    with Store.begin_in(place, "trace", "run") as draft:
        fill(draft)
        draft.publish(status=Status.OK)
    trash = place / f"trash-{draft.id}-0"
    trash.mkdir()
    past = time.time() - 7200
    before = sorted(path for path in place.iterdir() if path != trash or where != "partial")
    for path in place.iterdir():
        os.utime(path, (past, past))
    Store.begin_in(place, "trace", "another").discard()
    publish(store)
    assert set(before) <= set(place.iterdir())
    assert (draft.directory / "plugins" / "profile" / "run" / "vm.xplane.pb").is_file()


def test_what_was_given_up_is_swept_in_a_directory_of_ones_own_too(tmp_path: Path) -> None:
    with Store.begin_in(tmp_path, "trace", "run") as draft:
        trash = draft.trash
        trash.mkdir()
        os.utime(trash, (time.time() - 7200, time.time() - 7200))
    Store.begin_in(tmp_path, "trace", "another").discard()
    assert not trash.exists()


def test_capture_object(store: Store) -> None:
    record = publish(store, "run", summary={"steps": {"name": "s", "count": 3, "median_ms": 1.0}})
    capture = Capture(record, store.directory(record.id))
    assert capture.file("xplane").read_bytes() == b"\x0a" * 1000
    assert (capture.name, capture.kind, capture.status, capture.id) == ("run", "trace", "ok", record.id)
    assert capture.steps == {"name": "s", "count": 3, "median_ms": 1.0}
    assert capture.to_dict()["directory"] == str(capture.directory)
    assert repr(capture) == f"<Capture 'run', kind='trace', status='ok', steps=3: {capture.directory}>"
    with pytest.raises(UnknownCapture, match=r"has no file of the role 'perfetto'; it has: xplane\."):
        capture.file("perfetto")


def test_what_can_not_be_json_is_made_so(store: Store) -> None:
    import numpy

    record = publish(
        store,
        environment={"flags": "a\ud800b", "odd": object, "path": Path("/x"), "n": numpy.float32(1.5)},
        summary={
            "wall_ms": float("nan"),
            "steps": {"count": numpy.int64(2), "durations_ms": [1.0, float("inf")]},
        },
        cell="é" * 70_000,
    )
    assert record.environment["flags"] == "a\ufffd\ufffd\ufffdb"
    assert (record.environment["path"], record.environment["n"]) == ("/x", 1.5)
    assert record.summary == {"wall_ms": None, "steps": {"count": 2, "durations_ms": [1.0, None]}}
    assert len(record.cell.encode()) <= 64 * 1024
    assert any("longer than 64 KiB" in notice for notice in record.notices)
    assert store.get(record.id) == record


def test_too_many_steps_are_summed_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_module, "MAX_RECORD_BYTES", 50_000)  # 16 MiB take seconds to fill
    durations = [1.234567890123] * 5000
    record = publish(
        store, summary={"steps": {"count": len(durations), "durations_ms": durations, "median_ms": 1.2}}
    )
    assert record.steps == {"count": len(durations), "median_ms": 1.2}
    assert any("too many steps" in notice for notice in record.notices)
    assert store.list().rows[0].record == record
    with pytest.raises(StoreError, match="nothing of it was kept"):
        publish(store, environment={"huge": "x" * 60_000})
    assert store.list().total == 1
