"""What passes the gates of XProf and TensorBoard, and how answers are mended; the real XProf is behind."""

from __future__ import annotations

import ctypes
import fcntl
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from werkzeug.test import Client
from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers import bundle, caches, gate, xprof_app
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.tensorboard_app import TensorBoardRules
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules
from tests.server.conftest import publish_capture
from tests.support.servers import ROOT, unpacked

P = "/data/plugin/profile"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run(store: Path) -> str:
    return publish_capture(store).xprof_run or ""


@pytest.fixture(scope="module")
def client(store: Path, run: str) -> Client:
    """The real XProf behind its gate."""
    logdir = store / "captures"
    application, notice = xprof_app.build(logdir)
    assert notice == ""
    return Client(Gate(application, XProfRules(logdir)))


def sentence(answer, status):
    assert answer.status_code == status, answer.get_data()[:300]
    assert answer.content_type.startswith("application/json")
    return answer.json["message"]


def body(answer) -> bytes:
    return bundle.decoded(answer.get_data(), answer.headers.get("Content-Encoding", ""))


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


def test_what_xprof_raises_becomes_a_sentence(client: Client, store: Path):
    """memory_profile over two hosts is an assertion in XProf, outside of its own error handling."""
    record = publish_capture(store, "two")
    directory = store / "captures" / record.id / "plugins/profile/two"
    (directory / "b.xplane.pb").write_bytes((directory / "vm.xplane.pb").read_bytes())
    run = record.xprof_run
    answer = client.get(f"{P}/data", query_string={"run": run, "tag": "memory_profile"})
    assert "choose a host" in sentence(answer, 500)
    hosts = json.loads(body(client.get(f"{P}/hosts", query_string={"run": run, "tag": "overview_page"})))
    assert hosts == [{"hostname": "ALL_HOSTS"}]
    for query in ({"hosts": "b,vm"}, {"host": "b"}):
        answer = client.get(f"{P}/data", query_string={"run": run, "tag": "trace_viewer@"} | query)
        assert answer.status_code == 200
    assert "choose a capture" in sentence(client.get(f"{P}/run_tools"), 400)


def test_host_must_be_specified_is_explained(store: Path, run: str):
    def application(environ, start_response):
        text = gzip.compress(b"Host must be specified for tool x in run y")
        return Response(text, 500, {"Content-Encoding": "gzip"})(environ, start_response)

    client = Client(Gate(application, XProfRules(store / "captures")))
    answer = client.get(f"{P}/data", query_string={"run": run, "tag": "x"})
    assert "several hosts" in sentence(answer, 500)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty (0 bytes)"), (b"random text", "damaged"), (os.urandom(3000), "damaged"), (None, "damaged")],
    ids=["empty", "text", "random", "cut"],
)
def test_damaged_traces_are_explained(client: Client, store: Path, content: bytes | None, words: str):
    record = publish_capture(store, "damaged")
    trace = store / "captures" / record.id / "plugins/profile/damaged/vm.xplane.pb"
    trace.write_bytes(trace.read_bytes()[:300] if content is None else content)
    answer = client.get(f"{P}/run_tools", query_string={"run": record.xprof_run})
    if content == b"":  # XProf lists tools, and shows an empty profile with status 200
        assert answer.status_code == 200
        about = client.get("/-/run", query_string={"run": record.xprof_run}).json
        assert words in about["problem"]
    else:
        assert words in sentence(answer, 422)


CUT_CACHES = ["ALL_HOSTS.op_stats_v2.pb", "vm.SSTABLE"]


@pytest.mark.parametrize("name", CUT_CACHES)
def test_caches_that_a_dead_xprof_left_half_written_are_made_again(client: Client, store: Path, name: str):
    record = publish_capture(store, "died")
    directory = store / "captures" / record.id / "plugins/profile/died"
    queries = [
        {"run": record.xprof_run, "tag": tool, "host": "vm"} for tool in ("overview_page", "trace_viewer@")
    ]
    whole = [body(client.get(f"{P}/data", query_string=query)) for query in queries]
    assert not (directory / caches.MARK).exists()
    # XProf trusts what is cut off: with it, one of the tools has nothing to show.
    (directory / name).write_bytes((directory / name).read_bytes()[:500])
    assert [client.get(f"{P}/data", query_string=query).status_code for query in queries].count(404) == 1
    # The mark of one that is at work elsewhere: nothing is thrown away.
    (directory / caches.MARK).write_text("\n")
    with (directory / caches.MARK).open("rb") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        assert [client.get(f"{P}/data", query_string=query).status_code for query in queries].count(404) == 1
    # The mark of one that died at its work.
    for query, expected in zip(queries, whole, strict=True):
        answer = client.get(f"{P}/data", query_string=query)
        assert answer.status_code == 200
        assert len(body(answer)) == pytest.approx(len(expected), rel=0.02)
    assert not (directory / caches.MARK).exists()
    assert (directory / "vm.xplane.pb").exists()


