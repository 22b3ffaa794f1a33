"""Nothing that a cell enqueued is still running when it is over.

Whether something runs is told by the processor time that this process uses while the test sleeps.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import io_callback

from jupyterlab_jaxprof.cell import Barrier
from tests.support import probe
from tests.support.undisturbed import undisturbed
from tests.support.versions import enqueues_after_failures

pytestmark = pytest.mark.measures_time  # some milliseconds of work must still run when a test looks at it


@jax.jit
def work(x, n):
    """Some milliseconds for every unit of n, enqueued and not waited for."""
    return jax.lax.fori_loop(0, n, lambda _, y: y @ x / jnp.max(jnp.abs(y)), x)


@pytest.fixture(scope="module")
def x():
    x = jax.random.normal(jax.random.key(0), (400, 400))
    work(x, 1).block_until_ready()
    Barrier().wait()
    return x


def busy_ms(seconds=0.15):
    """Processor milliseconds that the process uses in the next moments, doing nothing itself."""
    start = time.process_time_ns()
    time.sleep(seconds)
    return (time.process_time_ns() - start) / 1e6


CALLED = []


def slow_callback(_):
    time.sleep(0.1)
    CALLED.append(True)


@jax.jit
def debug_callback(y):
    jax.debug.callback(slow_callback, y[0, 0])


@jax.jit
def unordered_callback(y):
    io_callback(slow_callback, None, y[0, 0], ordered=False)


@jax.jit
def ordered_callback(y):
    io_callback(slow_callback, None, y[0, 0], ordered=True)


class Holder:
    def __init__(self, array):
        self.array = array


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


KEPT = []
ENQUEUED = {
    "result stored": lambda x: KEPT.append(work(x, 100)),
    "result dropped": lambda x: (work(x, 100), None)[1],
    "result hidden in an object": lambda x: KEPT.append(Holder(work(x, 100))),
    "result in a nested tree with None and strings": lambda x: KEPT.append(
        [{"a": (work(x, 100), None)}, "b"]
    ),
    "one step after the other": lambda x: work(work(work(x, 30), 30), 30),
    "dropped, with a debug callback": lambda x: debug_callback(work(x, 60)),
    "dropped, with an unordered callback": lambda x: unordered_callback(work(x, 60)),
    "dropped, with an ordered callback": lambda x: ordered_callback(work(x, 60)),
    "by another thread, stored": lambda x: in_a_thread(lambda: KEPT.append(work(x, 100))),
}


CALLING = [enqueue for name, enqueue in ENQUEUED.items() if "callback" in name]


@pytest.mark.parametrize("enqueue", ENQUEUED.values(), ids=ENQUEUED.keys())
@undisturbed
def test_all_that_was_enqueued_has_ended(x, enqueue):
    enqueue(x)  # compiles
    barrier = Barrier()
    barrier.wait()
    KEPT.clear()
    CALLED.clear()
    enqueue(x)
    called_before = len(CALLED)
    returned_ns = time.perf_counter_ns()
    done_ns = barrier.wait()
    called = len(CALLED)
    assert busy_ms() < 15
    assert done_ns - returned_ns > 10e6, "the work was not asynchronous"
    assert called == len(CALLED)
    assert called_before == 0
    assert called == (enqueue in CALLING)


def test_the_work_that_these_tests_enqueue_would_be_noticed(x):
    KEPT.append(work(x, 200))
    assert busy_ms() > 50
    Barrier().wait()


def test_callbacks_have_printed_when_the_cell_is_over(shell):
    shell.run("import jax, jax.numpy as jnp, time")
    shell.run("def show(x):\n    time.sleep(0.05)\n    seen.append(int(x))\nseen = []")
    shell.run(
        "%%probe\n@jax.jit\ndef f(x):\n    def body(c, i):\n        jax.debug.callback(show, i)\n"
        "        return c, None\n    return jax.lax.scan(body, x, jnp.arange(3))[0]\nf(1.0)\nNone"
    )
    assert sorted(shell.names["seen"]) == [0, 1, 2]


def test_work_left_by_an_earlier_cell_is_waited_for_and_told(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("work(x, 200);")
    shell.run("%%probe\n1 + 1")
    run = probe.runs[-1]
    assert "work that an earlier cell had left running took" in run.notices[0]
    assert run.done_ns - run.started_ns < 50e6


def test_times_are_in_order_and_the_wait_counts(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("%%probe\nwork(x, 100);")
    run = probe.runs[-1]
    assert run.started_ns < run.returned_ns < run.done_ns
    assert run.done_ns - run.returned_ns > 20e6


def test_the_work_of_a_failed_cell_is_waited_for(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("%%probe\nwork(x, 100)\n1 / 0")
    run = probe.runs[-1]
    assert run.done_ns - run.returned_ns > 20e6
    assert not run.interrupted


def test_an_interrupt_of_the_wait_is_the_cells_and_the_next_cell_waits(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("%%probe\nwork(x, 20);")
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = shell.run("%%probe\nwork(x, 1200)\nNone")
    timer.join()
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert "----> 1 #%%probe" in outcome.text
    assert "jupyterlab_jaxprof" not in outcome.text
    assert probe.runs[-1].interrupted
    assert "goes on" in probe.runs[-1].notices[0]
    assert shell.run("%%probe\n3").result.result == 3
    assert "work that an earlier cell had left running" in probe.runs[-1].notices[0]


def test_an_interrupt_of_the_wait_for_an_earlier_cell_runs_nothing(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("%%probe\nwork(x, 20);")
    shell.run("z = work(x, 1200)")
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = shell.run("%%probe\nran = True")
    timer.join()
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert "ran" not in shell.names
    assert "this cell has not run" in probe.runs[-1].notices[-1]
    shell.run("z.block_until_ready();")


def test_an_interrupt_of_an_idle_cell_tells_nothing_of_devices(shell):
    shell.run("%%probe\nraise KeyboardInterrupt")
    assert probe.runs[-1].interrupted
    assert probe.runs[-1].notices == []


CONFIGURATIONS = {
    "x64 flipped": "jax.config.update('jax_enable_x64', not jax.config.jax_enable_x64)",
    "caches cleared": "jax.clear_caches()",
    "jit disabled": "jax.config.update('jax_disable_jit', True)",
    "transfers disallowed": "jax.config.update('jax_transfer_guard', 'disallow')",
    "NaNs debugged": "jax.config.update('jax_debug_nans', True)",
    "matmul precision": "jax.config.update('jax_default_matmul_precision', 'float32')",
    "tracer leaks checked": "jax.config.update('jax_check_tracer_leaks', True)",
    "compiles logged": "jax.config.update('jax_log_compiles', True)",
}


@pytest.mark.parametrize("change", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_what_a_cell_configures_neither_breaks_nor_slows_the_wait(shell, x, change):
    Barrier().wait()
    before = {
        name: getattr(jax.config, name)
        for name in (
            "jax_enable_x64", "jax_disable_jit", "jax_debug_nans", "jax_default_matmul_precision",
            "jax_check_tracer_leaks", "jax_log_compiles",
        )
    }  # fmt: skip
    shell.names["jax"] = jax
    compiles = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _seconds, **_: compiles.append(event) if "backend_compile" in event else None
    )
    try:
        assert shell.run(f"%%probe\n{change}").error is None
        assert shell.run("%%probe\n1").error is None
        assert compiles == []
    finally:
        jax.config.update("jax_transfer_guard", None)
        for name, value in before.items():
            jax.config.update(name, value)


@undisturbed
def test_making_a_barrier_compiles_once_a_process_and_says_nothing_of_it(x, capfd, caplog):
    import jupyterlab_jaxprof.cell.barrier as module

    module._fences.clear()
    with jax.log_compiles(True), jax.transfer_guard("disallow"), jax.disable_jit():
        Barrier().wait()
    assert "jaxprof_fence" not in caplog.text + capfd.readouterr().err
    start = time.perf_counter_ns()
    for _ in range(100):
        Barrier().wait()
    assert (time.perf_counter_ns() - start) / 100 < 5e6


MANY_DEVICES = """
import time, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jupyterlab_jaxprof.cell import Barrier
devices = jax.local_devices()
assert len(devices) == 4
@jax.jit
def work(x):
    return jax.lax.fori_loop(0, 40, lambda _, y: y @ x / jnp.max(jnp.abs(y)), x)
