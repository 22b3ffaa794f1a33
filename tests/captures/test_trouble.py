"""Full and read-only disks, damaged and newer records, hostile links: a sentence each, no harm to others."""

from __future__ import annotations

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
)

from .conftest import Disk, assert_sentence, fill, publish


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
