"""Odd stores: of other versions, without locks, with coarse times, at odd places, while clocks are set."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import Origin, Progress, Status, Store, StoreError, UnreadableCapture, names
from jupyterlab_jaxprof.captures.settings import read_settings, write_settings
from jupyterlab_jaxprof.nsight import trial
from tests.captures.conftest import assert_sentence, publish
from tests.support.shells import running_shell

HOUR_S = 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rewrite(path: Path, change: Any) -> bytes:
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    return path.read_bytes()


# Other versions


def test_a_record_from_before_schemas_is_read_and_changed_in_its_own_form(store: Store) -> None:
    record = publish(store, "old")
    path = store.captures_dir / record.id / "capture.json"
    for schema in ({}, {"schema": 0}):
        kept = {"id": record.id, "files": record.to_json()["files"], "xprof_run": record.xprof_run, **schema}
        path.write_text(json.dumps(kept))
        (row,) = store.list().rows
        assert (row.problem, row.name, row.kind) == (None, "old", "trace")
        assert (row.record.created, str(row.record.status)) == (record.created, "partial")
        assert_sentence(row.record.reason, "early version")
        assert store.update(record.id, notes="seen").notes == "seen"
        assert json.loads(path.read_bytes()) == kept | {"notes": "seen"}
        assert store.open(record.id, record.files[0].path).read()


def test_a_record_of_a_later_version_is_listed_and_never_touched(store: Store) -> None:
    record, other = publish(store, "of tomorrow"), publish(store)
    path = store.captures_dir / record.id / "capture.json"
    content = rewrite(path, lambda data: data | {"schema": 2, "pins": {"by": "me"}, "status": {"new": 1}})
    for change in ({"name": "x"}, {"notes": "x"}, {"pinned": True}):
        with pytest.raises(UnreadableCapture, match="upgrade"):
            store.update(record.id, **change)
    row = next(row for row in store.list().rows if row.id == record.id)
    assert_sentence(row.problem, "schema 2")
    assert row.name == "of tomorrow"
    # How a later version pins is not known: it is never among those offered for deletion.
    assert Store(store.root, size_limit_bytes=1).list().over_limit.ids == (other.id,)
    assert path.read_bytes() == content


def test_what_a_later_version_has_set_stays(store: Store) -> None:
    store.prepare()
    path = store.root / "settings.json"
    later = {"jaxlater": "--new", "jaxtime": {"repeats": 3}, "jaxtrace": "--steps 5"}
    path.write_text(json.dumps({"schema": 2, "defaults": later, "theme": [1]}))
    settings = read_settings(store.root)
    assert settings.defaults == {"jaxtrace": "--steps 5"}
    assert_sentence(settings.problem, "jaxlater", "jaxtime")
    write_settings(store.root, {"defaults": {"jaxtrace": "--steps 6"}})
    assert json.loads(path.read_bytes()) == {
        "schema": 2,
        "defaults": later | {"jaxtrace": "--steps 6"},
        "theme": [1],
    }
    write_settings(store.root, {"defaults": {"jaxtime": "-r 3"}})
    assert json.loads(path.read_bytes())["defaults"] == {"jaxlater": "--new", "jaxtime": "-r 3"}


def test_trials_of_a_later_version_stay(store: Store) -> None:
    store.prepare()
    path = store.root / trial.FILE
    verdict = trial.Verdict(records=True, reports=True, reason="", tried=time.time())
    later = {"schema": 2, "a": {"outcome": "fine"}, "b": {**vars(verdict), "more": 1}}
    path.write_text(json.dumps(later))
    trial._keep(path, "c", verdict)
    assert json.loads(path.read_bytes()) == later | {"c": vars(verdict)}
    assert trial._verdict(trial._said(path)["b"]) == verdict
    trial._keep(path, "c", None)
    assert json.loads(path.read_bytes()) == later


# File systems as they are on networks and sticks


@pytest.fixture(params=[1, 2], ids=["1 s", "2 s"])
def coarse(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All modification times are cut to whole seconds, or to even ones, as vfat and old ext3 keep them."""
    tick_ns = request.param * 1_000_000_000
    for name in ("stat", "lstat", "fstat"):
        monkeypatch.setattr(os, name, _cut(getattr(os, name), tick_ns))


