"""%%jaxtrace on an NVIDIA GPU: what only a real one shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from tests.support.shells import running_shell
from tests.support.traced_program import running_program


def gpus() -> list[str]:
    """The GPUs that the driver shows, without importing JAX."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if line.startswith("GPU ")]


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpus(), reason="no NVIDIA GPU is visible")]

SETUP = """\
import jax, jax.numpy as jnp
assert jax.default_backend() == "gpu", jax.devices()
@jax.jit
def train_step(w, x):
    for _ in range(8):
        x = jnp.tanh(x @ w)
    return w * 0.999 + 1e-6 * (x.T @ x), (x * x).mean()
w = jax.random.normal(jax.random.key(0), (4096, 4096)) / 64
x = jax.random.normal(jax.random.key(1), (4096, 4096))
w, loss = train_step(w, x)
jax.block_until_ready((w, loss))
"""


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def shell(store, monkeypatch):
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    with running_shell("jupyterlab_jaxprof") as shell:
        outcome = shell.run(SETUP)
        assert outcome.error is None, outcome.text
        yield shell


def newest(store):
    return store.list(limit=1).rows[0].record


def planes(store, record):
    """`{plane: {line: events}}` of a record's xplane."""
    import jax

    (path,) = [file.path for file in record.files if file.role == "xplane"]
    data = jax.profiler.ProfileData.from_file(str(store.directory(record.id) / path))
    return {plane.name: {line.name: list(line.events) for line in plane.lines} for plane in data.planes}


def device_events(store, record, number=0):
    lines = planes(store, record)[f"/device:GPU:{number}"]
    return [event for line, events in lines.items() if line.startswith("Stream") for event in events]


def annotations(store, record, name):
    lines = planes(store, record)["/host:CPU"].values()
    found = [event for events in lines for event in events if event.name == name]
    return {dict(event.stats)["step_num"]: event for event in found}


def test_steps_hold_their_kernels(shell, store):
    outcome = shell.run("%%jaxtrace gpu --steps 5 --save capture\nw, loss = train_step(w, x)")
    assert outcome.error is None, outcome.text
    record = newest(store)
    assert record.status is Status.OK, record.reason
    assert record.environment["devices"][0]["platform"] == "gpu"
    assert record.environment["devices"][0]["kind"].startswith("NVIDIA")
    assert not any("no events of the GPU" in notice for notice in record.notices)
    assert not any("of a CPU" in notice for notice in record.notices)
    kernels = device_events(store, record)
    steps = annotations(store, record, "train_step")
    assert sorted(steps) == list(range(5))
    assert record.steps["count"] == 5
    assert record.steps["name"] == "train_step"
    # The barrier: every step's matrix products lie inside its annotation, though nothing in the cell waits.
    heavy = [event for event in kernels if event.duration_ns > 100_000]
    assert len(heavy) >= 5 * 8
    for number, step in steps.items():
        inside = [k for k in heavy if step.start_ns <= k.start_ns and k.end_ns <= step.end_ns]
        assert len(inside) >= 8, f"step {number}"
        busy_ns = sum(k.duration_ns for k in inside)
        assert record.steps["durations_ms"][number] * 1e6 >= busy_ns * 0.95


def test_dropped_results_are_waited_for(shell, store):
    shell.run("%%jaxtrace once\ntrain_step(w, x);")
    record = newest(store)
    busy_ms = sum(event.duration_ns for event in device_events(store, record)) / 1e6
    assert busy_ms > 1
    assert record.summary["wall_ms"] >= busy_ms * 0.95


def test_the_wall_time_has_no_share_of_the_profilers_start_and_end(shell, store):
    shell.run("%%jaxtrace warm\ntrain_step(w, x);")
    shell.run("%%jaxtrace timed\ntrain_step(w, x);")
    record = newest(store)
    busy_ms = sum(event.duration_ns for event in device_events(store, record)) / 1e6
    assert record.summary["wall_ms"] < busy_ms + 50


def test_command_buffers_are_told_exactly_when_kernels_ran_in_them(shell, store):
    shell.run("%%jaxtrace buffers --steps 3\nw, loss = train_step(w, x)")
    record = newest(store)
    operations = [dict(event.stats).get("hlo_op", "") for event in device_events(store, record)]
    in_buffers = any(operation.startswith("command_buffer") for operation in operations)
    assert any("xla_gpu_enable_command_buffer" in notice for notice in record.notices) is in_buffers


def test_many_traces_in_one_process(shell, store):
    """The profiler's GPU half starts and ends with each trace."""
    for number in range(5):
        shell.run(f"%%jaxtrace run{number}\ntrain_step(w, x);")
        assert len(device_events(store, newest(store))) >= 8, number
    assert store.list().total == 5


def test_the_profiler_recovers_from_a_failed_export(shell, store, tmp_path):
    (tmp_path / "file").touch()
    assert shell.run(f"with jax.profiler.trace('{tmp_path / 'file'}'): train_step(w, x)").error is not None
    outcome = shell.run("%%jaxtrace after\ntrain_step(w, x);")
    assert outcome.error is None, outcome.text
    assert newest(store).status is Status.OK
    assert len(device_events(store, newest(store))) >= 8


def test_a_cell_that_raises_keeps_its_kernels(shell, store):
    outcome = shell.run("%%jaxtrace broken\ntrain_step(w, x)[0].block_until_ready()\n1 / 0")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert newest(store).status is Status.FAILED
    assert len(device_events(store, newest(store))) >= 8


def test_several_cells(shell, store):
    shell.run("%jaxtrace start several")
    shell.run("w, loss = train_step(w, x)")
    outcome = shell.run("%jaxtrace stop")
    assert outcome.error is None, outcome.text
    assert len(device_events(store, newest(store))) >= 8


def test_all_devices_are_in_the_record_and_the_barrier_waits_for_each(shell, store):
    import jax

    cell = "%%jaxtrace all\nfor d in jax.local_devices():\n    train_step(*jax.device_put((w, x), d))"
    shell.run(cell)
    record = newest(store)
    assert len(record.environment["devices"]) == jax.local_device_count()
    for device in jax.local_devices():
        busy_ms = sum(event.duration_ns for event in device_events(store, record, device.id)) / 1e6
        assert 0 < busy_ms <= record.summary["wall_ms"] * 1.05


def test_another_program_on_the_gpu_is_traced(shell, store, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with running_program() as address:
        outcome = shell.run(f"%jaxtrace remote --remote {address} --duration-ms 500")
        assert outcome.error is None, outcome.text
    record = newest(store)
    assert record.status is Status.OK, record.reason
    assert record.environment["devices"][0]["platform"] == "gpu"
    assert record.steps["name"] == "remote_step"
    assert len(device_events(store, record)) >= 5


def test_a_trace_survives_the_kernel_that_took_it(store, monkeypatch, tmp_path):
    """cuptiFinalize has been known to end the process: by then the capture is published."""
    code = (
        "import os; from tests.support.shells import running_shell\n"
        f"with running_shell('jupyterlab_jaxprof') as shell:\n"
        f"    shell.run({SETUP!r})\n"
        "    print(shell.run('%%jaxtrace child\\ntrain_step(w, x);').text)\n"
    )
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(device_events(store, newest(store))) >= 8
