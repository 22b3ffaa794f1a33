"""%%nsys on an NVIDIA GPU: kernels inside graphs, device time by operation, memory beside a full kernel."""

from __future__ import annotations

import subprocess

import pytest

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status
from jupyterlab_jaxprof.environment import nsys
from tests.gpu.test_trace_gpu import gpus
from tests.support import nsys_stats
from tests.support.shells import running_shell

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus(), reason="no NVIDIA GPU is visible"),
    pytest.mark.skipif(nsys.best() is None, reason="there is no nsys"),
]

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
w, loss = jax.block_until_ready(train_step(w, x))
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("JAXPROF_DIR", str(tmp_path_factory.mktemp("store")))
    with running_shell("jupyterlab_jaxprof") as shell:
        assert shell.run(SETUP).error is None
        yield shell
    patch.undo()


@pytest.mark.parametrize("options", ["", "--graphs=off"])
def test_every_kernel_is_told_with_its_operation(shell, options):
    outcome = shell.run(f"%%nsys --steps 3 --save c {options}\nw, loss = train_step(w, x)")
    assert outcome.error is None, outcome.text
    capture = shell.names["c"]
    assert capture.status is Status.OK, outcome.text
    tables = capture.summary["tables"]
    assert sum(row["count"] for row in tables["kernels"] if "gemm" in row["name"]) == 3 * 9
    products = [row for row in tables["hlo_ops"] if row["scope"].endswith("dot_general")]
    assert sum(row["count"] for row in products) == 3 * 9, tables["hlo_ops"]
    lines = SETUP.splitlines()
    for row in tables["hlo_ops"]:
        if row["source"]:
            line = lines[int(row["source"].rpartition(":")[2]) - 1]
            operator = {"dot_general": "@", "tanh": "tanh", "add": "+", "div": "mean", "mul": "*"}
            assert operator.get(row["scope"].rpartition("/")[2], "") in line, (row, line)
    assert any(row["source"] for row in products), products
    assert any("train_step" in row["name"] for row in tables["modules"])
    assert capture.summary["timeline"]["busy_share"] > 0.5
    assert capture.steps["count"] == 3
    assert capture.file("nsys").stat().st_size < 1_000_000
    assert "w" in " ".join(capture.record.notices)


def test_totals_are_those_of_nsys_stats(shell, tmp_path):
    outcome = shell.run("%%nsys --steps 2 --save t\nw, loss = train_step(w, x)\nfloat(loss)")
    assert outcome.error is None, outcome.text
    report = tmp_path / "report.nsys-rep"
    report.write_bytes(shell.names["t"].file("nsys").read_bytes())
    reports = "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_api_sum"
    command = [str(nsys.best().path), "stats", "--format=csv", f"--report={reports}", str(report)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    nsys_stats.assert_equal(timeline.read(report), nsys_stats.tables(said))


def test_ranges_of_the_user_have_the_device_time_that_they_launch(shell):
    body = "import nvtx\nwith nvtx.annotate('mine'):\n    w, loss = train_step(w, x)"
    outcome = shell.run(f"%%nsys --steps 2 --save r\n{body}")
    assert outcome.error is None, outcome.text
    summary = shell.names["r"].summary
    (mine,) = [row for row in summary["tables"]["annotations"] if row["name"] == "mine"]
    assert mine["count"] == 2
    kernels_ms = sum(row["total_ms"] for row in summary["tables"]["kernels"])
    assert mine["device_ms"] == pytest.approx(kernels_ms, rel=0.02)


def test_what_is_compiled_while_it_records_is_recorded_whole(shell):
    outcome = shell.run("%%nsys --no-warmup --steps 2 --save f\nw, loss = train_step(w, x)")
    assert outcome.error is None, outcome.text
    assert shell.names["f"].status is Status.OK, outcome.text


def test_what_does_not_fit_beside_the_kernel_is_said_with_who_holds_the_rest(shell):
    outcome = shell.run("%%nsys --steps 1\nbig = jnp.zeros((60, 1 << 30), jnp.float16) + 1")
    assert "RESOURCE_EXHAUSTED" in outcome.text
    assert "GPU 0 has" in outcome.text
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in outcome.text


def test_gpu_metrics(shell):
    outcome = shell.run("%%nsys --steps 3 --save m --gpu-metrics\nw, loss = train_step(w, x)")
    assert outcome.error is None, outcome.text
    assert shell.names["m"].status is Status.OK, outcome.text
    counters = {row["name"]: row for row in shell.names["m"].summary["tables"]["counters"]}
    assert 0 < counters["SMs Active"]["mean"] <= counters["SMs Active"]["max"] <= 100
