"""What passes the gates of XProf and TensorBoard, and how answers are mended; the real XProf is behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers import bundle, xprof_app
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.tensorboard_app import TensorBoardRules
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules
from tests.support.gates import P, body, sentence
from tests.support.servers import unpacked


def test_the_root_leads_to_the_page(client: Client):
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "data/plugin/profile/")


def test_xprofs_own_pages_and_data_pass(client: Client, run: str):
    assert b"<title>XProf" in body(client.get(f"{P}/"))
    assert b"<title>XProf" in body(client.get(f"{P}/trace_viewer@?run={run}&tag=trace_viewer@&host=vm"))
    assert json.loads(body(client.get(f"{P}/runs"))) == [run]
    tools = json.loads(body(client.get(f"{P}/run_tools?run={run}")))
    assert {"trace_viewer@", "overview_page", "memory_profile"} <= set(tools)
    assert json.loads(body(client.get(f"{P}/hosts?run={run}&tag=trace_viewer@"))) == [{"hostname": "vm"}]
    query = {"run": run, "tag": "trace_viewer@", "hosts": "vm", "resolution": "8000", "full_dma": "false"}
    trace = json.loads(body(client.get(f"{P}/data", query_string=query)))
    assert any(event.get("name") == "jit_train(190577)" for event in trace["traceEvents"])
    module = body(client.get(f"{P}/module_list?run={run}&tag=graph_viewer&graph_type=xla")).decode()
    assert module == "jit_train(190577)"
    query = {"run": run, "tag": "memory_viewer", "host": "vm", "module_name": module, "memory_space": "0"}
    assert client.get(f"{P}/data", query_string=query).status_code == 200
    csv = client.get(
        f"{P}/data_csv", query_string={"run": run, "tag": "hlo_stats", "host": "vm", "tqx": "out:csv;"}
    )
    assert csv.headers["Content-Disposition"].startswith("attachment")
    assert body(csv).startswith(b'"Rank","Program id"')
    assert json.loads(body(client.get(f"{P}/config")))["hideCaptureProfileButton"] is True


@pytest.mark.parametrize(
    "bad",
    [
        "../x",
        "..",
        ".",
        "/etc",
        "//etc",
        "a//b",
        "a/../../b",
        "%2e%2e/x",
        "..%2fx",
        "..\\x",
        "a\x00b",
        "nothing",
        "a/b/c",
        "x" * 5000,
        "gs://bucket/run",
        "file:///etc",
        "é/é",
    ],
)
@pytest.mark.parametrize("route", ["data", "data_csv", "run_tools", "hosts", "module_list"])
def test_runs_outside_the_store_are_refused(client: Client, route: str, bad: str):
    answer = client.get(f"{P}/{route}", query_string={"run": bad, "tag": "overview_page"})
    assert "run" in sentence(answer, 404)


def test_links_are_refused(client: Client, store: Path, tmp_path: Path):
    unpacked("no_steps", tmp_path / "plugins/profile/outside")
    captures = store / "captures"
    (captures / "linked").symlink_to(tmp_path)
    inner = captures / "inner/plugins/profile"
    inner.mkdir(parents=True)
    (inner / "session").symlink_to(tmp_path / "plugins/profile/outside")
    (inner / "file").mkdir()
    (inner / "file/vm.xplane.pb").symlink_to(tmp_path / "plugins/profile/outside/vm.xplane.pb")
    for name in ("linked/outside", "inner/session", "inner/file"):
        for route in ("data", "run_tools", "hosts"):
            answer = client.get(f"{P}/{route}", query_string={"run": name, "tag": "overview_page"})
            assert "symbolic link" in sentence(answer, 403)
    assert sorted(path.name for path in (tmp_path / "plugins/profile/outside").iterdir()) == ["vm.xplane.pb"]


@pytest.mark.parametrize("name", ["session_path", "run_path"])
@pytest.mark.parametrize("route", ["data", "run_tools", "hosts", "module_list"])
def test_paths_in_the_query_are_refused(client: Client, run: str, route: str, name: str):
    query = {"run": run, "tag": "overview_page", name: "/etc"}
    assert name in sentence(client.get(f"{P}/{route}", query_string=query), 403)
    # XProf's own page sends it empty.
    assert client.get(f"{P}/{route}", query_string=query | {name: ""}).status_code == 200


@pytest.mark.parametrize("name", ["module_name", "host", "hosts", "node_name"])
@pytest.mark.parametrize("value", ["../../x", "a/b", "..", ".", "a\\b", "a\x00b", "vm,../x"])
def test_names_that_lead_elsewhere_are_refused(client: Client, run: str, name: str, value: str):
    if value == "vm,../x" and name != "hosts":
        value = "vm/../x"
    query = {"run": run, "tag": "memory_viewer", name: value}
    assert name in sentence(client.get(f"{P}/data", query_string=query), 400)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tag", "../x"),
        ("program_id", "1;2"),
        ("resolution", "NaN()"),
        ("type", "a/b"),
        ("device_type", "../x"),
        ("graph_width", "-1"),
        ("use_saved_result", "maybe"),
        ("event_name", "a\nb"),
    ],
)
def test_values_of_another_shape_are_refused(client: Client, run: str, name: str, value: str):
    query = {"run": run, "tag": "overview_page"} | {name: value}
    assert name in sentence(client.get(f"{P}/data", query_string=query), 400)


def test_what_dials_or_writes_is_refused(client: Client, run: str):
    assert "dial" in sentence(client.get(f"{P}/capture_profile?service_addr=127.0.0.1:1"), 403)
    assert "refused" in sentence(client.get(f"{P}/generate_cache?session_path=/tmp"), 403)
    for path in ("/capture_profile", "/data", "/runs", f"{P}/capture_profile/", f"/{P}/data", f"{P}//data"):
        sentence(client.get(path), 404)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"):
        for route in ("generate_cache", "capture_profile", "data", ""):
            sentence(client.open(f"{P}/{route}", method=method), 405)


@pytest.mark.parametrize(
    "path", [f"{P}/..%2f..%2fx", f"{P}/%2e%2e/x", f"{P}/static/../x.js", "/etc/passwd", f"{P}/a.py"]
)
def test_other_addresses_are_unknown(client: Client, path: str):
    sentence(client.get(path), 404)


def test_a_query_that_is_no_text(client: Client):
    sentence(client.get(f"{P}/data?run=%ff"), 400)
    sentence(client.get(f"{P}/data?" + "&".join(f"a{i}=1" for i in range(200))), 400)


def test_neither_credentials_nor_other_parameters_reach_the_application(store: Path, run: str):
    seen: list[dict] = []

    def application(environ, start_response):
        seen.append(environ)
        return Response("ok")(environ, start_response)

    client = Client(Gate(application, XProfRules(store / "captures")))
    headers = {"Cookie": "a=b", "Authorization": "token x", "X-XSRFToken": "y"}
    client.get(f"{P}/data?run={run}&tag=overview_page&token=secret&run=other&evil=1", headers=headers)
    client.get(f"{P}/?token=secret", headers=headers)
    assert seen[0]["QUERY_STRING"] == f"run={run.replace('/', '%2F')}&tag=overview_page"
    assert seen[1]["QUERY_STRING"] == ""
    for environ in seen:
        assert not {"HTTP_COOKIE", "HTTP_AUTHORIZATION", "HTTP_X_XSRFTOKEN"} & environ.keys()
        assert "secret" not in str([value for value in environ.values() if isinstance(value, str)])


def test_only_own_pages_may_frame_it(client: Client, run: str):
    for path in (
        f"{P}/",
        f"{P}/bundle.js",
        f"{P}/data?run={run}&tag=overview_page&host=vm",
        f"{P}/nothing.x",
    ):
        answer = client.get(path)
        assert answer.headers["Content-Security-Policy"].endswith("frame-ancestors 'self'")
        assert "X-Frame-Options" not in answer.headers


def policies(client: Client, run: str) -> list[dict[str, list[str]]]:
    """The policies of XProf's pages and data, as directives with their sources."""
    paths = ("", "bundle.js", "trace_viewer_index.html", f"data?run={run}&tag=overview_page&host=vm")
    texts = [client.get(f"{P}/{path}").headers["Content-Security-Policy"] for path in paths]
    return [{part.split()[0]: part.split()[1:] for part in text.split(";")} for text in texts]


