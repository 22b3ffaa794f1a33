"""The captures over REST, against a real server."""

from __future__ import annotations

import json
import os

import pytest

from tests.server.conftest import Publish
from tests.support.servers import Server, running_server

CAPTURES = "jaxprof/api/captures"
NOBODY = "20260101-000000-000-abcdef"


def message(answer, status):
    """The sentence of an error; every error is JSON with one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    sentence = answer.json()["message"]
    assert sentence.endswith((".", "?")), sentence
    assert "Traceback" not in sentence
    return sentence


def test_status_tells_version_store_and_viewers(server: Server):
    status = server.get_json("jaxprof/api/status")
    assert status["version"] == "0.1.0"
    assert status["api"] == 1
    assert status["store"] == {"path": str(server.store), "writable": True, "problem": None}
    assert set(status["viewers"]) == {"xprof", "tensorboard"}
    assert status["viewers"]["xprof"]["available"] is True
    assert status["viewers"]["xprof"]["url"] == "jaxprof/xprof"


def test_a_store_with_problems_is_told_and_shown(tmp_path):
    store = tmp_path / "store"
    store.write_text("a file where the store should be")
    with running_server("/", store, environment={"JAXPROF_SIZE_LIMIT": "a lot"}) as server:
        assert "JAXPROF_SIZE_LIMIT is ignored" in server.get_json(CAPTURES)["problems"][-1]
        start = {"action": "start"}
        refused = server.request("POST", "jaxprof/api/viewers/xprof", json=start)
        assert str(store) in message(refused, 500)
        # No capture can be begun here, but what is there can be shown.
        store.unlink()
        (store / "captures").mkdir(parents=True)
        (store / "partial").write_text("a file where a directory should be")
        assert server.viewer("xprof", "start")["state"] == "running"


def test_list_pages_filters_and_searches(server: Server, publish: Publish):
    names = ["Größe +1", "größe 2", "plain"]
    records = [publish(name, {"a.txt": b"x"}, notebook="list.ipynb", cell="x") for name in names]
    page = server.get_json(f"{CAPTURES}?notebook=list.ipynb")
    assert [row["name"] for row in page["captures"]] == names[::-1]
    assert page["matched"] == 3 <= page["total"]
    row = page["captures"][0]
    assert row["size_bytes"] == 1 <= row["disk_bytes"]
    assert row["problem"] is None
    assert "cell" not in row
    assert page["size_bytes"] > 0
    assert "list.ipynb" in page["notebooks"]
    assert "trace" in page["kinds"]
    second = server.get_json(f"{CAPTURES}?notebook=list.ipynb&offset=1&limit=1")
    assert [row["id"] for row in second["captures"]] == [records[1].id]
    assert second["matched"] == 3
    found = server.get_json(CAPTURES, params={"q": "GRÖSSE +1", "notebook": "list.ipynb"})
    assert [row["id"] for row in found["captures"]] == [records[0].id]
    nothing = server.get_json(f"{CAPTURES}?notebook=list.ipynb&kind=nsys")
    assert nothing["captures"] == []
    assert nothing["notebooks"] == page["notebooks"]


def test_some_captures_are_asked_for_by_their_ids(server: Server, publish: Publish):
    wanted, _, other = (publish(name, {"a.txt": b"x"}) for name in ("one", "two", "three"))
    page = server.get_json(CAPTURES, params={"ids": f"{wanted.id},{NOBODY},{other.id}"})
    assert [row["id"] for row in page["captures"]] == [other.id, wanted.id]
    assert server.get_json(f"{CAPTURES}?ids=")["captures"] == []


def test_the_page_about_a_finding(server: Server):
    page = server.get_json("jaxprof/api/patterns/host-starves-device")["markdown"]
    assert page.startswith("# The host starves the device")
    assert ".md)" not in page
    assert "no-such-thing" in message(server.get("jaxprof/api/patterns/no-such-thing"), 404)
    for outside in ("..%2Fcards", "%2e%2e", "index"):
        message(server.get(f"jaxprof/api/patterns/{outside}"), 404)


@pytest.mark.parametrize(
    "query", ["offset=-1", "limit=x", "limit=100000", "offset=1e3", "limit=９", "offset=" + "9" * 30]
)
def test_list_refuses_odd_numbers(server: Server, query: str):
    assert "whole number" in message(server.get(f"{CAPTURES}?{query}"), 400)


def test_one_capture_and_what_may_change(server: Server, publish: Publish):
    record = publish("before", {"a/b.txt": b"hello"}, cell="x = 1")
    path = f"{CAPTURES}/{record.id}"
    whole = server.get_json(path)
    assert whole["cell"] == "x = 1"
    assert whole["size_bytes"] == 5
    assert whole["directory"] == str(server.store / "captures" / record.id)
    changed = server.request(
        "PATCH", path, json={"name": "nach\u2009her é", "notes": "two\nlines", "pinned": True}
    )
    assert changed.status_code == 200
    assert changed.json()["name"] == "nach\u2009her é"
    again = server.get_json(path)
    assert (again["name"], again["notes"], again["pinned"]) == ("nach\u2009her é", "two\nlines", True)
    assert server.request("DELETE", path).status_code == 204
    assert not (server.store / "captures" / record.id).exists()
    assert "no capture" in message(server.get(path), 404)
    assert "no capture" in message(server.request("DELETE", path), 404)
    assert "no capture" in message(server.request("PATCH", path, json={"pinned": False}), 404)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"{}", 400),
        (b'{"name": 1}', 400),
        (b'{"name": ""}', 400),
        (b'{"name": "a\\nb"}', 400),
        (b'{"name": "\\ud800"}', 400),
        (b'{"notes": null}', 400),
        (b'{"pinned": 1}', 400),
        (b'{"id": "x"}', 400),
        (b'{"na%sme": "x"}', 400),
        (json.dumps({"name": "x" * 201}).encode(), 400),
        (json.dumps({"notes": "x" * 70_000}).encode(), 400),
        (json.dumps({"notes": "x" * 2_000_000}).encode(), 413),
    ],
)
def test_bad_bodies_change_nothing(server: Server, publish: Publish, body: bytes, status: int):
    record = publish("kept", {"a.txt": b"x"})
    path = f"{CAPTURES}/{record.id}"
    message(server.request("PATCH", path, data=body), status)
    assert server.get_json(path)["name"] == "kept"


@pytest.mark.parametrize(
    "identifier",
    [
        "..",
        "%2e%2e",
        "20260101",
        "x" * 300,
        f"{NOBODY}%00",
        f"{NOBODY}%2F..%2F..",
        "２0260101-000000-000-abcdef",
        NOBODY,
    ],
)
def test_identifiers_are_checked(server: Server, identifier: str):
    for method in ("GET", "PATCH", "DELETE"):
        answer = server.request(
            method, f"{CAPTURES}/{identifier}", json={"pinned": True} if method == "PATCH" else None
        )
        assert answer.status_code in (400, 404)
        assert answer.json()["message"]
    assert server.get(f"{CAPTURES}/{identifier}/archive").status_code in (400, 404)


def test_other_addresses_and_methods_are_json_errors(server: Server):
    message(server.get("jaxprof/api/nothing"), 404)
    message(server.get("jaxprof/api/"), 404)
    message(server.request("PUT", "jaxprof/api/status", data=b"x"), 405)
    message(server.request("POST", CAPTURES, json={}), 405)
    message(server.request("DELETE", CAPTURES), 405)
    message(server.get("jaxprof/api/viewers/vim"), 404)
    message(server.get(f"{CAPTURES}?q=%ff"), 400)
    message(server.get(f"{CAPTURES}/{NOBODY}/files/%ff"), 400)


def test_damaged_and_newer_records_are_rows_and_sentences(server: Server, publish: Publish):
    damaged, newer = (publish(name, {"a.txt": b"x"}, notebook="odd.ipynb") for name in ("damaged", "newer"))
    directory = server.store / "captures"
    (directory / damaged.id / "capture.json").write_text("{")
    data = json.loads((directory / newer.id / "capture.json").read_text())
    (directory / newer.id / "capture.json").write_text(json.dumps({**data, "schema": 99}))
    os.utime(directory)
    rows = {row["id"]: row for row in server.get_json(f"{CAPTURES}?limit=500")["captures"]}
    assert "damaged" in rows[damaged.id]["problem"]
    assert rows[newer.id]["name"] == "newer"
    assert "99" in rows[newer.id]["problem"]
    assert "damaged" in message(server.get(f"{CAPTURES}/{damaged.id}"), 409)
    assert "upgrade" in message(server.get(f"{CAPTURES}/{newer.id}"), 409)
    for record in (damaged, newer):
        assert server.request("DELETE", f"{CAPTURES}/{record.id}").status_code == 204


def test_environment_report(server: Server):
    report = server.get_json("jaxprof/api/environment")
    assert report["versions"]["xprof"].startswith("2.")
    assert "JUPYTER_TOKEN" not in json.dumps(report)
    assert server.token not in json.dumps(report)


def test_settings_are_read_and_changed_key_by_key(server: Server):
    path = server.store / "settings.json"
    path.write_text('{"of a later version": 1}')
    try:
        answer = server.request("PUT", "jaxprof/api/settings", json={"defaults": {"jaxtime": "-r 5"}})
        assert answer.json() == {
            "settings": {"of a later version": 1, "defaults": {"jaxtime": "-r 5"}},
            "problem": None,
        }
        assert server.get_json("jaxprof/api/settings") == answer.json()
        for body in ({"defaults": {"jaxtime": 5}}, {"other": 1}, {"defaults": []}):
            assert message(server.request("PUT", "jaxprof/api/settings", json=body), 400)
        path.write_text("{")
        assert str(path) in server.get_json("jaxprof/api/settings")["problem"]
        assert str(path) in message(server.request("PUT", "jaxprof/api/settings", json={"defaults": {}}), 500)
        assert server.get("jaxprof/api/settings", token=False).status_code == 403
    finally:
        path.unlink()
