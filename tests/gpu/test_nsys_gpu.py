"""%%nsys on an NVIDIA GPU: kernels inside graphs, device time by operation, memory beside a full kernel."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.captures import Status
from jupyterlab_jaxprof.environment import nsys
from tests.gpu.test_trace_gpu import gpus
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
    assert sum(row["count"] for row in tables["kernels"]) >= 3 * 8
    assert any("dot_general" in str(row["scope"]) for row in tables["hlo_ops"]), tables["hlo_ops"]
    assert any("train_step" in row["name"] for row in tables["modules"])
    assert capture.summary["timeline"]["busy_share"] > 0.5
    assert capture.steps["count"] == 3
    assert capture.file("nsys").stat().st_size < 1_000_000
    assert "w" in " ".join(capture.record.notices)


def test_what_does_not_fit_beside_the_kernel_is_said_with_who_holds_the_rest(shell):
    outcome = shell.run("%%nsys --steps 1\nbig = jnp.zeros((60, 1 << 30), jnp.float16) + 1")
    assert "RESOURCE_EXHAUSTED" in outcome.text
    assert "GPU 0 has" in outcome.text
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in outcome.text


def test_gpu_metrics(shell):
    outcome = shell.run("%%nsys --steps 3 --save m --gpu-metrics\nw, loss = train_step(w, x)")
    assert outcome.error is None, outcome.text
    assert shell.names["m"].status is Status.OK, outcome.text