def _cut(real: Any, tick_ns: int) -> Any:
    def cut(*args: Any, **options: Any) -> os.stat_result:
        found = real(*args, **options)
        times = {f"st_{each}time_ns": getattr(found, f"st_{each}time_ns") for each in "amc"}
        times = {name: value // tick_ns * tick_ns for name, value in times.items()}
        floats = {name.removesuffix("_ns"): value / 1e9 for name, value in times.items()}
        return os.stat_result(tuple(found)[:10], times | floats)

    return cut


def test_coarse_times_hide_no_change(store: Store, coarse: None) -> None:
    record = publish(store, "name 0")
    versions, other = [store.version()], Store(store.root)
    for number in range(1, 9):
        store.update(record.id, name=f"name {number}")  # of the same size, within one tick
        versions.append(store.version())
        assert other.list(text=f"name {number}").matched == 1
    store.delete(record.id)
    versions.append(store.version())
    assert versions == sorted(set(versions))
    assert other.list().total == 0


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_without_locks_no_change_is_lost(store: Store, unlocked: None) -> None:
    record = publish(store)
    failures: list[Exception] = []

    def change(field: str) -> None:
        try:
            for number in range(25):
                store.update(record.id, **{field: f"{field} {number}"})
                assert getattr(store.get(record.id), field) == f"{field} {number}", "somebody undid this"
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=change, args=(field,)) for field in ("name", "notes")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(path.name for path in store.root.iterdir()) == ["captures", "lock", "partial"]