WORKER = """
import sys, threading, time
from pathlib import Path
from jupyterlab_jaxprof.server.viewers import caches

directory, rounds = Path(sys.argv[1]), int(sys.argv[2])
faults = []
caches.discard = lambda directory: faults.append("thrown away")

def work():
    for _ in range(rounds):
        with caches.at_work(directory):
            if not (directory / caches.MARK).exists():
                faults.append("no mark")
            time.sleep(0)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(faults), sorted(set(faults)))
"""


def test_many_requests_at_once_share_one_mark(tmp_path: Path):
    """Eight threads of one viewer: always marked, and none is taken for one that died."""
    command = [sys.executable, "-c", WORKER, str(tmp_path), "500"]
    worked = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert worked.stdout == "0 []\n", worked.stderr
    assert list(tmp_path.iterdir()) == []


def test_viewers_of_two_servers_share_a_directory(tmp_path: Path):
    """Two processes, eight threads each: always marked, until the last has ended."""
    command = [sys.executable, "-c", WORKER, str(tmp_path), "200"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert not [output for output in outputs if "no mark" in output or not output]
    # Nobody is left, so whoever comes next throws nothing away.
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_traces_is_explained(client: Client, store: Path):
    directory = store / "captures/none/plugins/profile/x"
    directory.mkdir(parents=True)
    assert "no trace file" in client.get("/-/run?run=none/x").json["problem"]
    assert "no run" in sentence(client.get("/-/run?run=none/y"), 404)


def test_a_read_only_store_is_explained(tmp_path: Path):
    """In a process without root's right to write everywhere."""
    logdir = tmp_path / "captures"
    unpacked("no_steps", logdir / "c/plugins/profile/s")
    program = (
        "import sys; from pathlib import Path; from werkzeug.test import Client;"
        "from jupyterlab_jaxprof.server.viewers import gate, xprof_app, xprof_rules;"
        "logdir = Path(sys.argv[1]); application, _ = xprof_app.build(logdir);"
        "client = Client(gate.Gate(application, xprof_rules.XProfRules(logdir)));"
        "print(client.get('/-/run?run=c/s').json['notice']);"
        "q = '?run=c/s&tag=trace_viewer@&host=vm';"
        "answer = client.get('/data/plugin/profile/data' + q);"
        "print(answer.status_code, answer.json['message'])"
    )
    for directory in [logdir, *logdir.rglob("*")]:
        directory.chmod(0o555 if directory.is_dir() else 0o444)
    answer = subprocess.run(
        [sys.executable, "-c", program, str(logdir)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_obey_modes,
    )
    notice, explained = answer.stdout.strip().splitlines()[-2:]
    assert "can't be written" in notice, answer.stderr
    assert explained.startswith("404 ")
    assert "can't be written" in explained


def _obey_modes() -> None:
    """Give up CAP_DAC_OVERRIDE, which lets root write whatever the mode."""
    pr_capbset_drop, cap_dac_override = 24, 1
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(
        pr_capbset_drop, cap_dac_override, 0, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "CAP_DAC_OVERRIDE can't be dropped")


def test_an_answer_over_the_proxys_limit_is_a_sentence(store: Path, monkeypatch):
    def application(environ, start_response):
        return Response(b"x" * 3000)(environ, start_response)

    # jupyter-server-proxy makes tornado's client with its own limit.
    assert SimpleAsyncHTTPClient(force_instance=True).max_buffer_size > gate.MAX_BODY_BYTES
    client = Client(Gate(application, XProfRules(store / "captures")))
    assert client.get(f"{P}/").status_code == 200
    monkeypatch.setattr(gate, "MAX_BODY_BYTES", 2000)
    assert "more than" in sentence(client.get(f"{P}/"), 413)


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
