"""Nothing that a cell enqueued on a GPU is still running when it is over.

A GPU runs in order what is enqueued, so whatever were left would delay the next computation.
"""

from __future__ import annotations

import threading
import time

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.cell import Barrier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX sees no GPU here"),
]

KEPT = []
CALLED = []


@jax.jit
def work(x):
    """Some tens of milliseconds on a current GPU."""
    return jax.lax.fori_loop(0, 60, lambda _, y: y @ x / jnp.max(jnp.abs(y)), x)


@jax.jit
def callback(y):
    jax.debug.callback(CALLED.append, y[0, 0])


class Holder:
    def __init__(self, array):
        self.array = array


def in_a_thread(x):
    thread = threading.Thread(target=lambda: KEPT.append(work(x)))
    thread.start()
    thread.join()


def on_every_device(x):
    for device in jax.local_devices():
        work(jax.device_put(x, device))


ENQUEUED = {
    "stored": lambda x: KEPT.append(work(x)),
    "dropped": work,
    "hidden": lambda x: KEPT.append(Holder(work(x))),
    "callback": lambda x: callback(work(x)),
    "another thread": in_a_thread,
    "every device": on_every_device,
}


@pytest.mark.parametrize("name", ENQUEUED)
def test_all_that_was_enqueued_has_ended(name):
    x = jax.random.normal(jax.random.key(0), (4096, 4096))
    tiny = [jax.device_put(jnp.zeros(()), device) for device in jax.local_devices()]
    ENQUEUED[name](x)
    barrier = Barrier()
    barrier.wait()
    for t in tiny:
        (t + 1).block_until_ready()
    KEPT.clear()
    CALLED.clear()
    ENQUEUED[name](x)
    returned_ns = time.perf_counter_ns()
    done_ns = barrier.wait()
    started_ns = time.perf_counter_ns()
    for t in tiny:
        (t + 1).block_until_ready()
    left_ns = time.perf_counter_ns() - started_ns
    assert len(CALLED) == (name == "callback")
    assert done_ns - returned_ns > 20e6 or name == "callback"
    assert left_ns < 3e6


def test_an_idle_barrier_costs_microseconds():
    barrier = Barrier()
    barrier.wait()
    times_ns = []
    for _ in range(200):
        started_ns = time.perf_counter_ns()
        barrier.wait()
        times_ns.append(time.perf_counter_ns() - started_ns)
    assert sorted(times_ns)[100] < 1e6


def test_a_short_step_takes_what_it_takes_when_its_result_is_waited_for():
    """The fences' own time, as long as such a step, is not the step's: on one device and on several."""
    step = jax.jit(lambda x: jnp.tanh(x @ x) / 100)
    x = jax.random.normal(jax.random.key(0), (1024, 1024))
    barrier = Barrier()
    by_hand_ns, measured_ns = [], []
    for _ in range(100):
        barrier.drain()
        started_ns = time.perf_counter_ns()
        y = step(x)
        y.block_until_ready()
        by_hand_ns.append(time.perf_counter_ns() - started_ns)
        barrier.drain()
        started_ns = time.perf_counter_ns()
        y = step(x)
        measured_ns.append(barrier.wait() - started_ns)
    by_hand, measured = sorted(by_hand_ns)[50], sorted(measured_ns)[50]
    print(f"by hand {by_hand / 1e3:.1f} us, measured {measured / 1e3:.1f} us")
    assert 0.9 * by_hand < measured < 1.25 * by_hand + 20e3
