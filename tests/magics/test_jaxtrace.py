"""%%jaxtrace in a real shell, with the real profiler."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Status
from jupyterlab_jaxprof.magics.jaxtrace_arguments import HELP
from jupyterlab_jaxprof.tracing.contents import JSON_EVENT_LIMIT
from tests.magics.conftest import only_record, records
from tests.support import traces

SETUP = "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: (x @ x).sum())\nx = jnp.ones((100, 100))\n"


def xplane(store, record) -> Path:
    (path,) = [file.path for file in record.files if file.role == "xplane"]
    return store.directory(record.id) / path


def test_a_cell_is_traced_kept_and_its_value_shown_below_the_card(shell, store):
    outcome = shell.run("%%jaxtrace first\ny = f(x)\ny")
    assert float(outcome.result.result) == 1_000_000
    assert float(shell.names["y"]) == 1_000_000
    assert outcome.text.index("trace  first  ok") < outcome.text.index("Out[")
    record = only_record(store)
    assert (record.status, record.kind, record.name) == (Status.OK, "trace", "first")
    assert record.magic == "%%jaxtrace first"
    assert record.cell == "y = f(x)\ny\n"
    assert sorted(file.role for file in record.files) == ["trace_json", "xplane"]
    assert record.xprof_run == f"{record.id}/first"
    assert record.summary["headline"]["value"] == record.summary["wall_ms"] > 0
    assert record.environment["devices"][0]["platform"] == "cpu"
    assert any("trace viewer and graph viewer" in notice for notice in record.notices)
    assert traces.events(xplane(store, record)) > 0


def test_without_a_name_it_is_the_cells_number(shell, store):
    outcome = shell.run("%%jaxtrace\n1;")
    assert only_record(store).name == f"In [{outcome.result.execution_count}]"


@pytest.mark.parametrize("name", ["a/b/../c", "Größe & <b>", "../../x", "con spaces", "名前"])
def test_any_name_is_kept_and_becomes_one_directory(shell, store, name):
    shell.run(f'%%jaxtrace "{name}"\n1;')
    record = only_record(store)
    assert record.name == name
    assert xplane(store, record).relative_to(store.captures_dir).parts[1:3] == ("plugins", "profile")
    assert len(xplane(store, record).relative_to(store.captures_dir).parts) == 5


def test_braces_and_dollars_are_taken_as_they_are(shell, store):
    shell.run('%%jaxtrace "{x} $x"\n1;')
    assert only_record(store).name == "{x} $x"


def test_steps_are_annotated_timed_and_each_waited_for(shell, store):
    shell.run("n = []\nslow = jax.jit(lambda x: jax.lax.fori_loop(0, 60, lambda i, y: y @ x / 300, x))")
    shell.run("big = jnp.ones((300, 300)); slow(big).block_until_ready()")
    shell.run("%%jaxtrace --steps 4 --save capture\nslow(big); n.append(1); print(len(n))")
    assert shell.names["n"] == [1] * 4
    record = only_record(store)
    steps = record.steps
    assert (steps["name"], steps["count"], len(steps["durations_ms"])) == ("step", 4, 4)
    assert record.summary["headline"] == {"label": "median step", "value": steps["median_ms"], "unit": "ms"}
    annotated = traces.steps(xplane(store, record))["step"]
    assert [number for number, _ in annotated] == [0, 1, 2, 3]
    # The result is dropped: only the barrier makes the step as long as its work.
    assert min(duration_ns for _, duration_ns in annotated) / 1e6 > steps["min_ms"] * 0.8
    assert steps["min_ms"] > 5
    assert shell.names["capture"].steps == steps
    assert shell.names["capture"].file("xplane") == xplane(store, record)


def test_all_steps_print_and_the_last_value_counts(shell):
    shell.run("k = 0")
    outcome = shell.run("%%jaxtrace --steps 3 --step-name tick\nk += 1\nprint('step', k)\nk")
    assert outcome.result.result == 3
    assert [f"step {k}" in outcome.text for k in (1, 2, 3)] == [True] * 3


def test_steps_are_named_after_the_function(shell, store):
    shell.run("%%jaxtrace --steps 2\ny = f(x)")
    assert only_record(store).steps["name"] == "f"


def test_steps_without_the_host_tracer_are_timed_and_told(shell, store):
    shell.run("%%jaxtrace --steps 2 --host-level 0\ny = f(x)")
    record = only_record(store)
    assert record.steps["count"] == 2
    assert any("--host-level 0" in notice for notice in record.notices)
    assert traces.steps(xplane(store, record)) == {}


def test_steps_that_the_cell_marks_itself(shell, store):
    shell.run(
        "%%jaxtrace\nfor i in range(5):\n    with jax.profiler.StepTraceAnnotation('train', step_num=i):\n"
        "        f(x).block_until_ready()"
    )
    steps = only_record(store).steps
    assert (steps["name"], steps["count"]) == ("train", 5)


def test_a_cell_that_raises_is_kept_and_raises(shell, store):
    outcome = shell.run("%%jaxtrace broken --steps 3 --save capture\nf(x)\n1 / 0")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert "----> 3 1 / 0" in outcome.text
    assert "jaxtrace.py" not in outcome.text
    record = only_record(store)
    assert record.status is Status.FAILED
    raised = "The cell raised ZeroDivisionError: division by zero"
    assert record.reason == f"{raised} in step 0 (counted from 0); the trace ends there."
    assert traces.events(xplane(store, record)) > 0
    assert shell.names["capture"].status is Status.FAILED
    assert record.steps is None, "none has ended"
    assert record.summary["timeline"]["window"].endswith(
        "The last `step` did not end, and is not counted among the steps."
    )


def test_all_times_of_steps_are_of_those_that_ended_and_by_one_clock(shell, store):
    shell.run("import time; naps = iter([0.001] * 6 + [0.02])")
    shell.run("%%jaxtrace --steps 9 --step-name nap\ntime.sleep(next(naps))")
    steps = only_record(store).steps
    durations_ms = steps["durations_ms"]
    assert (steps["count"], len(durations_ms)) == (7, 7)
    low_ms, high_ms = steps["quartiles_ms"]
    assert steps["min_ms"] <= low_ms <= steps["median_ms"] <= high_ms <= steps["max_ms"]
    slowest = steps["slowest"][0]
    assert slowest["duration_ms"] == durations_ms[slowest["number"]] == pytest.approx(steps["max_ms"])
    assert "did not end" in only_record(store).summary["timeline"]["window"]


def test_a_step_that_donates_its_input_is_explained(shell, store):
    shell.run("g = jax.jit(lambda x: x + 1, donate_argnums=0)")
    outcome = shell.run("%%jaxtrace --steps 3\nz = g(x)")
    assert "deleted or donated" in outcome.text or "has been deleted" in outcome.text
    assert any("donated" in notice for notice in only_record(store).notices)


def test_system_exit(shell, store):
    outcome = shell.run("%%jaxtrace\nraise SystemExit(3)")
    assert isinstance(outcome.error, SystemExit)
    assert only_record(store).status is Status.FAILED


def test_no_card(shell, store):
    outcome = shell.run("%%jaxtrace quiet --no-card\n7")
    assert outcome.text.strip() == f"Out[{outcome.result.execution_count}]: 7"
    assert only_record(store).name == "quiet"
    assert "1 / 0" in shell.run("%%jaxtrace quiet --no-card\n1 / 0").text


def test_perfetto_file_ends_in_no_empty_event(shell, store):
    shell.run("%%jaxtrace --perfetto\nf(x)")
    record = only_record(store)
    (path,) = [file.path for file in record.files if file.role == "perfetto"]
    trace = json.loads(gzip.decompress((store.directory(record.id) / path).read_bytes()))
    assert trace["traceEvents"][-1] != {}


def test_perfetto_needs_no_port_and_no_browser(shell, store):
    """JAX's own link serves the file on port 9001, and blocks the cell until a browser has fetched it."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # taken by somebody else: just as well
            stack.enter_context(socket.create_server(("127.0.0.1", 9001)))
        assert shell.run("%%jaxtrace --perfetto\n5").result.result == 5
    assert [file.role for file in only_record(store).files].count("perfetto") == 1


