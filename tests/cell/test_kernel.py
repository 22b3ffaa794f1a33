"""Measured cells in a real kernel: its event loop, its interrupts, its messages."""

from __future__ import annotations

import time

import pytest

from tests.support.kernels import running_kernel


@pytest.fixture(scope="module")
def kernel():
    with running_kernel() as kernel:
        assert kernel.run("%load_ext tests.support.probe").status == "ok"
        kernel.run("import asyncio, time, sys, threading\nimport jax, jax.numpy as jnp")
        kernel.run(
            "@jax.jit\ndef work(x, n):\n"
            "    return jax.lax.fori_loop(0, n, lambda _, y: y @ x / jnp.max(jnp.abs(y)), x)\n"
            "x = jax.random.normal(jax.random.key(0), (400, 400))"
        )
        kernel.run("%%probe\nwork(x, 1);")
        yield kernel


def test_value_and_count(kernel):
    reply = kernel.run("%%probe\ny = 20\ny + 1")
    assert (reply.status, reply.value) == ("ok", "21")
    assert kernel.run("_, Out[%d]" % reply.count).value == "(21, 21)"  # noqa: UP031
    assert kernel.run("%%probe\ny + 1;  # silent").value is None


def test_await_runs_on_the_kernels_loop_in_its_thread_while_other_tasks_run(kernel):
    kernel.run("local = threading.local()\nlocal.here = 5\nticks = 0")
    kernel.run(
        "async def tick():\n    global ticks\n    for _ in range(20):\n"
        "        await asyncio.sleep(0.005)\n        ticks += 1\n"
    )
    reply = kernel.run(
        "%%probe\nasync def numbers():\n    for i in range(3):\n"
        "        await asyncio.sleep(0.02)\n        yield i\n"
        "task = asyncio.create_task(tick())\nsome = [i async for i in numbers()]\n"
        "async for i in numbers():\n    some.append(i)\n"
        "(some, ticks > 5, local.here, threading.current_thread() is threading.main_thread(), "
        "asyncio.get_running_loop() is task.get_loop())"
    )
    assert reply.value == "([0, 1, 2, 0, 1, 2], True, 5, True, True)"


def test_an_error_after_an_await_has_its_line_and_none_of_our_frames(kernel):
    reply = kernel.run("# why\n%%probe\n\nawait asyncio.sleep(0)\ndef f():\n    return 1 / 0\nf()")
    assert (reply.status, reply.error) == ("error", "ZeroDivisionError")
    assert "line 7" in reply.traceback
    assert "----> 6     return 1 / 0" in reply.traceback
    assert "jupyterlab_jaxprof" not in reply.traceback
    assert "probe.py" not in reply.traceback
    assert "run_cell_magic" not in reply.traceback


def test_a_syntax_error_has_its_line(kernel):
    reply = kernel.run("%%probe\nx = 1\nawait asyncio.sleep(0)\ny = = 3")
    assert reply.error == "SyntaxError"
    assert "line 4" in reply.traceback
    assert "jupyterlab_jaxprof" not in reply.traceback


def test_lines_are_right_when_nothing_is_stored(kernel):
    reply = kernel.run("\n\n%%probe\n1 / 0", store_history=False)
    assert "----> 4 1 / 0" in reply.traceback


def test_await_under_another_magic_is_explained(kernel):
    reply = kernel.run("%%time\n%%probe\nawait asyncio.sleep(0)")
    assert reply.error in {"UsageError", "SyntaxError"}
    assert "jupyterlab_jaxprof" not in reply.traceback


def test_await_through_run_cell_magic_is_explained(kernel):
    reply = kernel.run("get_ipython().run_cell_magic('probe', '', 'await asyncio.sleep(0)')")
    assert "Put %%probe on the first line" in reply.text


def test_queued_cells_do_not_run_after_an_error(kernel):
    kernel.run("ran = []")
    first = kernel.send("%%probe\ntime.sleep(0.2)\n1 / 0", stop_on_error=True)
    second = kernel.send("ran.append(1)")
    assert kernel.wait_for(first).status == "error"
    assert kernel.wait_for(second).status in {"aborted", "error"}
    assert kernel.run_once_accepted("ran").value == "[]"


#: Defines what prints 'begun' once the main thread is in the barrier after the cell's body.
TELL_WHEN_WAITING = """
import sys, threading, time
def stack(frame):
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back
def tell_when_waiting():
    main = threading.main_thread().ident
    def watch():
        while not any(name.endswith("cell/barrier.py") for name in stack(sys._current_frames()[main])):
            time.sleep(0.01)
        print("begun")
    threading.Thread(target=watch).start()
"""


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("print('begun')\ntime.sleep(30)", {"KeyboardInterrupt"}),
        # ipykernel cancels an await when its loop wakes next
        ("print('begun')\nfor _ in range(300):\n    await asyncio.sleep(0.1)", {"CancelledError"}),
        ("tell_when_waiting()\nz = work(x, 20000)", {"KeyboardInterrupt"}),
        ("print('begun')\nwork(x, 20000).block_until_ready()", {"KeyboardInterrupt"}),
    ],
    ids=["in Python", "in an await", "in the barrier", "in JAX"],
)
def test_interrupt(body, errors):
    with running_kernel() as kernel:
        kernel.run("%load_ext tests.support.probe\n")
        kernel.run("import asyncio, time\nimport jax, jax.numpy as jnp")
        kernel.run(
            "@jax.jit\ndef work(x, n):\n"
            "    return jax.lax.fori_loop(0, n, lambda _, y: y @ x / jnp.max(jnp.abs(y)), x)\n"
            "x = jax.random.normal(jax.random.key(0), (400, 400))"
        )
        kernel.run("%%probe\nwork(x, 1);")
        kernel.run(TELL_WHEN_WAITING)
        kernel.run("ran = []")
        message_id = kernel.send(f"%%probe\n{body}", stop_on_error=True)
        queued = kernel.send("ran.append(1)")
        kernel.wait_for_output(message_id, "begun")
        kernel.interrupt()
        start = time.monotonic()
        reply = kernel.wait_for(message_id)
        assert time.monotonic() - start < 8
        assert reply.status == "error"
        assert reply.error in errors
        assert "jupyterlab_jaxprof" not in reply.traceback
        assert kernel.wait_for(queued).status in {"aborted", "error"}
        assert kernel.run_once_accepted("ran").value == "[]"
        assert kernel.run("import tests.support.probe as p\np.runs[-1].interrupted").value == "True"


def test_system_exit_is_shown_and_the_kernel_lives(kernel):
    reply = kernel.run("%%probe\nraise SystemExit(3)")
    assert (reply.status, reply.error) == ("error", "SystemExit")
    assert kernel.run("1").value == "1"


def test_magics_commands_and_help_in_the_body(kernel):
    reply = kernel.run("%%probe\n!echo from the shell\nhere = %pwd\nimport math\nmath.gcd?\nlen(here) > 0")
    assert "from the shell" in reply.stdout
    assert reply.value == "True"


def test_a_threads_output_and_capture(kernel):
    reply = kernel.run("%%capture out\n%%probe\nprint('inside')\n5")
    assert (reply.status, reply.stdout) == ("ok", "")
    assert kernel.run("out.stdout").value == "'inside\\n'"


def test_source_of_a_function_defined_in_the_body(kernel):
    kernel.run("%%probe\n\ndef double(x):\n    # twice\n    return 2 * x")
    reply = kernel.run("import inspect\nprint(inspect.getsource(double))")
    assert reply.stdout == "def double(x):\n    # twice\n    return 2 * x\n\n"
