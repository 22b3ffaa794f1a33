"""A disk that fills up, has no inodes left or is read-only, at each phase of each magic and of an import."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Store, StoreError
from jupyterlab_jaxprof.captures.history import history
from jupyterlab_jaxprof.captures.settings import read_settings, write_settings
from jupyterlab_jaxprof.nsight.surroundings import jax_cache
from jupyterlab_jaxprof.reports.importing import import_path
from tests.captures.conftest import Disk, assert_sentence, publish
from tests.support.captures import unpacked
from tests.support.shells import Shell, running_shell

SETUP = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: x @ x)
x = jnp.ones((8, 8))
f(x).block_until_ready()
"""
#: The magic, when the disk fills up, and what is shown of the cell's own.
CELLS = {
    "trace": ["%%jaxtrace t\nf(x)\nfill()\n42"],
    "steps": ["%%jaxtrace t --steps 2 --perfetto\nf(x)\nfill()\n42"],
    "start and stop": ["%jaxtrace start t", "fill()\n42", "%jaxtrace stop"],
    "time": ["%%jaxtime t -r 2\nfill()\n42"],
    "sweep": ["%%jaxsweep n=1,2\nfill()\n42"],
    "watch": ["%jaxmem --watch", "fill()\n42", "%jaxmem --stop"],
}


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.close()


@pytest.fixture
def shell(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("JAXPROF_DIR", str(disk.place / "store"))
    with running_shell("jupyterlab_jaxprof") as shell:
        shell.run(SETUP)
        shell.names["fill"] = disk.exhaust
        yield shell


def test_a_disk_that_fills_up_in_a_cell_costs_that_capture_alone(disk: Disk, shell: Shell) -> None:
    store = Store(disk.place / "store")
    assert shell.run("%%jaxtrace kept\nf(x)").error is None
    before = store.list().rows
    for name, cells in CELLS.items():
        outcomes = [shell.run(cell) for cell in cells]
        assert [outcome.error for outcome in outcomes] == [None] * len(cells), name
        if name != "sweep":  # a sweep shows no value
            assert any("42" in outcome.text for outcome in outcomes), name
        said = outcomes[-1].text
        assert "can't be written, and nothing of it was kept" in said, (name, said)
        assert "JAXPROF_DIR" in said
        assert "Traceback" not in said
        assert store.list().rows == before
        assert list((store.root / "partial").iterdir()) == []
        # Reading goes on: the history, the list, a report
        assert [entry.record.name for entry in history(store, before[0].id).entries] == ["kept"]
        disk.relieve()
    for cell in ("%%jaxtrace again\nf(x)", "%%jaxtime again\nf(x)", "%jaxmem"):
        assert shell.run(cell).error is None
    assert store.list().total == 4


def test_what_is_not_a_capture(disk: Disk) -> None:
    store = Store(disk.place / "store")
    publish(store, "kept")
    write_settings(store.root, {"defaults": {"jaxtrace": "--steps 5"}})
    disk.exhaust()
    with pytest.raises(StoreError) as error:
        write_settings(store.root, {"defaults": {"jaxtrace": "--steps 6 " + " " * 900}})
    assert_sentence(str(error.value), "The settings can't be saved", "JAXPROF_DIR")
    assert read_settings(store.root).defaults == {"jaxtrace": "--steps 5"}
    directory, problem = jax_cache(store.root)
    if not directory:
        assert_sentence(problem, "is not kept for the next run")
    trace = unpacked("small_ops.xplane.pb")
    with pytest.raises(StoreError) as error:
        import_path(store, trace)
    assert_sentence(str(error.value), "JAXPROF_DIR")
    assert (store.list().total, list((store.root / "partial").iterdir())) == (1, [])
    disk.relieve()
    assert import_path(store, trace).name == "small_ops"
    assert write_settings(store.root, {"size_limit": "1 GB"}).values["size_limit"] == "1 GB"


def test_a_disk_without_inodes_says_that_it_is_those(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space is left, and df says so: the sentence must not speak of a full disk alone."""
    if not disk.mounted:  # nowhere else can inodes be used up: the system's answers are played
        _without_inodes(disk, monkeypatch)
        return
    place = Path(tempfile.mkdtemp(prefix="jaxprof-inodes-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=40", "tmpfs", str(place)], check=True)
    try:
        store = Store(place / "store")
        kept = publish(store, "kept")
        count = 0
        try:
            while True:
                (place / f"file {count}").touch()
                count += 1
        except OSError:
            pass
        with pytest.raises(StoreError) as error:
            store.begin("trace", "x")
        assert_sentence(str(error.value), "inodes are used up", "JAXPROF_DIR")
        assert_sentence(store.problem(), "inodes are used up")
        with pytest.raises(StoreError, match="inodes"):
            store.update(kept.id, name="x")
        assert [row.record for row in store.list().rows] == [kept]
        store.delete(kept.id)
        for number in range(20):
            (place / f"file {number}").unlink(missing_ok=True)
        publish(store, "again")
        assert [row.name for row in store.list().rows] == ["again"]
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def test_a_read_only_store_keeps_nobody_from_reading(disk: Disk, shell: Shell) -> None:
    store = Store(disk.place / "store")
    assert shell.run("%%jaxtrace kept\nf(x)").error is None
    disk.protect(writable=False)
    for magic in ("%%jaxtrace t", "%%jaxtime t", "%%jaxsweep n=1"):
        outcome = shell.run(f"{magic}\nran = True")
        assert "UsageError" in outcome.text
        assert "JAXPROF_DIR" in outcome.text
        assert "Nothing has run" in outcome.text
        assert "ran" not in shell.names
    assert "kept" in shell.run("%jaxprof report kept").text
    assert [row.name for row in store.list().rows] == ["kept"]
    disk.protect(writable=True)
    assert shell.run("%%jaxtrace t\n1").error is None


def _without_inodes(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    store, real = Store(disk.place / "store"), os.statvfs
    kept = publish(store, "kept")

    def statvfs(path: object) -> os.statvfs_result:
        found = list(real(path))
        found[5:8] = [1000, 0, 0]  # f_files, f_ffree, f_favail
        return os.statvfs_result(found)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", statvfs)
        patch.setattr(os, "mkdir", refuse)
        with pytest.raises(StoreError) as error:
            store.begin("trace", "x")
        assert_sentence(str(error.value), "inodes are used up", "JAXPROF_DIR")
        assert_sentence(store.problem(), "inodes are used up")
        assert [row.record for row in store.list().rows] == [kept]
        store.delete(kept.id)
    publish(store, "again")
