"""A Jupyter server whose store's disk is full or read-only: uploads, lists, changes, XProf."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from werkzeug.test import Client

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.server.viewers import xprof_app
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules
from tests.captures.conftest import Disk, assert_sentence
from tests.server.conftest import publish_capture
from tests.support.captures import content
from tests.support.servers import running_server

API = "jaxprof/api/"


@pytest.fixture
def disk() -> Iterator[Disk]:
    # Larger than what an import leaves free; a tmpfs takes the memory that is used of it.
    disk = Disk("300m")
    yield disk
    disk.close()


def test_a_server_on_a_full_and_on_a_read_only_disk(disk: Disk) -> None:
    if not disk.mounted:
        return  # another process can't be refused its disk: the store's own tests do without
    store = Store(disk.place / "store")
    kept = publish_capture(store.root, "kept")
    trace = content("small_ops.xplane.pb")
    address = f"{API}captures/{kept.id}"
    with running_server(store=store.root) as server:
        listed = {"files": [{"path": "new.xplane.pb", "size_bytes": len(trace)}]}
        one = server.request("POST", f"{API}imports", json=listed).json()
        piece = f"{API}imports/{one['id']}/0?offset="
        assert server.request("PUT", f"{piece}0", data=trace[:1000]).json() == {"received": 1000}
        disk.exhaust()
        refused = [
            server.request("PUT", f"{piece}1000", data=trace[1000:]),
            server.request("POST", f"{API}imports", json=listed),
        ]
        for answer in refused:
            assert answer.status_code == 507, answer.text
            assert_sentence(answer.json()["message"], "delete captures")
        assert list((store.root / "partial").iterdir()) == []
        disk.exhaust()  # of the room that the upload has left
        assert server.get(f"{API}imports/{one['id']}").status_code == 404

        def changes() -> None:
            page = server.get_json(f"{API}captures")
            assert [row["name"] for row in page["captures"]] == ["kept"]
            assert_sentence(page["problems"][0], "JAXPROF_DIR")
            assert server.get_json(f"{API}status")["store"]["writable"] is False
            assert server.get(f"{address}/archive").content.startswith(b"PK")
            for method, path, body in (
                ("PATCH", address, {"notes": "x" * 5000}),
                ("PUT", f"{API}settings", {"defaults": {"jaxtrace": "--steps 5" + " " * 900}}),
            ):
                answer = server.request(method, path, json=body)
                assert answer.status_code in (500, 507), (path, answer.text)
                assert_sentence(answer.json()["message"], "JAXPROF_DIR")

        changes()
        disk.relieve()
        disk.protect(writable=False)
        changes()
        answer = server.request("DELETE", address)
        assert answer.status_code == 500
        assert_sentence(answer.json()["message"], "can't be deleted")
        # XProf starts, and its page tells what it can't do there.
        described = server.viewer("xprof", "start")
        assert described["state"] == "running"
        told = server.get_json(f"xprof/-/run?run={kept.xprof_run}")
        assert_sentence(told["notice"], "can't be written")
        tool = f"xprof/data/plugin/profile/data?run={kept.xprof_run}&host=vm&tag="
        assert server.get(f"{tool}overview_page").status_code == 200
        assert_sentence(server.get(f"{tool}trace_viewer@").json()["message"], "can't be written")
        disk.protect(writable=True)
        assert server.get(f"{tool}trace_viewer@").status_code == 200
        assert server.request("DELETE", address).status_code == 204


def test_xprof_on_a_full_disk_says_so_and_shows_all_once_there_is_room(disk: Disk) -> None:
    if not disk.mounted:
        return
    store = Store(disk.place / "store")
    kept = publish_capture(store.root)
    application, _ = xprof_app.build(store.captures_dir)
    client = Client(Gate(application, XProfRules(store.captures_dir)))
    tool = f"/data/plugin/profile/data?run={kept.xprof_run}&host=vm&tag=trace_viewer@"
    for free_bytes in (0, 8192, 16384):
        disk.exhaust()
        ballast = disk.place / "ballast"
        os.truncate(ballast, ballast.stat().st_size - free_bytes)
        answer = client.get(tool)
        assert answer.status_code == 404
        assert_sentence(answer.json["message"], "MB free", "make room")
        assert "MB free" in client.get(f"/-/run?run={kept.xprof_run}").json["notice"]
        disk.relieve()
        assert client.get(tool).status_code == 200
        for path in store.directory(kept.id).rglob("*.SSTABLE"):
            path.unlink()