@pytest.mark.parametrize(("options", "has_python"), [("", False), ("--python 0", False), ("--python", True)])
def test_python_functions_are_traced_only_if_asked_for(shell, store, options, has_python):
    shell.run(f"%%jaxtrace {options}\nfor i in range(100): abs(i)")
    events = json.loads(gzip.decompress(_trace_json(store, only_record(store)).read_bytes()))["traceEvents"]
    assert any("abs" in event.get("name", "") for event in events) is has_python


def _trace_json(store, record) -> Path:
    (path,) = [file.path for file in record.files if file.role == "trace_json"]
    return store.directory(record.id) / path


def test_over_a_million_events_the_json_is_said_to_be_cut(shell, store):
    outcome = shell.run("%%jaxtrace flood --python\nfor i in range(1_000_100): abs(i)")
    assert "Writing the trace" in outcome.text
    record = only_record(store)
    assert any("more than 1,000,000 events" in notice for notice in record.notices)
    assert record.status is Status.OK
    assert traces.events(xplane(store, record)) > JSON_EVENT_LIMIT


def test_wrong_options_run_nothing(shell, store):
    for line in ("my run", "--steps x", "--option nonsense=1", "--save 1x", "--dir /proc/nowhere", "--nope"):
        outcome = shell.run(f"%%jaxtrace {line}\nran = True")
        assert outcome.text.startswith("UsageError: ")
        assert "Traceback" not in outcome.text
        assert "ran" not in shell.names
    assert records(store) == []
    assert not list(store.root.glob("partial/*"))


