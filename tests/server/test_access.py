"""Who may do what: the login, XSRF, the authorizer, and what counts as activity."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import requests
import websocket

from tests.server.conftest import Publish, publish_capture
from tests.support.servers import Server, running_server

pytestmark = pytest.mark.long

ID = "20260101-000000-000-abcdef"
ROUTES = [
    ("GET", "jaxprof/api/status"),
    ("GET", "jaxprof/api/captures"),
    ("GET", f"jaxprof/api/captures/{ID}"),
    ("PATCH", f"jaxprof/api/captures/{ID}"),
    ("DELETE", f"jaxprof/api/captures/{ID}"),
    ("GET", f"jaxprof/api/captures/{ID}/files/x"),
    ("HEAD", f"jaxprof/api/captures/{ID}/files/x"),
    ("GET", f"jaxprof/api/captures/{ID}/archive"),
    ("HEAD", f"jaxprof/api/captures/{ID}/archive"),
    ("POST", "jaxprof/api/imports"),
    ("GET", "jaxprof/api/imports/0123456789abcdef"),
    ("POST", "jaxprof/api/imports/0123456789abcdef"),
    ("DELETE", "jaxprof/api/imports/0123456789abcdef"),
    ("PUT", "jaxprof/api/imports/0123456789abcdef/0"),
    ("GET", "jaxprof/api/running"),
    ("GET", "jaxprof/api/kernels/x/usage"),
    ("GET", "jaxprof/api/environment"),
    ("GET", "jaxprof/api/viewers/xprof"),
    ("POST", "jaxprof/api/viewers/xprof"),
    ("GET", "jaxprof/api/nothing"),
    ("PUT", "jaxprof/api/status"),
    ("GET", "jaxprof"),
    ("GET", "jaxprof/xprof"),
    ("GET", "jaxprof/tensorboard"),
    ("GET", "jaxprof/static/viewer.js"),
    ("HEAD", "jaxprof/static/viewer.js"),
    ("GET", "xprof/"),
    ("GET", "xprof"),
    ("GET", "xprof/-/run?run=x"),
    ("GET", "xprof/-/jaxprof"),
    ("GET", "xprof/data/plugin/profile/"),
    ("GET", "xprof/data/plugin/profile/data?run=x"),
    ("POST", "xprof/data/plugin/profile/generate_cache"),
    ("GET", "jaxprof-tensorboard/"),
    ("GET", "jaxprof-tensorboard/data/runs"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_without_a_login(server: Server, method: str, path: str):
    answer = server.request(
        method, path, token=False, data=b"{}" if method in ("POST", "PATCH", "PUT") else None
    )
    assert answer.status_code in (302, 403), (answer.status_code, answer.text[:200])
    if answer.status_code == 302:
        assert "/login" in answer.headers["Location"]
    elif path.startswith("jaxprof/api/") and method != "HEAD":
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.json()["message"]
    wrong = server.request(method, path, token=False, headers={"Authorization": "token wrong"}, data=b"{}")
    assert wrong.status_code in (302, 403)


def logged_in(server: Server) -> tuple[requests.Session, str]:
    """A browser's session: cookies, no token in the header; and its XSRF token, from our own page."""
    session = requests.Session()
    session.get(f"{server.url}jaxprof/xprof?token={server.token}")
    page = session.get(f"{server.url}jaxprof/xprof").text
    match = re.search(r'data-xsrf="([^"]+)"', page)
    assert match
    return session, match.group(1)


