"""The real XProf and TensorBoard behind real Jupyter servers: reached, isolated, and never left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
import sysconfig
import threading
import time
from pathlib import Path

import psutil
import pytest
import requests

from jupyterlab_jaxprof.server.viewers import xprof_app
from tests.server.conftest import Publish, publish_capture
from tests.server.test_process import gone
from tests.support.servers import Server, running_server

pytestmark = pytest.mark.long

P = "xprof/data/plugin/profile"


def trace_events(server: Server, run: str) -> list[dict]:
    answer = server.get(f"{P}/data", params={"run": run, "tag": "trace_viewer@", "host": "vm"})
    assert answer.status_code == 200, answer.text
    return answer.json()["traceEvents"]


def test_a_trace_through_the_proxy(server: Server, publish: Publish):
    check_trace(server, publish().xprof_run or "")


def check_trace(server: Server, run: str):
    # No start before it: the first request starts XProf.
    answer = server.get("xprof/")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "data/plugin/profile/"
    assert "<title>XProf" in server.get(f"{P}/").text
    assert run in server.get_json(f"{P}/runs")
    assert any(event.get("name") == "jit_train(190577)" for event in trace_events(server, run))
    refused = server.get(f"{P}/data", params={"run": "../..", "tag": "overview_page"})
    assert (refused.status_code, refused.headers["Content-Type"]) == (404, "application/json; charset=utf-8")
    assert server.get(f"{P}/capture_profile?service_addr=127.0.0.1:1").status_code == 403
    assert "frame-ancestors 'self'" in server.get(f"{P}/").headers["Content-Security-Policy"]
    assert server.get_json("jaxprof/api/viewers/xprof")["state"] == "running"
    # Caches don't count as files of the capture.
    row = server.get_json("jaxprof/api/captures")["captures"][0]
    assert row["disk_bytes"] > row["size_bytes"]
    assert len(row["files"]) == 1


def test_it_listens_nowhere_but_at_its_socket(server: Server, publish: Publish):
    trace_events(server, publish().xprof_run or "")
    server.viewer("tensorboard", "start")
    for name in ("xprof", "tensorboard"):
        process = psutil.Process(server.get_json(f"jaxprof/api/viewers/{name}")["pid"])
        assert process.net_connections(kind="inet") == []
        assert process.children() == []
        environment = process.environ()
        assert server.token not in " ".join(environment.values())
        assert not [key for key in environment if key.startswith(("JUPYTER", "JPY"))]
    (place,) = (server.home / "run").glob("jaxprof.*")
    assert place.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in place.iterdir())


def test_files_that_xprof_writes_are_private(server: Server, publish: Publish):
    record = publish()
    trace_events(server, record.xprof_run or "")
    directory = server.store / "captures" / record.id
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert len(files) > 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def test_no_jax_in_the_server(server: Server, publish: Publish):
    """Neither JAX nor XProf: whatever was served, their libraries aren't mapped into the server's process."""
    trace_events(server, publish().xprof_run or "")
    server.get_json("jaxprof/api/environment")
    maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert not [name for name in ("jaxlib", "xla", "xprof", "tensorflow", "libcuda") if name in maps]


def test_the_backend_gets_no_credentials(server: Server):
    """What really comes out of jupyter-server-proxy, at the socket itself."""
    server.viewer("xprof", "stop")
    (path,) = (server.home / "run").glob("jaxprof.*/xprof.sock")
    aside = path.with_name("aside")
    path.rename(aside)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer_once():
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

        thread = threading.Thread(target=answer_once)
        thread.start()
        cookies = {"_xsrf": "xsrf-secret", "username-x": "cookie-secret"}
        headers = {"X-XSRFToken": "xsrf-secret"}
        assert server.get(f"{P}/x", cookies=cookies, headers=headers).text == "ok"
        thread.join()
    path.unlink()
    aside.rename(path)
    assert b"GET /data/plugin/profile/x" in heard[0]
    for secret in (server.token.encode(), b"xsrf-secret", b"cookie-secret"):
        assert secret not in heard[0]
    assert server.get(f"{P}/").status_code == 200


def test_stop_and_open_again(server: Server, publish: Publish):
    run = publish().xprof_run or ""
    first = server.viewer("xprof", "start")
    stopped = server.viewer("xprof", "stop")
    assert (stopped["state"], stopped["pid"]) == ("stopped", None)
    assert gone(first["pid"])
    assert trace_events(server, run)
    second = server.get_json("jaxprof/api/viewers/xprof")
    restarted = server.viewer("xprof", "restart")
    assert restarted["state"] == "running"
    assert len({first["pid"], second["pid"], restarted["pid"]}) == 3
    assert restarted["memory_bytes"] > 20 << 20
    os.kill(restarted["pid"], signal.SIGKILL)
    assert trace_events(server, run)
    for body in ({"action": "dance"}, {}, {"action": 1}, {"action": "start", "x": 1}):
        answer = server.request("POST", "jaxprof/api/viewers/xprof", json=body)
        assert answer.status_code == 400
        assert "action" in answer.json()["message"]


ENDINGS = ["SIGTERM", "SIGINT twice", "SIGKILL", "POST /api/shutdown", "SIGKILL while it starts"]


def start_in_vain(server: Server):
    with pytest.raises(requests.ConnectionError):
        server.viewer("xprof", "start")


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_with_the_server_however_that_ends(ending: str):
    with running_server("/") as server:
        if ending == "SIGKILL while it starts":
            threading.Thread(target=start_in_vain, args=[server]).start()
            deadline = time.monotonic() + 10
            while not (children := psutil.Process(server.pid).children()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            pids = [child.pid for child in children]
        else:
            names = ("xprof", "tensorboard") if ending == "SIGTERM" else ("xprof",)
            pids = [server.viewer(name, "start")["pid"] for name in names]
        (place,) = (server.home / "run").glob("jaxprof.*")
        if ending == "SIGTERM":
            server.process.terminate()
        elif ending == "SIGINT twice":  # as a terminal sends it: to the whole process group
            os.killpg(server.pid, signal.SIGINT)
            time.sleep(0.5)
            os.killpg(server.pid, signal.SIGINT)
        elif ending == "POST /api/shutdown":
            assert server.request("POST", "api/shutdown").status_code == 200
        else:
            server.process.kill()
        server.process.wait(20)
        deadline = time.monotonic() + 10
        while not all(map(gone, pids)) or place.exists():
            assert time.monotonic() < deadline, (ending, pids, list(place.glob("*")))
            time.sleep(0.05)


def test_two_servers_at_once_have_their_own(server: Server, publish: Publish):
    run = publish().xprof_run
    with running_server("/") as other:
        assert run in server.get_json(f"{P}/runs")
        assert other.get_json(f"{P}/runs") == []
        assert server.viewer("xprof", "start")["pid"] != other.viewer("xprof", "start")["pid"]
        other.stop()
        assert run in server.get_json(f"{P}/runs")


def test_a_broken_protobuf_is_told(tmp_path):
    (tmp_path / "google/protobuf").mkdir(parents=True)
    (tmp_path / "google/protobuf/__init__.py").write_text("raise ImportError('this protobuf is broken')\n")
    with running_server("/", python_path=[tmp_path]) as server:
        viewer = server.viewer("xprof", "start")
        assert viewer["state"] == "failed"
        assert "ImportError: this protobuf is broken" in viewer["message"]
        answer = server.get(f"{P}/runs")
        assert answer.status_code == 503
        assert "this protobuf is broken" in answer.json()["message"]
        assert server.get("jaxprof/api/status").status_code == 200


def test_a_missing_xprof_is_told(tmp_path):
    """A path with everything that is installed but XProf and TensorBoard, and no site-packages."""
    site = Path(sysconfig.get_path("purelib"))
    for entry in site.iterdir():
        if not entry.name.startswith(("xprof", "tensorboard")):
            (tmp_path / entry.name).symlink_to(entry)
    with running_server("/", python_path=[tmp_path], interpreter=[sys.executable, "-S"]) as server:
        for name, command in [("xprof", "xprof>=2.24"), ("tensorboard", "jupyterlab-jaxprof[tensorboard]")]:
            viewer = server.get_json(f"jaxprof/api/viewers/{name}")
            assert viewer["available"] is False
            answer = server.request("POST", f"jaxprof/api/viewers/{name}", json={"action": "start"})
            assert answer.status_code == 409
            assert command in answer.json()["message"]


def test_another_version_works_with_a_notice(tmp_path, monkeypatch):
    assert importlib.util.find_spec("xprof")
    monkeypatch.setattr("xprof.version.__version__", "2.31.0rc1")
    application, notice = xprof_app.build(tmp_path)
    assert "2.31.0rc1" in notice
    assert callable(application)


def test_what_is_switched_off_stays_off():
    arguments = ["--JaxProfApp.xprof_enabled=False", "--JaxProfApp.tensorboard_enabled=False"]
    with running_server("/", arguments=arguments) as server:
        for name in ("xprof", "tensorboard"):
            viewer = server.get_json(f"jaxprof/api/viewers/{name}")
            assert viewer["available"] is False
            assert "switched off" in viewer["message"]
            answer = server.request("POST", f"jaxprof/api/viewers/{name}", json={"action": "start"})
            assert answer.status_code == 409
            assert "switched off" in answer.json()["message"]
        assert server.get("jaxprof/xprof").status_code == 200
        assert psutil.Process(server.pid).children() == []


def test_tensorboard_shows_the_runs(server: Server, publish: Publish):
    run = publish().xprof_run or ""
    assert server.viewer("tensorboard", "start")["state"] == "running"
    check_tensorboard(server, run)
    assert server.viewer("tensorboard", "stop")["state"] == "stopped"


def check_tensorboard(server: Server, run: str):
    T = "jaxprof-tensorboard"
    assert "TensorBoard" in server.get(f"{T}/").text
    assert run in server.get_json(f"{T}/data/plugin/profile/runs")
    config = server.get_json(f"{T}/data/plugin/profile/config")
    assert config["hideCaptureProfileButton"] is True
    assert server.get(f"{T}/data/plugin/profile/capture_profile?service_addr=x:1").status_code == 403
    listing = server.get_json(f"{T}/data/plugins_listing")
    assert listing["profile"]["enabled"] is True
    assert json.loads(server.get(f"{T}/experiment/defaultExperimentId/data/runs").text) == []
    while (state := server.get_json("jaxprof/api/viewers/tensorboard")["state"]) == "starting":
        time.sleep(0.05)  # it has answered, and the server is about to see it
    assert state == "running"


def test_both_viewers_at_the_root_of_a_server_that_allows_little():
    """A hub's servers forbid every frame; the pages inside JupyterLab's tab must not go grey."""
    settings = (
        '--ServerApp.tornado_settings={"headers": {"Content-Security-Policy": "frame-ancestors \'none\'"}}'
    )
    with running_server("/", arguments=[settings, "--JaxProfApp.external_scripts=False"]) as server:
        assert "'none'" in server.get("api/status").headers["Content-Security-Policy"]
        for path in ("jaxprof/xprof", f"{P}/"):
            policy = server.get(path).headers["Content-Security-Policy"]
            assert "frame-ancestors 'self'" in policy
            assert "frame-ancestors 'none'" not in policy
            assert "gstatic" not in policy
        run = publish_capture(server.store).xprof_run or ""
        check_trace(server, run)
        check_tensorboard(server, run)
        assert 'data-external-scripts="no"' in server.get("jaxprof/xprof").text
        policy = server.get("jaxprof-tensorboard/").headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "gstatic" not in policy
