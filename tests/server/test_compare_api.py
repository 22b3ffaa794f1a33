"""Captures side by side and a cell's history over REST, against a real server."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from jupyterlab_jaxprof.captures import Record, Status, Store
from tests.server.conftest import Publish
from tests.server.test_captures_api import NOBODY, message
from tests.support.findings import summary
from tests.support.servers import Server, running_server

COMPARE = "jaxprof/api/compare"
CELL = "for batch in batches:\n    params = step(params, batch)\n"


def test_captures_are_compared_in_a_process_of_their_own(server: Server, publish: Publish) -> None:
    before, after = publish("before", {}, summary=summary()), publish("after", {}, summary=summary())
    data = server.get_json(f"{COMPARE}?id={before.id}&id={after.id}")
    assert [capture["id"] for capture in data["captures"]] == [before.id, after.id]
    assert data["steps"][0]["verdict"] == "alike"
    assert data["tables"]["kernels"][0]["ms"][0] > 0
    swapped = server.get_json(f"{COMPARE}?id={after.id}&id={before.id}")
    assert swapped["captures"][0]["id"] == after.id


def test_what_can_not_be_compared_is_said(server: Server, publish: Publish) -> None:
    one = publish("one", {}, summary=summary())
    for query in (f"id={one.id}", f"id={one.id}&id={one.id}", f"id={one.id}&id=../../etc", ""):
        assert "from 2 to 12 times" in message(server.get(f"{COMPARE}?{query}"), 400)
    assert NOBODY in message(server.get(f"{COMPARE}?id={one.id}&id={NOBODY}"), 404)
    broken = publish("broken", {})
    (Store(server.store).directory(broken.id) / "capture.json").write_text("{")
    assert "damaged" in message(server.get(f"{COMPARE}?id={one.id}&id={broken.id}"), 409)


def test_comparing_that_takes_too_long_is_said_and_leaves_no_process() -> None:
    with running_server("/", arguments=["--JaxProfApp.compare_timeout_s=1"]) as server:
        first, second = (_publish(Store(server.store), name) for name in ("a", "b"))
        (server.home / "site" / "numpy.py").write_text("import time\ntime.sleep(60)\n")
        answer = server.get(f"{COMPARE}?id={first.id}&id={second.id}")
        assert "took longer than 1 s" in message(answer, 500)
        assert not psutil.Process(server.process.pid).children()


def _publish(store: Store, name: str, **fields: Any) -> Record:
    fields = {"status": Status.OK, "notebook": "train.ipynb", "cell": CELL, "summary": summary(), **fields}
    with store.begin(fields.pop("kind", "trace"), name) as draft:
        return draft.publish(**fields)


@pytest.fixture
def told(server: Server) -> Any:
    """Publish captures of one cell and give what the history of the newest says of each."""
    return lambda record: server.get_json(f"jaxprof/api/captures/{record.id}/history")


def test_history_has_the_same_and_similar_cells_of_the_notebook(server: Server, told: Any) -> None:
    store = Store(server.store)
    first = _publish(store, "first", cell=f"# a comment\n\n{CELL}")
    changed = _publish(store, "changed", cell=CELL.replace("step(params, batch)", "step(params, batch, 2)"))
    _publish(store, "another cell", cell="import jax")
    _publish(store, "another notebook", notebook="other.ipynb")
    failed = _publish(store, "failed", status=Status.FAILED, reason="No.")
    timing = _publish(
        store, "timing", kind="time", summary={"headline": {"label": "first run", "value": 1.0, "unit": "ms"}}
    )
    other_device = _publish(store, "other", environment={"devices": [{"kind": "TPU v5"}]})
    newest = _publish(store, "newest", environment={"devices": [{"kind": "NVIDIA H200"}]})
    history = told(newest)
    matches = {entry["id"]: entry["match"] for entry in history["captures"]}
    assert matches == {
        newest.id: "this", other_device.id: "same", timing.id: "same", failed.id: "same",
        changed.id: "similar", first.id: "same",
    }  # fmt: skip
    assert list(matches) == sorted(matches, reverse=True), "newest first"
    assert (history["label"], history["unit"]) == ("median step, load_data", "ms")
    left_out = {entry["name"]: entry["left_out"] for entry in history["captures"] if entry["left_out"]}
    assert left_out == {
        "other": "It ran on other devices (1 × TPU v5).",
        "timing": "It is of another kind (time).",
        "failed": "It failed.",
    }
    values = [entry["value"] for entry in history["captures"] if not entry["left_out"]]
    assert values == [31.9, 31.9, 31.9]
    assert message(server.get(f"jaxprof/api/captures/{NOBODY}/history"), 404)


def test_history_without_a_notebook_or_code(server: Server, told: Any) -> None:
    store = Store(server.store)
    _publish(store, "near", notebook="", cell=CELL + "x")
    alone = _publish(store, "alone", notebook="", cell=CELL)
    assert [entry["name"] for entry in told(alone)["captures"]] == ["alone"]
    empty = _publish(store, "empty", cell="")
    assert [entry["match"] for entry in told(empty)["captures"]] == ["this"]
