"""A kernel that nsys has started, on an NVIDIA GPU: kernels inside graphs that were made before, counted."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.environment import nsys
from tests.gpu.test_nsys_gpu import SETUP
from tests.gpu.test_trace_gpu import gpus
from tests.nsight.nsys_kernel import nsys_kernel

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus(), reason="no NVIDIA GPU is visible"),
    pytest.mark.skipif(nsys.best() is None, reason="there is no nsys"),
]

#: `train_step` of SETUP multiplies so often in one step, by one kernel each at least.
PRODUCTS = 8


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A kernel whose step was compiled, and captured as a graph, before anything is recorded."""
    folder = tmp_path_factory.mktemp("nsys-gpu")
    with nsys_kernel(folder, JAX_PLATFORMS="cuda") as kernel:
        reply = kernel.run(SETUP, timeout=300)
        assert reply.status == "ok", reply.text
        yield kernel, Store(folder / "store")


def newest(store: Store):
    return store.get(store.list().rows[0].id)


def kernels_of(record) -> int:
    return sum(row["count"] for row in record.summary["tables"]["kernels"])


def test_every_kernel_of_a_cell_is_counted(notebook):
    kernel, store = notebook
    reply = kernel.run("%%nsys --in-kernel warm --steps 3\nw, loss = train_step(w, x)", timeout=300)
    assert reply.status == "ok", reply.text
    record = newest(store)
    assert record.status is Status.OK, record.reason
    assert kernels_of(record) >= 3 * PRODUCTS, record.summary["tables"]["kernels"]
    assert record.summary["steps"]["count"] == 3
    assert record.summary["timeline"]["busy_share"] > 0.5
    operations = record.summary["tables"]["hlo_ops"]
    assert any("dot_general" in str(row["scope"]) for row in operations), operations


def test_what_runs_between_start_and_stop_is_counted_to_its_end(notebook):
    kernel, store = notebook
    kernel.run("%nsys start piece", timeout=300)
    kernel.run("for _ in range(20): w, loss = train_step(w, x)", timeout=300)  # not waited for
    reply = kernel.run("%nsys stop", timeout=300)
    assert reply.status == "ok", reply.text
    record = newest(store)
    assert record.status is Status.OK, record.reason
    assert kernels_of(record) >= 20 * PRODUCTS, record.summary["tables"]["kernels"]


def test_a_trace_in_this_kernel_says_who_has_the_gpus_events(notebook):
    kernel, store = notebook
    assert kernel.run("%%jaxtrace trace\nw, loss = train_step(w, x)", timeout=300).status == "ok"
    assert any(notice.startswith("This process runs under NVIDIA Nsight") for notice in newest(store).notices)


def test_the_cell_in_a_process_of_its_own_beside_this_kernel(notebook):
    kernel, store = notebook
    reply = kernel.run("%%nsys child --steps 2\nw, loss = train_step(w, x)", timeout=500)
    assert reply.status == "ok", reply.text
    assert kernels_of(newest(store)) >= 2 * PRODUCTS