def test_without_locks_a_killed_process_holds_up_nobody_for_long(
    store: Store, unlocked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyterlab_jaxprof.captures import disk

    monkeypatch.setattr(disk, "_CLAIM_S", 0.1)
    record = publish(store)
    (store.root / "lock.held").touch()
    assert store.update(record.id, name="x").name == "x"
    program = (
        "import sys; from jupyterlab_jaxprof.captures import Store; import os, signal;"
        "d = Store(sys.argv[1]).begin('trace', 'dead'); print(d.id, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(store.root)], capture_output=True, text=True)
    living = store.begin("trace", "living")
    assert not (store.root / "partial" / done.stdout.strip()).exists()
    store.begin("trace", "another").discard()
    assert living.directory.is_dir()
    living.discard()


# Clocks


class Clock(datetime):
    step = timedelta(0)

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime.now(tz) + cls.step


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    """The time of day, which a test can set; what measures durations goes on as ever."""
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(Clock, "step", timedelta(0))
    monkeypatch.setattr(time, "time", lambda: real() + Clock.step.total_seconds())
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(Clock.step.total_seconds() * 1e9))
    monkeypatch.setattr(names, "datetime", Clock)
    monkeypatch.setattr(names, "_latest", datetime.fromtimestamp(0, UTC))
    return Clock


def test_identifiers_of_one_process_are_in_order(clock: type[Clock]) -> None:
    ids = []
    for number in range(300):
        clock.step = -timedelta(milliseconds=10 * number)  # slewed back, faster than it goes
        ids.append(names.new_id())
    assert ids == sorted(set(ids))
    assert len({each[:19] for each in ids}) == 300
    clock.step = -timedelta(hours=1)
    earlier = names.created_at(names.new_id())
    assert abs(datetime.fromisoformat(earlier) - datetime.now(UTC) + timedelta(hours=1)) < timedelta(
        minutes=5
    )


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_changes_no_duration(
    store: Store, clock: type[Clock], hours: int, monkeypatch: Any
) -> None:
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    with running_shell("jupyterlab_jaxprof") as shell:
        shell.run("import jax.numpy as jnp\nx = jnp.ones(8)")
        shell.names["set_clock"] = lambda: setattr(clock, "step", timedelta(hours=hours))
        for magic in (
            "%%jaxtime t",
            "%%jaxtime t -r 2",
            "%%jaxsweep n=1,2",
            "%%jaxtrace t",
            "%%jaxtrace t --steps 2",
        ):
            clock.step = timedelta(0)
            assert shell.run(f"{magic}\n(x + 1).block_until_ready()\nset_clock()").error is None
        shell.run("%jaxtrace start t")
        clock.step = timedelta(0)
        assert "has been running for 0 s" in shell.run("%jaxtrace").text.replace("for 1 s", "for 0 s")
        shell.run("%jaxtrace stop")
    page = store.list()
    assert (page.total, {row.problem for row in page.rows}) == (6, {None})
    for row in page.rows:
        assert row.record.status == Status.OK
        assert 0 <= (row.record.summary["wall_ms"] or 0) < HOUR_S * 1e3 / 2
    versions = store.version()
    store.update(page.rows[0].id, name="x")
    assert store.version() > versions


@pytest.mark.parametrize("hours", [-1, 1])
def test_what_runs_is_told_to_run_for_as_long_as_it_does(
    store: Store, clock: type[Clock], hours: int
) -> None:
    with store.begin("trace", "x") as draft:
        progress = Progress(draft.progress_place, Origin("trace", "x"))
        progress.tell("Running")
        clock.step = timedelta(hours=hours)
        (one,) = store.running()
        assert 0 < one.to_json(time.time())["elapsed_s"] < HOUR_S / 2


def test_a_time_zone_that_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two captures the kernel goes to another zone, and through the end of summer time."""
    ids = []
    try:
        for zone in ("Pacific/Kiritimati", "America/New_York", "UTC-14", "EST5EDT,J1/0,J365/23", ":nowhere"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            ids.append(publish(store, "t").id)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert ids == sorted(ids)
    assert [row.id for row in store.list().rows] == ids[::-1]
    for row in store.list().rows:
        assert abs(datetime.fromisoformat(row.record.created) - datetime.now(UTC)) < timedelta(minutes=5)


# Places


@pytest.mark.parametrize(
    "name", ["with spaces  and\ttab", "ünïcödé 日本 🚀", "per%20cent #?&;'\"$(x)", "x" * 200, "-rf"]
)
def test_odd_names_of_a_store(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / name
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for root in (place, tmp_path / "link" / name):
        monkeypatch.setenv("JAXPROF_DIR", f" {root} ")
        store = Store.default()
        record = publish(store, name[:50].replace("\t", " "))
        assert store.update(record.id, notes="x").notes == "x"
        assert (store.problem(), store.list().total) == (None, 1)
        store.delete(record.id)
        assert str(store.root) == str(root)


def test_a_relative_store_stays_where_it_was_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXPROF_DIR", f"relative-{os.getpid()}")
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        publish(Store.default())
    assert Store(tmp_path / "a" / f"relative-{os.getpid()}").list().total == 2
    assert list((tmp_path / "b").iterdir()) == []


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HOME is not set, and the user id is in no list, as in a container with an id of its own."""
    monkeypatch.setattr(Path, "expanduser", _no_home)
    for name in ("JAXPROF_DIR", "JUPYTER_DATA_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError) as error:
        Store.default()
    assert_sentence(str(error.value), "HOME is not set", "JAXPROF_DIR")


def _no_home(path: Path) -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_quota_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file system tells of a quota only when what was written is flushed, or the file closed."""
    kept = publish(store)

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        for attempt in (
            lambda: store.begin("trace", "x"),
            lambda: store.update(kept.id, name="x"),
            lambda: write_settings(store.root, {"size_limit": "1 GB"}),
        ):
            with pytest.raises(StoreError) as error:
                attempt()
            assert_sentence(str(error.value), "your disk quota is used up", "delete captures")
    assert [row.record for row in store.list().rows] == [kept]
    assert sorted(path.name for path in store.root.iterdir()) == ["captures", "lock", "partial"]
    publish(store)
