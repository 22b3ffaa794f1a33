"""Several cells in one trace, and more than one that would trace: in a real shell, with the real profiler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax

from jupyterlab_jaxprof.captures import Status
from tests.magics.conftest import only_record, records
from tests.support.versions import enqueues_after_failures

SETUP = "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: (x @ x).sum())\nx = jnp.ones((100, 100))\n"


def test_a_trace_of_the_users_own_is_not_harmed(shell, store, tmp_path):
    jax.profiler.start_trace(str(tmp_path / "theirs"))
    outcome = shell.run("%%jaxtrace\nran = True")
    assert outcome.text.startswith("UsageError: %%jaxtrace: Another trace is running")
    assert "ran" not in shell.names
    jax.profiler.stop_trace()
    assert list((tmp_path / "theirs").rglob("*.xplane.pb"))
    assert records(store) == []


def test_a_stuck_profiler_is_freed(shell, store, tmp_path):
    (tmp_path / "file").touch()
    failed = shell.run(f"with jax.profiler.trace('{tmp_path / 'file'}'): f(x)")
    assert failed.error is not None
    assert shell.run("%%jaxtrace after\nf(x)").error is None
    assert only_record(store).status is Status.OK


def test_one_inside_another(shell, store):
    outcome = shell.run("%%jaxtrace outer\nget_ipython().run_cell_magic('jaxtrace', 'inner', 'f(x)')")
    assert (
        "UsageError: %%jaxtrace: The trace 'outer' is running in this kernel until its cell" in outcome.text
    )
    assert outcome.text.rstrip().endswith("one at a time. Nothing has run.")
    assert only_record(store).name == "outer"
    outcome = shell.run("%%jaxtrace third\n%jaxtrace start inner")
    assert outcome.text.rstrip().endswith("one at a time. No trace was started.")
    assert "cell has not run" not in outcome.text
    assert shell.run("%%jaxtrace next\n1;").error is None


def test_stopping_a_cells_trace_from_within(shell, store):
    outcome = shell.run("%%jaxtrace whole\n%jaxtrace stop\n5")
    assert "The trace 'whole' runs until its cell ends" in outcome.text
    assert only_record(store).name == "whole"


def test_a_cell_that_traces_itself(shell, store, tmp_path):
    shell.run(f"%%jaxtrace\nwith jax.profiler.trace('{tmp_path / 'own'}'): f(x)")
    assert any("leave one of the two out" in notice for notice in only_record(store).notices)


def test_a_cell_that_stops_the_trace(shell, store):
    outcome = shell.run("%%jaxtrace\nf(x)\njax.profiler.stop_trace()\n5")
    assert outcome.result.result == 5
    record = only_record(store)
    assert record.status is Status.PARTIAL
    assert "stop_trace() itself" in record.reason
    assert record.xprof_run is not None


def test_several_cells(shell, store):
    assert "Tracing 'several' until %jaxtrace stop." in shell.run("%jaxtrace start several").text
    assert "it runs until %jaxtrace stop" in shell.run("%jaxtrace").text
    shell.run("a = f(x)")
    shell.run("b = f(x)")
    assert "until %jaxtrace stop" in shell.run("%%jaxtrace\n1").text
    assert "until %jaxtrace stop" in shell.run("%jaxtrace start again").text
    outcome = shell.run("%jaxtrace stop --save capture")
    assert "trace  several  ok" in outcome.text
    record = only_record(store)
    assert record.magic == "%jaxtrace start several"
    assert "a = f(x)\n\nb = f(x)" in record.cell
    assert record.summary["headline"]["label"] == "from start to stop"
    assert shell.names["capture"].name == "several"
    assert "No trace is running" in shell.run("%jaxtrace stop").text
    assert "No trace is running" in shell.run("%jaxtrace").text


def test_start_and_stop_refuse_what_makes_no_sense(shell):
    def assert_refused(line: str, *parts: str) -> None:
        text = shell.run(line).text.rstrip()
        assert text.startswith(f"UsageError: {parts[0]}: ")
        assert text.endswith(parts[-1])
        assert all(part in text for part in parts)

    assert_refused(
        "%jaxtrace start a --steps 3", "%jaxtrace start", "a cell to repeat", "No trace was started."
    )
    assert_refused("%jaxtrace start a --remote h:1", "%jaxtrace start", "of its own", "No trace was started.")
    assert_refused("%jaxtrace start a --option x=1", "%jaxtrace start", "option x.", "No trace was started.")
    assert_refused("%jaxtrace start --dir ''", "%jaxtrace start", "a directory", "No trace was started.")
    assert_refused("%jaxtrace stop", "%jaxtrace stop", "No trace is running", "Nothing was stopped.")
    assert_refused("%jaxtrace --remote nowhere", "%jaxtrace", "HOST:PORT", "No trace was taken.")
    shell.run("%jaxtrace start a --no-card")
    assert_refused(
        "%jaxtrace start b", "%jaxtrace start", "The trace 'a' is running", "No trace was started."
    )
    assert_refused("%%jaxtrace\n1", "%%jaxtrace", "The trace 'a' is running", "Nothing has run.")
    assert_refused(
        "%jaxtrace stop --perfetto", "%jaxtrace stop", "given to %jaxtrace start", "Nothing was stopped."
    )
    assert shell.run("%jaxtrace stop").text == ""


@enqueues_after_failures
def test_start_can_be_interrupted_while_it_waits_for_earlier_work(shell, store):
    shell.run("long = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, y: y @ x / 400, x))")
    shell.run("m = jnp.ones((400, 400)); long(m, 1).block_until_ready()")
    shell.run("z = long(m, 1500)")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    outcome = shell.run("%jaxtrace start")
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert not shell.names["z"].is_ready(), "the interrupt came only when the work had ended"
    assert not list(store.root.glob("partial/*"))
    shell.names["z"].block_until_ready()
    assert "Tracing 'again'" in shell.run("%jaxtrace start again").text
    assert shell.run("%jaxtrace stop").error is None


@enqueues_after_failures
def test_start_tells_of_earlier_work(shell, store):
    shell.run("long = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, y: y @ x / 400, x))")
    shell.run("m = jnp.ones((400, 400)); long(m, 1).block_until_ready()")
    shell.run("z = long(m, 600)")
    shell.run("%jaxtrace start")
    shell.run("%jaxtrace stop")
    assert any("an earlier cell had left running" in notice for notice in only_record(store).notices)


def test_two_processes_trace_into_one_store(shell, store):
    shell.run("%jaxtrace start ours")
    code = (
        "from tests.support.shells import running_shell\n"
        "with running_shell('jupyterlab_jaxprof') as shell:\n"
        "    print(shell.run('%%jaxtrace theirs\\nimport jax; jax.numpy.ones(3)').text)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "trace  theirs  ok" in done.stdout
    shell.run("%jaxtrace stop")
    assert {(record.name, record.status) for record in records(store)} == {
        ("ours", Status.OK),
        ("theirs", Status.OK),
    }