def test_what_changes_state_needs_the_xsrf_token(server: Server, publish: Publish):
    record = publish("xsrf", {"a": b"x"})
    session, xsrf = logged_in(server)
    path = f"{server.api}captures/{record.id}"
    assert session.get(path, headers={"Referer": server.url}).status_code == 200
    for method, body in [("PATCH", '{"name": "x"}'), ("DELETE", None)]:
        for headers in ({}, {"X-XSRFToken": "wrong"}):
            refused = session.request(method, path, data=body, headers=headers)
            assert refused.status_code == 403, (method, headers)
            assert refused.json()["message"]
    start = session.post(f"{server.api}viewers/xprof", data='{"action": "stop"}')
    assert start.status_code == 403
    evil = {"X-XSRFToken": xsrf, "Origin": "https://evil.example"}
    assert session.request("PATCH", path, data='{"name": "x"}', headers=evil).status_code in (403, 404)
    assert server.get_json(f"jaxprof/api/captures/{record.id}")["name"] == "xsrf"
    allowed = session.request("PATCH", path, data='{"name": "y"}', headers={"X-XSRFToken": xsrf})
    assert allowed.json()["name"] == "y"
    assert session.request("DELETE", path, headers={"X-XSRFToken": xsrf}).status_code == 204


AUTHORIZER = """
from pathlib import Path

from jupyter_server.auth import Authorizer

class FromFile(Authorizer):
    async def is_authorized(self, handler, user, action, resource):
        allowed = Path(__file__).with_name("allowed").read_text().split()
        return resource != "jaxprof" or action in allowed
"""
PROXIED = ["xprof", "xprof/", "xprof/data/plugin/profile/runs", "xprof/-/jaxprof", "xprof/-/run?run=x/y"]
PROXIED += ["jaxprof-tensorboard", "jaxprof-tensorboard/", "jaxprof-tensorboard/data/runs"]


def test_the_authorizer_decides(tmp_path):
    (tmp_path / "authorizers.py").write_text(AUTHORIZER)
    allowed = tmp_path / "allowed"
    allowed.write_text("")
    record = publish_capture(tmp_path / "store", "one", {"a": b"x"})
    arguments = ["--ServerApp.authorizer_class=authorizers.FromFile"]
    with running_server("/", tmp_path / "store", arguments=arguments, python_path=[tmp_path]) as server:
        path = f"jaxprof/api/captures/{record.id}"
        reads = ["jaxprof/api/status", "jaxprof/api/captures", path, f"{path}/files/a", f"{path}/archive"]
        reads += [
            "jaxprof/xprof",
            "jaxprof/static/viewer.js",
            "jaxprof/api/viewers/xprof",
            "jaxprof/api/environment",
        ]
        writes = [("PATCH", path, {"name": "x"}), ("DELETE", path, None)]
        starts = [
            ("POST", f"jaxprof/api/viewers/{name}", {"action": "start"}) for name in ("xprof", "tensorboard")
        ]

        def refused(method: str, path: str, body: object = None) -> None:
            answer = server.request(method, path, json=body)
            assert answer.status_code == 403, path
            if "static" not in path and path != "jaxprof/xprof":
                assert answer.json()["message"].endswith("."), path

        for address in [*reads, *PROXIED]:
            refused("GET", address)
        for request in [*writes, *starts]:
            refused(*request)
        # Somebody who may read: everything but what changes something, and what would start a viewer.
        allowed.write_text("read")
        for address in reads:
            assert server.get(address).status_code == 200, address
        for request in [*writes, *starts]:
            refused(*request)
        for address in PROXIED:
            refused("GET", address)
        assert psutil.Process(server.pid).children() == []
        allowed.write_text("read execute")
        for address in PROXIED:
            assert server.get(address).status_code in (200, 302, 404), address
        assert server.get("xprof/data/plugin/profile/runs").json() == []
        # Once they run, reading is enough, until they were stopped.
        allowed.write_text("read")
        assert server.get("xprof/data/plugin/profile/runs").json() == []
        assert server.get("jaxprof-tensorboard/data/runs").json() == []
        allowed.write_text("execute")
        refused("GET", "xprof/data/plugin/profile/runs")
        server.viewer("xprof", "stop")
        allowed.write_text("read")
        refused("GET", "xprof/data/plugin/profile/runs")
        assert (tmp_path / "store/captures" / record.id / "a").exists()


