"""Several processes at one store, and what dead ones leave behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Status, Store, UnknownCapture

from .conftest import fill, publish

WRITES = 25
UPDATES = 60


def write(root: str) -> None:
    store = Store(root)
    for number in range(WRITES):
        publish(store, f"run {number}", size_bytes=50_000)


def delete(root: str) -> None:
    """Delete every capture whose number is a multiple of three, as soon as it is there."""
    store = Store(root)
    gone = 0
    while gone < 2 * len(range(0, WRITES, 3)):
        for row in store.list(limit=1000).rows:
            if row.record is not None and int(row.record.name.split()[-1]) % 3 == 0:
                store.delete(row.id)
                gone += 1
        time.sleep(0.005)


def rename(root: str) -> None:
    """Give any capture another name, over and over, until there are enough of them."""
    store = Store(root)
    chance = random.Random(1)
    while True:
        rows = store.list(limit=1000).rows
        for row in chance.sample(list(rows), min(3, len(rows))):
            with suppress(UnknownCapture):  # the deleter was quicker
                store.update(row.id, name=f"renamed {row.name.split()[-1]}", pinned=chance.random() < 0.5)
        time.sleep(0.005)


def set_field(root: str, capture_id: str, field: str) -> None:
    store = Store(root)
    for number in range(UPDATES):
        record = store.update(capture_id, **{field: f"{field} {number}"})
        assert getattr(record, field) == f"{field} {number}"
        time.sleep(0.001)
        assert getattr(store.get(capture_id), field) == f"{field} {number}", "somebody else undid this"


@pytest.fixture
def spawn() -> Callable[..., multiprocessing.Process]:
    context = multiprocessing.get_context("spawn")
    started: list[multiprocessing.Process] = []

    def start(target: Callable[..., None], *args: str) -> multiprocessing.Process:
        process = context.Process(target=target, args=args, daemon=True)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


def check(store: Store) -> int:
    """Look at every capture: each one is whole, down to the bytes of its files, or gone by now."""
    page = store.list(limit=1000)
    for row in page.rows:
        assert row.problem is None or not (store.captures_dir / row.id).exists(), row.problem
        for file in row.record.files if row.record else ():
            try:
                with store.open(row.id, file.path) as content:
                    assert len(content.read()) == file.size_bytes == 50_000
            except UnknownCapture:
                assert not (store.captures_dir / row.id).exists()
    return page.total


def test_writers_and_deleters_at_once_never_show_half_a_capture(
    store: Store, spawn: Callable[..., object]
) -> None:
    root = str(store.root)
    store.begin("trace", "x").discard()
    writers = [spawn(write, root), spawn(write, root)]
    deleter, renamer = spawn(delete, root), spawn(rename, root)
    looks = 0
    deadline = time.monotonic() + 100
    while deleter.is_alive() and time.monotonic() < deadline:
        looks += check(store) > 0
    for process in (*writers, deleter):
        process.join(60)
        assert process.exitcode == 0
    assert renamer.is_alive()
    renamer.kill()
    renamer.join()
    assert looks > 10
    assert check(store) == 2 * (WRITES - len(range(0, WRITES, 3)))
    names = sorted(row.name.split()[-1] for row in store.list(limit=1000).rows)
    assert names == sorted(str(number) for number in range(WRITES) if number % 3 for _ in range(2))
    store.begin("trace", "x").discard()  # sweeps what the killed process may have left
    left = [
        path.name for path in store.root.rglob("*") if path.name.startswith((".", "trash")) and path.is_dir()
    ]
    assert left == []


def test_no_change_of_two_processes_is_lost(store: Store, spawn: Callable[..., object]) -> None:
    record = publish(store)
    processes = [spawn(set_field, str(store.root), record.id, field) for field in ("name", "notes")]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    final = store.get(record.id)
    assert (final.name, final.notes) == (f"name {UPDATES - 1}", f"notes {UPDATES - 1}")
    assert {path.name for path in store.directory(record.id).iterdir()} == {"capture.json", "plugins"}


BEGIN = """
import sys, time
from jupyterlab_jaxprof.captures import Store
place, where = sys.argv[1:]
draft = Store(place).begin("trace", "x") if where == "store" else Store.begin_in(place, "trace", "x")
(draft.directory / "half.xplane.pb").write_bytes(b"x" * 1000)
print(draft.directory, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("where", ["store", "dir"])
def test_drafts_of_the_dead_are_cleaned_and_those_of_the_living_kept(tmp_path: Path, where: str) -> None:
    begin = (
        Store(tmp_path).begin if where == "store" else lambda kind, name: Store.begin_in(tmp_path, kind, name)
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(tmp_path), where], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        dead, living = (Path(process.stdout.readline().strip()) for process in processes)
        mine = begin("trace", "mine")
        assert dead.is_dir()
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        begin("trace", "another").discard()
        assert not dead.exists()
        assert (living / "half.xplane.pb").stat().st_size == 1000
        assert mine.directory.is_dir()
        fill(mine)
        record = mine.publish(status=Status.OK)
        assert record.files
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def test_a_draft_that_its_process_forgot_is_cleaned_too(store: Store) -> None:
    forgotten = store.begin("trace", "x")
    directory = forgotten.directory
    del forgotten
    gc.collect()
    store.begin("trace", "y").discard()
    assert not directory.exists()


def test_a_draft_being_born_is_left_alone_and_a_stillborn_one_is_not(store: Store) -> None:
    store.begin("trace", "x").discard()
    partial = store.root / "partial"
    born, stillborn, foreign = (partial / name for name in (
        "20260101-000000-000-aaaaaa", "20260101-000000-000-bbbbbb", "somebody's",
    ))  # fmt: skip
    trash = partial / "trash-20260101-000000-000-aaaaaa-0a1b2c3d"
    for place in (born, stillborn, foreign, trash):
        place.mkdir()
    past = time.time() - 7200
    for place in (stillborn, foreign):
        os.utime(place, (past, past))
    store.begin("trace", "y").discard()
    assert sorted(path.name for path in partial.iterdir()) == sorted((born.name, foreign.name))


def test_another_hosts_draft_is_kept_for_a_day_though_its_lock_is_not_seen(store: Store) -> None:
    """On some clusters a lock is each host's own."""
    draft = store.begin("trace", "x")
    assert draft._owner is not None
    draft._owner.close()  # as it looks from elsewhere
    (draft.directory / ".owner").write_text("process 7 on another-host\n")
    store.sweep()
    assert draft.directory.is_dir()
    past = time.time() - 25 * 3600
    os.utime(draft.directory, (past, past))
    assert not store.sweep()
    assert not draft.directory.exists()