def test_nothing_comes_from_elsewhere_but_what_xprof_uses(client: Client, run: str):
    """XProf's own script names every host it loads from; jsdelivr, which its policy allows, isn't one."""
    assert "jsdelivr" not in body(client.get(f"{P}/bundle.js")).decode()
    for policy in policies(client, run):
        assert policy["script-src-elem"] == ["'self'", "'unsafe-inline'", "https://www.gstatic.com"]
        assert "jsdelivr" not in str(policy)


def test_external_scripts_may_be_switched_off(store: Path, run: str):
    application, _ = xprof_app.build(store / "captures")
    rules = XProfRules(store / "captures")
    for policy in policies(Client(Gate(application, rules, external_scripts=False)), run):
        assert policy["script-src-elem"] == ["'self'", "'unsafe-inline'"]
        assert policy.pop("frame-src") == ["'self'", "https://ui.perfetto.dev"]
        assert "'self'" in policy["default-src"]
        kept = {source for sources in policy.values() for source in sources}
        assert all(source.startswith("'") or source in ("data:", "blob:") for source in kept), kept

    def without_a_policy(environ, start_response):
        return Response("<html>", content_type="text/html")(environ, start_response)

    client = Client(Gate(without_a_policy, rules, external_scripts=False))
    assert "script-src 'self'" in client.get(f"{P}/").headers["Content-Security-Policy"]


