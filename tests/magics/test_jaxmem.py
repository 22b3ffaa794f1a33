"""%jaxmem and its watch in a real shell; a CPU tells of arrays and the process alone."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time

import pytest

from jupyterlab_jaxprof.captures import Record, Status, Store
from jupyterlab_jaxprof.magics.jaxmem_summary import summary_of
from jupyterlab_jaxprof.magics.jaxmem_watch import Watch
from jupyterlab_jaxprof.timing.memory import DeviceMemory, report_now
from jupyterlab_jaxprof.timing.sampling import MAX_SAMPLES, PROCESS, MemorySampler
from tests.support.shells import running_shell

NOT_STARTED = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
shell.extension_manager.load_extension("jupyterlab_jaxprof")
shell.run_cell("%jaxmem first")
assert "jax" not in sys.modules
shell.run_cell("import jax\\n%jaxmem --watch\\n%jaxmem --stop")
from jax._src import xla_bridge
assert not xla_bridge._backends
shell.run_cell("import os; os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '.5'; x = jax.numpy.ones(3)")
shell.run_cell("os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '.6'\\n%jaxmem last")
shell.run_cell("%jaxmem unfinished --watch")
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    with running_shell("jupyterlab_jaxprof") as shell:
        shell.run("import jax, jax.numpy as jnp, time\nparams = {'w': jnp.ones((600, 500))}")
        yield shell
        if Watch.running is not None:
            shell.run("%jaxmem --stop")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def newest(store) -> Record:
    return store.list().rows[0].record


def test_a_kernel_without_jax_is_told_so():
    program = (
        "import importlib.util, sys; sys.modules.pop('jax', None); found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'jax' else found(name, *rest)\n"
        "from jupyterlab_jaxprof.magics.jaxmem_summary import summary_of\n"
        "summary = summary_of(None, None); print(summary['sentence'], *summary['remarks'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("JAX is not installed in this kernel's environment. No module called jax")
    assert sys.executable in done.stdout


def test_seconds_that_stand_behind_another_option_are_told(shell, store):
    outcome = shell.run("%jaxmem --watch --save w2 5")
    assert "UsageError: %jaxmem: the seconds stand right behind --watch: --watch 5, then" in outcome.text
    assert Watch.running is None


def test_what_holds_the_memory_and_what_a_cpu_does_not_tell(shell, store):
    outcome = shell.run("%jaxmem 'before training' --save m")
    record = newest(store)
    assert (record.kind, record.name, record.status) == ("memory", "before training", Status.OK)
    assert outcome.text.splitlines()[0] == record.summary["sentence"]
    for fact in ("params['w']", "float32[600,500]", "1.20 MB", "no statistics for a CPU", "bear on GPUs"):
        assert fact in " ".join(outcome.text.split()), fact
    held = next(one for one in record.summary["memory"]["arrays"] if one["holders"] == ["params['w']"])
    assert held["size_bytes"] == 1_200_000
    assert record.summary["process_bytes"] > 10_000_000
    assert record.summary["headline"]["label"] == "arrays"
    json.dumps(shell.names["m"].to_dict())
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_variables_that_are_set_too_late_are_told(shell, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    text = " ".join(shell.run("%jaxmem").text.split())
    assert "Too late: JAX read it unset when it started" in text
    assert "Restart the kernel and set it before JAX is imported." in text


def test_before_jax_starts_nothing_is_started_and_the_kernels_end_keeps_a_watch(tmp_path, store):
    done = subprocess.run(
        [sys.executable, "-c", NOT_STARTED],
        env={**os.environ, "JAXPROF_DIR": str(store.root)}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = {row.record.name: row.record for row in store.list().rows}
    assert records["first"].summary["sentence"].startswith("JAX has not started its devices")
    assert records["first"].summary["memory"] is None
    assert "can be set" in done.stdout
    late = [one for one in records["last"].summary["variables"] if one["late"]]
    assert [(one["value"], one["read"]) for one in late] == [(".6", ".5")]
    unfinished = records["unfinished"]
    assert (unfinished.status, unfinished.reason) == (
        Status.INTERRUPTED, "The kernel ended before %jaxmem --stop.",
    )  # fmt: skip


def test_a_watch_sees_what_comes_and_goes_and_which_cells_ran(shell, store):
    assert shell.run("%jaxmem climb --watch --save w").text == "Watching memory until %jaxmem --stop.\n"
    assert "the watch 'climb' runs already" in shell.run("%jaxmem --watch").text
    shell.run("x = jnp.ones((2000, 2000)).block_until_ready()\ntime.sleep(0.3)")
    shell.run("del x\ntime.sleep(0.3)")
    outcome = shell.run("%jaxmem --stop")
    record = newest(store)
    watch = record.summary["watch"]
    arrays = next(one for one in watch["series"] if one["label"].startswith("arrays on "))
    others = arrays["columns"][0] - 1_200_000  # of other tests
    assert arrays["most_bytes"] - others >= 17_200_000
    assert arrays["columns"][-1] <= arrays["most_bytes"] - 16_000_000
    assert next(one for one in watch["series"] if one["device"] == PROCESS)["least_bytes"] > 10_000_000
    cells = {cell["code"]: cell for cell in watch["cells"]}
    made = cells["x = jnp.ones((2000, 2000)).block_until_ready()…"]
    assert made["end_ms"] - made["start_ms"] >= 300
    highest = [number for number, value in enumerate(arrays["columns"]) if value - others >= 17_200_000]
    each_ms = watch["duration_ms"] / len(arrays["columns"])
    assert made["start_ms"] - each_ms <= highest[0] * each_ms <= made["end_ms"]
    assert made["label"] in outcome.text
    assert watch["samples"] == len(shell.names["w"].samples) > 5
    json.dumps(shell.names["w"].to_dict())
    assert "no watch is running" in shell.run("%jaxmem --stop").text
    assert not [one for one in threading.enumerate() if one.name == "jaxprof-memory"]
    for event in ("pre_run_cell", "post_run_cell"):
        assert not [one for one in shell.ip.events.callbacks[event] if isinstance(one.__self__, Watch)]


def test_a_watch_ends_by_itself_at_the_end_of_the_cell_that_runs_then(shell, store):
    shell.names["Watch"] = Watch
    outcome = shell.run(
        "%jaxmem short --watch 0.1\nwhile not Watch.running.over: time.sleep(0.01)\nprint('on')"
    )
    assert outcome.error is None
    assert "the process took" in outcome.text.partition("on\n")[2]
    assert newest(store).name == "short"
    assert Watch.running is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--watch soon", "it takes seconds, more than 0"),
        ("name --stop", "--stop takes --save VAR and --no-card"),
        ("a b", "it takes one name"),
        ("--help", "Tell how much memory the devices have"),
    ],
)
def test_what_can_not_be_is_told(shell, store, line, told):
    text = shell.run(f"%jaxmem {line}").text
    assert told in text
    assert "Traceback" not in text
    assert not store.list().rows


def test_what_is_said_of_a_gpu():
    """A stand-in: no GPU is here whose allocator could be asked."""
    report = report_now({})
    report.after = [
        DeviceMemory("cuda:0", 3 * 10**9, 9 * 10**9, 60 * 10**9, 61 * 10**9),
        DeviceMemory("cuda:1", 5 * 10**9, 8 * 10**9, 60 * 10**9, 61 * 10**9),
    ]
    summary = summary_of(report, None)
    assert summary["sentence"].startswith(
        "The fullest of 2 devices, cuda:1 has 5.00 GB in use of 60.0 GB, at most 8.00 GB so far; "
    )
    assert summary["headline"] == {"label": "in use", "value": 5 * 10**9, "unit": "bytes"}
    reserved, late = summary["remarks"]
    assert reserved.startswith("Why nvidia-smi shows more: JAX takes 75 % of a GPU's memory")
    assert "61.0 GB on cuda:0" in reserved
    assert "nothing until a restart" in late


def test_sampling_is_bounded_and_its_cost_is_under_a_hundredth():
    sampler = MemorySampler()
    for _ in range(MAX_SAMPLES + 10):
        sampler.samples.append((float(len(sampler.samples)), {PROCESS: len(sampler.samples)}))
    sampler.sample()
    assert len(sampler.samples) < MAX_SAMPLES / 2 + 10
    assert sampler.interval_s >= 0.02
    assert max(sampler.columns(PROCESS, 10)) >= MAX_SAMPLES + 9  # the largest of what was merged is kept
    sampler = MemorySampler()
    sampler.start()
    time.sleep(0.5)
    sampler.stop()
    assert len(sampler.samples) >= 2
    assert sampler.interval_s >= statistics.median(sampler._costs) / 0.01
