from __future__ import annotations

import time
from pathlib import Path

import pytest

from jupyterlab_jaxprof.tracing import profile_options
from jupyterlab_jaxprof.tracing.profiler import Profiler


def silent(_sentence: str) -> None:
    pass


def program(jax) -> None:
    """A program of a user's, with marks wherever a user may set them."""
    import numpy as np

    jnp, mark = jax.numpy, jax.profiler.TraceAnnotation

    def on_the_host(y):
        with mark("in callback"):
            return np.asarray(y) * 2

    @jax.jit
    def train_step(w, x):
        y = jax.pure_callback(on_the_host, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.tanh(x @ w))
        return (y @ w).sum()

    @jax.profiler.annotate_function
    def preprocess(number):
        with mark("inner part", batch=number, path="/x"):
            time.sleep(0.001)
        return np.ones((32 if number < 3 else 20, 64), np.float32)

    def traced(x):
        with mark("while tracing"):
            return jax.lax.fori_loop(0, 3, lambda _, c: c @ c, x)

    w = jnp.ones((64, 64))
    for number in range(4):
        with jax.profiler.StepTraceAnnotation("train", step_num=number + 10):
            float(train_step(w, preprocess(number)))
            with mark("eager"):
                (jnp.sin(w) + jnp.cos(w)).block_until_ready()
    with mark("call"):
        jax.jit(traced)(w).block_until_ready()
    jax.jit(lambda x: x - 1).lower(w).compile()(w).block_until_ready()


@pytest.fixture(scope="session", params=[0, 1], ids=["lean", "python"])
def cpu_trace(request, tmp_path_factory) -> tuple[Path, bool]:
    """A trace that the JAX at hand writes of `program`, and whether with its Python tracer."""
    import jax

    from jupyterlab_jaxprof.cell.barrier import Barrier

    directory = tmp_path_factory.mktemp("trace")
    profiler = Profiler(directory, profile_options({"python_tracer_level": request.param}))
    profiler.start()
    barrier = Barrier()
    barrier.drain()
    program(jax)
    barrier.wait()
    profiler.stop(directory / "trash", silent)
    (path,) = directory.rglob("*.xplane.pb")
    return path, bool(request.param)