@pytest.mark.parametrize("rules", [XProfRules, TensorBoardRules])
def test_no_token_and_no_dots_reach_any_viewer(store: Path, rules: type):
    seen: list[tuple[str, str]] = []

    def application(environ, start_response):
        seen.append((environ["PATH_INFO"], environ["QUERY_STRING"]))
        return Response("{}")(environ, start_response)

    client = Client(Gate(application, rules(store / "captures")))
    client.get(f"{P}/?token=secret")
    client.get("/data/runs?a=1&token=secret&%74oken=secret&b=%26token%3D2")
    for path in (
        "/data/plugin/scalars/../profile/capture_profile",
        "/data/plugin/scalars/%2e%2e/profile/capture_profile",
        "/data/plugin/./profile/capture_profile",
        "/experiment/defaultExperimentId/../../data/runs",
        f"{P}/../profile/data",
    ):
        sentence(client.get(path), 404)
    expected = [(f"{P}/", "")]
    if rules is TensorBoardRules:
        expected.append(("/data/runs", "a=1&b=%26token%3D2"))
    assert seen == expected


def test_the_script_is_mended(client: Client):
    script = body(client.get(f"{P}/bundle.js")).decode()
    for _, pattern, replacement in bundle.PATCHES:
        assert pattern.decode() not in script
        assert replacement.decode() in script
    # What is left of the parent's address is followed by the parent's path.
    assert script.count("window.parent.location.origin") == script.count(
        "${window.parent.location.origin}${window.parent.location.pathname}?"
    )


def test_a_script_without_the_patterns_is_left_alone(caplog):
    mended = bundle.mended(b"another script", "")
    assert gzip.decompress(mended) == b"another script"
    assert len([line for line in caplog.messages if "can't be mended" in line]) == len(bundle.PATCHES)
    assert bundle.decoded(b"no gzip", "gzip") == b"no gzip"


def test_tensorboards_profile_plugin_has_xprofs_rules(store: Path, run: str):
    seen: list[str] = []

    def application(environ, start_response):
        seen.append(environ["PATH_INFO"])
        return Response("{}")(environ, start_response)

    client = Client(Gate(application, TensorBoardRules(store / "captures")))
    E = "/experiment/defaultExperimentId"
    passing = [
        "/",
        "/index.js",
        "/data/environment",
        "/data/plugin/scalars/tags",
        f"{P}/runs",
        f"{E}/data/runs",
    ]
    for path in passing:
        assert client.get(path).status_code == 200, path
    assert seen == passing
    for path in ("/data/plugin/timeseries/timeSeries", f"{E}/data/plugin/hparams/experiment"):
        assert client.post(path).status_code == 200, path
    for path in ("/", "/data/plugin/scalars/scalars", f"{P}/data", f"{P}/generate_cache"):
        sentence(client.post(path), 405)
    sentence(client.get(f"{P}/capture_profile?service_addr=x:1"), 403)
    sentence(client.get(f"{P}/data?run=../x&tag=overview_page"), 404)
    sentence(client.get(f"{P}/data?run={run}&session_path=/etc"), 403)
    for prefix in (E, "/experiment/other", "/experiment/x/experiment/y", "/"):
        for route in ("capture_profile", "data?run=../x", "runs"):
            sentence(client.get(f"{prefix}{P}/{route}"), 404)
