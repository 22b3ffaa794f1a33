"""%jaxtrace --remote, against real programs with JAX's own profiler server (which hangs before JAX 0.9)."""

from __future__ import annotations

import http.server
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.cell import Cell
from jupyterlab_jaxprof.tracing import OptionError
from jupyterlab_jaxprof.tracing.remote import RemoteError, RemoteTrace, parse_targets, remote_options
from tests.support import traces
from tests.support.shells import running_shell
from tests.support.traced_program import free_port, running_program


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    with running_shell("jupyterlab_jaxprof") as shell:
        yield shell


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def programs():
    with running_program() as first, running_program() as second:
        yield first, second


def only_record(store):
    (row,) = store.list().rows
    return row.record


def files(record):
    return [Path(file.path).name for file in record.files]


def test_two_programs_become_one_capture_with_a_file_each(shell, store, programs):
    outcome = shell.run(f"%jaxtrace both --remote {','.join(programs)} --duration-ms 300 --save capture")
    assert "trace  both  ok" in outcome.text
    record = only_record(store)
    assert files(record) == sorted(address.replace(":", "_") + ".xplane.pb" for address in programs)
    assert record.xprof_run == f"{record.id}/both"
    assert record.steps["name"] == "remote_step"
    assert 2 < record.steps["count"] < 100
    assert record.findings
    assert str(record.findings[0]["title"])[:30] in outcome.text
    for file in record.files:
        assert traces.steps(store.directory(record.id) / file.path)["remote_step"]
    assert shell.names["capture"].name == "both"


def test_under_a_cell_its_value_is_kept(shell, store, programs):
    host, _, shell.names["port"] = programs[0].rpartition(":")
    outcome = shell.run(f"%%jaxtrace driven --remote {host}:{{port}} --duration-ms 200\na = 5\na")
    assert outcome.result.result == 5
    assert only_record(store).cell == "a = 5\na\n"


def test_one_of_two_fails(shell, store, programs):
    outcome = shell.run(f"%jaxtrace half --remote {programs[0]},localhost:{free_port()} --duration-ms 200")
    assert outcome.error is None
    record = only_record(store)
    assert record.status is Status.PARTIAL
    assert record.reason.startswith("Nothing listens at localhost:")
    assert files(record) == [programs[0].replace(":", "_") + ".xplane.pb"]


def test_a_program_that_does_nothing(shell, store):
    with running_program(works=False) as address:
        outcome = shell.run(f"%jaxtrace --remote {address} --duration-ms 100")
    assert outcome.text.startswith(
        f"UsageError: %jaxtrace: The program at {address} did no JAX work within 100 ms"
    )
    assert store.list().total == 0
    assert not list((store.root / "partial").iterdir())


def test_a_port_of_something_else(shell):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        outcome = shell.run(f"%jaxtrace --remote 127.0.0.1:{server.server_port} --duration-ms 100")
        server.shutdown()
        thread.join()
    assert "is not JAX's profiler server" in outcome.text


def test_an_unknown_host(shell):
    outcome = shell.run("%jaxtrace --remote no-such-host.invalid:9012 --duration-ms 100")
    assert outcome.text.startswith("UsageError: %jaxtrace: The host no-such-host.invalid is unknown")


def test_an_interrupt_keeps_what_has_arrived(shell, store, programs):
    started_s = time.monotonic()
    with shell.interrupted_when("s so far, 0 of 1 traces have arrived"):
        outcome = shell.run(f"%jaxtrace --remote {programs[0]} --duration-ms 60000")
    assert time.monotonic() - started_s < 20
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert only_record(store).status is Status.INTERRUPTED
    # The program ends its own trace once its client is gone, and can be traced again.
    deadline_s = time.monotonic() + 20
    while "ok" not in (text := shell.run(f"%jaxtrace again --remote {programs[0]} --duration-ms 100").text):
        assert time.monotonic() < deadline_s, text
        time.sleep(0.5)


def test_a_trace_that_the_program_takes_itself_is_not_disturbed(shell, tmp_path):
    with running_program(traced_into=tmp_path / "theirs") as address:
        outcome = shell.run(f"%jaxtrace --remote {address} --duration-ms 100")
    assert "is being traced already" in outcome.text
    (theirs,) = (tmp_path / "theirs").rglob("*.xplane.pb")
    assert traces.steps(theirs)["remote_step"]


def leftovers(store) -> list[str]:
    """What a remote trace that came to nothing may have left: its draft, and the process that asks."""
    drafts = [path.name for path in store.root.glob("partial/*")]
    asking = [child.cmdline() for child in psutil.Process().children()]
    return drafts + [" ".join(command) for command in asking if "remote_client.py" in " ".join(command)]


def test_without_jax_nobody_is_asked(shell, store, programs, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    outcome = shell.run(f"%%jaxtrace --remote {programs[0]} --duration-ms 60000\n1")
    assert outcome.text.startswith("UsageError: %%jaxtrace: JAX can't be imported")
    assert leftovers(store) == []


def test_an_interrupt_outside_the_cell_leaves_nothing(shell, store, programs, monkeypatch):

    async def run(cell):
        raise KeyboardInterrupt  # no signal can be timed to arrive just there

    monkeypatch.setattr(Cell, "run", run)
    outcome = shell.run(f"%%jaxtrace --remote {programs[0]} --duration-ms 60000\n1")
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert leftovers(store) == []


def test_the_last_words_of_a_client_that_does_not_start_are_waited_for(store, tmp_path, monkeypatch):
    class SlowlyRead(list):
        def extend(self, lines):
            time.sleep(0.3)
            super().extend(lines)

    (tmp_path / "grpc.py").write_text("raise ModuleNotFoundError(\"No module named 'grpc'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    remote = RemoteTrace(store.begin("trace", "x"), parse_targets("localhost:1"), 100, remote_options({}))
    remote._stderr = SlowlyRead()
    with pytest.raises(RemoteError, match="pip install grpcio protobuf"):
        remote.start()
    assert leftovers(store) == []


@pytest.mark.parametrize(
    "text",
    ["localhost", "localhost:", ":80", "host:0", "host:65536", "a:1,,b:2", "a b:1", "::1:90", "http://a:1"],
)
def test_what_is_no_address(text):
    with pytest.raises(OptionError, match="HOST:PORT"):
        parse_targets(text)


def test_addresses_have_file_names_of_their_own():
    targets = parse_targets("grpc://a:1, a:2,[::1]:3,a:1,a_1:1,ä:1,ö:1")
    assert [target.address for target in targets] == ["a:1", "a:2", "[::1]:3", "a_1:1", "ä:1", "ö:1"]
    assert len({target.host_name for target in targets}) == 6


def test_options_that_can_be_sent():
    assert (
        remote_options({"python_tracer_level": 0, "enable_hlo_proto": "false"})["enable_hlo_proto"] is False
    )
    with pytest.raises(OptionError, match="host_tracer_level"):
        remote_options({"session_id": "x"})
    with pytest.raises(OptionError, match="takes 0, 1, 2, 3"):
        remote_options({"host_tracer_level": "x"})