x = jax.random.normal(jax.random.key(0), (400, 400))
single = [jax.device_put(x, device) for device in devices]
sharded = jax.device_put(x, NamedSharding(Mesh(np.array(devices), ("d",)), P("d")))
def one(): work(single[2])
def each():
    for y in single: work(y)
def all_at_once(): work(sharded)
def mixed():
    work(sharded); work(single[3]); work(sharded); work(single[1])
for enqueue in (one, each, all_at_once, mixed): enqueue()
barrier = Barrier(); barrier.wait()
for enqueue in (one, each, all_at_once, mixed):
    enqueue()
    returned = time.perf_counter_ns()
    done = barrier.wait()
    used = time.process_time_ns()
    time.sleep(0.15)
    left_ms = (time.process_time_ns() - used) / 1e6
    print(enqueue.__name__, "waited", (done - returned) / 1e6, "left", left_ms)
    assert left_ms < 15, (enqueue.__name__, left_ms)
    assert done - returned > 5e6, enqueue.__name__
"""


@undisturbed
def test_many_devices():
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", MANY_DEVICES], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_device_is_a_sentence():
    code = (
        "from tests.support.shells import running_shell\n"
        "with running_shell('tests.support.probe') as shell:\n"
        "    print(shell.run('%%probe\\nran = True').text, 'ran' in shell.names)"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "no_such_platform"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "UsageError: JAX finds no device to run on" in done.stdout
    assert done.stdout.rstrip().endswith("False")


# Last, for JAX 0.6 dispatches synchronously on a CPU once a callback has failed.


def test_a_callbacks_error_left_by_an_earlier_cell_is_told_and_not_this_cells(shell, x):
    shell.names.update(work=work, x=x)
    shell.run("import jax\ndef fail(x):\n    raise ValueError('of the earlier cell')")
    shell.run("@jax.jit\ndef f(y):\n    jax.debug.callback(fail, y[0, 0])")
    shell.run("f.lower(x).compile()\nf(work(x, 100))")
    outcome = shell.run("%%probe\n1 + 1")
    assert outcome.result.result == 2
    assert "Work that an earlier cell had left running failed" in probe.runs[-1].notices[0]
    assert "of the earlier cell" in probe.runs[-1].notices[0]


@pytest.mark.parametrize(
    "callback",
    [
        "jax.debug.callback(fail, x)",
        "io_callback(fail, None, x, ordered=False)",
        "io_callback(fail, None, x, ordered=True)",
    ],
)
def test_an_error_in_a_dropped_callback_is_the_cells_error_once(shell, callback):
    shell.run("import jax, jax.numpy as jnp\nfrom jax.experimental import io_callback")
    shell.run("def fail(x):\n    raise ValueError('in the callback')")
    shell.run(f"@jax.jit\ndef f(x):\n    {callback}\n    return x + 1")
    outcome = shell.run("%%probe\nf(jnp.ones(4))\nNone")
    assert outcome.error is not None
    assert "in the callback" in str(outcome.error)
    assert shell.run("%%probe\n1 + 1").result.result == 2
    assert not any("failed" in notice for notice in probe.runs[-1].notices)


@enqueues_after_failures
def test_a_failed_callback_does_not_hide_one_that_still_runs(x):
    def fail(_):
        raise ValueError("in the callback")

    @jax.jit
    def failing(y):
        io_callback(fail, None, y[0, 0], ordered=True)

    CALLED.clear()
    failing.lower(x).compile()
    debug_callback.lower(x).compile()
    failing(work(x, 100))
    debug_callback(work(x, 30))
    with pytest.raises(Exception, match="in the callback"):
        Barrier().wait()
    assert CALLED == [True]
    Barrier().wait()


@pytest.fixture
def slow_barrier(x):
    """A barrier with one more fence, which takes 50 ms on an idle device."""
    barrier = Barrier()
    fence = jax.jit(lambda y: work(y, 1))

    def slow_fence():
        time.sleep(0.05)
        return fence(x)

    slow_fence().block_until_ready()
    barrier._run_fences = [*barrier._run_fences, slow_fence]
    barrier.drain()
    return barrier


@undisturbed
def test_the_fences_own_time_is_not_the_cells(slow_barrier, x):
    kept = work(x, 1)
    started_ns = time.perf_counter_ns()
    done_ns = slow_barrier.wait()
    assert time.perf_counter_ns() - started_ns > 50e6
    assert done_ns - started_ns < 40e6
    assert kept.is_ready()


@undisturbed
def test_dropped_work_longer_than_the_fences_is_the_cells(slow_barrier, x):
    started_ns = time.perf_counter_ns()
    work(x, 200)
    done_ns = slow_barrier.wait()
    assert done_ns - started_ns > 100e6
    assert busy_ms() < 50


@enqueues_after_failures
def test_an_array_whose_allocation_fails_later_is_the_cells_that_made_it_and_no_others(x):
    huge = jax.jit(lambda: jnp.zeros(1 << 48)).lower().compile()
    barrier = Barrier()
    barrier.drain()
    kept = [work(x, 100), huge()]  # its turn comes after the work
    with pytest.raises(RuntimeError, match=r"(?i)out of memory"):
        barrier.wait()
    assert kept[1].is_ready()  # like any other
    following = Barrier()
    assert following.drain() == []
    following.wait()
    kept = [work(x, 100), huge()]
    following = Barrier()
    assert any("had left running failed: " in notice for notice in following.drain())
    following.wait()
    assert following.drain() == []
    del kept
