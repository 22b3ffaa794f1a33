"""How the gate mends and explains what XProf answers, and the caches that a dead XProf left."""

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

from jupyterlab_jaxprof.server.viewers import caches, gate
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules
from tests.server.conftest import publish_capture
from tests.support.gates import P, body, sentence
from tests.support.servers import ROOT, unpacked


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