EVENTS = "https://jupyterlab-jaxprof.readthedocs.io/events/"


def change(events: websocket.WebSocket) -> dict[str, Any]:
    """The next event of the captures; viewers that start have events of their own."""
    while True:
        event = json.loads(events.recv())
        if event["schema_id"] == f"{EVENTS}captures/v1":
            return event
        assert event["schema_id"] == f"{EVENTS}running/v1"


def test_events_tell_of_changes_and_an_idle_panel_is_no_activity():
    with running_server("/user/alice/") as server:
        address = server.url.replace("http:", "ws:") + f"api/events/subscribe?token={quote(server.token)}"
        events = websocket.create_connection(address, timeout=10)
        server.get_json("jaxprof/api/captures?no_track_activity=1")
        before = server.get_json("api/status?no_track_activity=1")["last_activity"]
        for _ in range(3):  # an idle panel: a subscription, and a list after each change
            publish_capture(server.store, "new", {"a": b"x"})
            event = change(events)
            assert event["version"] == (server.store / "captures").stat().st_mtime
            page = server.get_json("jaxprof/api/captures?no_track_activity=1")
            server.get_json("jaxprof/api/status?no_track_activity=1")
            server.get_json("jaxprof/api/viewers/xprof?no_track_activity=1")
        assert page["matched"] == 3
        server.viewer("xprof", "start")
        before_xprof = server.get_json("api/status?no_track_activity=1")["last_activity"]
        assert before_xprof > before, "starting a viewer is activity"
        profile = "xprof/data/plugin/profile"
        run = publish_capture(server.store).xprof_run or ""
        assert change(events)["version"] > event["version"]
        for idle in ("runs", f"run_tools?run={quote(run)}", "", "bundle.js"):
            server.get(f"{profile}/{idle}")
        assert server.get_json("api/status?no_track_activity=1")["last_activity"] == before_xprof
        used = server.get(f"{profile}/data", params={"run": run, "tag": "overview_page", "host": "vm"})
        assert used.status_code == 200
        after_use = server.get_json("api/status?no_track_activity=1")["last_activity"]
        assert after_use > before_xprof, "somebody looks at a tool"
        record = page["captures"][0]
        server.request(
            "PATCH", f"jaxprof/api/captures/{record['id']}?no_track_activity=1", json={"pinned": True}
        )
        assert change(events)["version"] > event["version"]
        server.get_json("jaxprof/api/captures")
        assert server.get_json("api/status?no_track_activity=1")["last_activity"] > after_use
        events.settimeout(2)
        with pytest.raises(websocket.WebSocketTimeoutException):
            events.recv()  # nothing changed: nothing is told
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 10


def test_a_kernel_learns_where_the_store_and_the_server_are():
    with running_server("/user/me@host.org/", arguments=["--JaxProfApp.size_limit_bytes=5000"]) as server:
        kernel = server.request("POST", "api/kernels", json={"name": "python3"}).json()["id"]
        address = server.url.replace("http:", "ws:") + f"api/kernels/{kernel}/channels?token={server.token}"
        channel = websocket.create_connection(address, timeout=60)
        names = ["JAXPROF_DIR", "JAXPROF_BASE_URL", "JAXPROF_SIZE_LIMIT"]
        code = f"import os; print([os.environ[name] for name in {names}])"
        header = {
            "msg_id": "1",
            "msg_type": "execute_request",
            "session": "s",
            "username": "",
            "version": "5.3",
        }
        content = {"code": code, "silent": False}
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        channel.send(json.dumps(message))
        while True:
            answer = json.loads(channel.recv())
            if answer["msg_type"] == "stream" and answer["content"]["name"] == "stdout":
                break
        assert answer["content"]["text"].strip() == str([str(server.store), "/user/me@host.org/", "5000"])
        assert server.get_json("jaxprof/api/captures")["size_limit_bytes"] == 5000
