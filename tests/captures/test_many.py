"""Ten thousand captures: listed, searched and changed quickly."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import CaptureFile, Page, Record, Status, Store
from jupyterlab_jaxprof.captures.record import serialize

COUNT = 10_000


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory in memory where there is room: sixty thousand files can keep a busy disk for minutes."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 500 * 2**20 and os.access(memory, os.W_OK)
    place = Path(tempfile.mkdtemp(prefix="jaxprof-many-", dir=memory if roomy else None))
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def many(place: Path) -> Store:
    store = Store(place)
    past = time.time() - 3600
    for number in range(COUNT):
        capture_id = f"20260{1 + number // 2000}01-000000-{number % 1000:03d}-{number:06x}"
        session = store.captures_dir / capture_id / "plugins" / "profile" / "run"
        session.mkdir(parents=True)
        (session / "vm.xplane.pb").write_bytes(b"x" * 100)
        (session / "cache_version.txt").write_bytes(b"x" * 10)
        os.utime(session, (past, past))
        record = Record(
            id=capture_id,
            kind="trace" if number % 2 else "time",
            name=f"run {number}",
            created="2026-01-01T00:00:00Z",
            status=Status.OK,
            notebook=f"notebook {number % 7}.ipynb",
            cell="params, loss = train_step(params, batch)\n" * 30,
            environment={"jax": "0.10.2", "devices": [{"id": 0, "platform": "gpu", "kind": "H200"}]},
            files=(CaptureFile("plugins/profile/run/vm.xplane.pb", 100, "xplane"),),
            summary={"wall_ms": 1.0, "steps": {"count": 6, "median_ms": 1.0, "durations_ms": [1.0] * 6}},
            xprof_run=f"{capture_id}/run",
        )
        (store.captures_dir / capture_id / "capture.json").write_bytes(serialize(record))
    return store


def seconds(look: Callable[[], Page]) -> tuple[float, Page]:
    """Time `look` by this process's own use of the processor: a busy machine is no fault of the store's."""
    started = time.process_time()
    page = look()
    return time.process_time() - started, page


@pytest.mark.measures_time
def test_ten_thousand_captures_are_listed_quickly(many: Store) -> None:
    first, page = min((seconds(Store(many.root).list) for _ in range(2)), key=lambda timed: timed[0])
    assert (page.total, page.matched, len(page.rows)) == (COUNT, COUNT, 50)
    records = sum(path.stat().st_size for path in many.captures_dir.glob("*/capture.json"))
    assert page.size_bytes == COUNT * 110 + records
    store = Store(many.root)
    store.list()
    looks: dict[str, Callable[[], Page]] = {
        "again": store.list,
        "last page": lambda: store.list(offset=COUNT - 50),
        "search": lambda: store.list(text="TRAIN_STEP run 7777", kind="trace"),
    }
    times = {}
    for name, look in looks.items():
        times[name], page = min((seconds(look) for _ in range(3)), key=lambda timed: timed[0])
    assert [row.name for row in page.rows] == ["run 7777"]
    print(f"first {first:.3f} s, {times}")
    assert first < 1.5  # 0.4 s on an idle machine
    assert max(times.values()) < 0.3  # 0.08 s


def test_one_change_among_ten_thousand_is_seen(many: Store) -> None:
    store, other = Store(many.root), Store(many.root)
    oldest = store.list(offset=COUNT - 1).rows[0]
    other.update(oldest.id, name="changed elsewhere")
    assert [row.id for row in store.list(text="changed elsewhere").rows] == [oldest.id]
    other.delete(oldest.id)
    assert store.list().total == COUNT - 1


def test_a_look_that_has_just_been_had_is_not_had_again(many: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrolling and typing ask many times a second; each change is seen at once all the same."""
    store = Store(many.root)
    store.look()
    looks: list[str] = []
    lstat = os.lstat

    def counted(path: str) -> os.stat_result:
        looks.append(path)
        return lstat(path)

    monkeypatch.setattr("jupyterlab_jaxprof.captures.index.os.lstat", counted)
    monkeypatch.setattr("jupyterlab_jaxprof.captures.index._TRUSTED_S", 3600.0)
    first = store.list(limit=1).rows[0]
    assert not [path for path in looks if path.endswith("capture.json")]
    Store(many.root).update(first.id, name="changed just now")
    assert store.list(text="changed just now").matched == 1


def test_page_reads_only_its_own_records(many: Store, tmp_path: Path) -> None:
    """A record that the list knows isn't read again: its content may go while its stamp stays."""
    store = Store(many.root)
    store.look()
    before = store.list(offset=100, limit=10)
    outside = many.captures_dir / store.list(limit=1).rows[0].id / "capture.json"
    status, content = outside.stat(), outside.read_bytes()
    outside.write_bytes(b"\0" * len(content))
    os.utime(outside, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert store.list(offset=100, limit=10) == before
    assert store.list(limit=1).rows[0].problem is not None
    outside.write_bytes(content)