def test_a_directory_of_ones_own(shell, store, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = shell.run('%%jaxtrace mine --dir "~/my traces/é" --save capture\nf(x)')
    capture = shell.names["capture"]
    assert capture.directory.parent == tmp_path / "my traces" / "é"
    assert traces.events(capture.file("xplane")) > 0
    assert json.loads((capture.directory / "capture.json").read_text())["name"] == "mine"
    assert str(capture.directory) in outcome.text
    assert records(store) == []
    assert not (tmp_path / "store" / "captures").exists() or not any(store.captures_dir.iterdir())


def test_a_directory_that_is_a_file(shell, tmp_path):
    (tmp_path / "file").touch()
    outcome = shell.run(f"%%jaxtrace --dir {tmp_path / 'file'}\nran = True")
    assert outcome.text.startswith("UsageError: %%jaxtrace: No capture can be written in")
    assert "ran" not in shell.names
    assert shell.run("%%jaxtrace\n1;").error is None


def test_a_store_that_cannot_be_written(shell, tmp_path, monkeypatch):
    (tmp_path / "blocked").touch()
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "blocked" / "store"))
    outcome = shell.run("%%jaxtrace\nran = True")
    assert outcome.text.startswith("UsageError: %%jaxtrace: No capture can be written in")
    assert "ran" not in shell.names


@pytest.mark.parametrize("cell", ["%%jaxtrace", "%%jaxtrace name\n", "# why\n\n%%jaxtrace\n"])
def test_an_empty_body_gets_our_own_sentence(shell, store, cell):
    text = shell.run(cell).text
    assert text.startswith("UsageError: %%jaxtrace: there is nothing to run")
    assert "Did you mean" not in text
    assert records(store) == []
    assert "--steps N" in shell.run("%%jaxtrace --help").text


def test_an_expression_is_no_use(shell):
    outcome = shell.run("%jaxtrace f(x)")
    assert outcome.text.startswith("UsageError: %jaxtrace: it traces no expression.")


def test_top_level_await(shell, store):
    outcome = shell.run("%%jaxtrace --steps 2 --step-name nap\nimport asyncio\nawait asyncio.sleep(0.02)\n3")
    assert outcome.result.result == 3
    assert only_record(store).steps["min_ms"] >= 20


def test_captures_are_private(shell, store):
    shell.run("%%jaxtrace\n1;")
    assert stat.S_IMODE(xplane(store, only_record(store)).stat().st_mode) == 0o600
    assert not list((store.root / "partial").iterdir())


def test_xprof_reads_the_run_and_its_step(shell, store):
    shell.run("%%jaxtrace --steps 2 --step-name our_step\nf(x)")
    path = xplane(store, only_record(store))
    code = (
        "import sys; from xprof.convert import raw_to_tool_data as convert\n"
        "print(convert.xspace_to_tool_data([sys.argv[1]], 'trace_viewer', {})[0])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "our_step" in done.stdout


@pytest.mark.parametrize(
    "cell",
    [
        "%%jaxtrace?",
        "%jaxtrace?",
        "%jaxtrace --help",
        "%jaxtrace help",
        "%jaxtrace start -h",
        "%jaxtrace stop --help",
        "%%jaxtrace my run --steps x --help\nran = True",
    ],
)
def test_help_is_shown_whole_and_nothing_runs(shell, store, cell):
    outcome = shell.run(cell)
    assert outcome.error is None
    assert HELP in outcome.text
    assert "ran" not in shell.names
    assert not store.root.exists()


def test_a_name_is_no_call_for_help(shell, store):
    shell.run('%%jaxtrace "no --help"\n1;')
    assert only_record(store).name == "no --help"


def test_a_disk_that_fills_up(shell, store):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # no larger file can be written from now on
    try:
        outcome = shell.run("%%jaxtrace large --python\nfor i in range(20_000): abs(i)\n5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert outcome.result.result == 5
    record = only_record(store)
    assert record.status is Status.FAILED
    assert "could not write the trace" in record.reason
    assert record.xprof_run is None
    assert record.files == ()
    assert shell.run("%%jaxtrace next\n1;").error is None
    assert records(store)[0].status is Status.OK


def test_a_capture_that_cannot_be_published_costs_no_result(shell, store):
    outcome = shell.run("%%jaxtrace\nimport shutil, os\nshutil.rmtree(os.environ['JAXPROF_DIR'])\n5")
    assert outcome.result.result == 5
    assert "Traceback" not in outcome.text
    assert "can't be written" in outcome.text
    assert shell.run("%%jaxtrace next\n1;").error is None


def test_a_draft_that_vanishes_is_told_in_a_sentence(shell, store):
    shell.names["partial"] = store.root / "partial"
    outcome = shell.run(
        "%%jaxtrace gone\nimport shutil\nfor path in partial.iterdir():\n"
        "    shutil.rmtree(path); path.touch()\n5"
    )
    assert outcome.result.result == 5
    assert "Traceback" not in outcome.text
    assert shell.run("%%jaxtrace next\n1;").error is None
