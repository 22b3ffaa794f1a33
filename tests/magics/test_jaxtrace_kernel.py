"""%%jaxtrace in a real notebook kernel: outputs that are updated, interrupts, and the kernel's end."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import jax
import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.reports import report
from tests.support.kernels import running_kernel

SETUP = (
    "import time, jax, jax.numpy as jnp\nf = jax.jit(lambda x: (x @ x).sum())\nx = jnp.ones((50, 50)); f(x);"
)
LETS_GO_OF_GIL = hasattr(jax.profiler.ProfileOptions, "session_id")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("kernel") / "store")


@pytest.fixture(scope="module")
def kernel(store):
    with running_kernel(JAXPROF_DIR=str(store.root)) as kernel:
        assert kernel.run("%load_ext jupyterlab_jaxprof\n" + SETUP).status == "ok"
        yield kernel


@dataclass
class Output:
    """A cell's output area, as a notebook would hold it at the end, and what it showed by the way."""

    status: str = ""
    kinds: list[str] = field(default_factory=list)
    displays: list[dict[str, Any]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    error: str = ""
    stderr: str = ""


def run(kernel, cell, *, interrupt_when="", interrupt_after_s=0.0, interrupts=1) -> Output:
    """Run a cell; interrupt it so long after a display or a print with that text, so many times at most."""
    output = Output()
    timers = []

    def take(message):
        kind, content = message["msg_type"], message["content"]
        shown = str(content.get("data", {}).get("text/plain", "") or content.get("text", ""))
        if interrupt_when and interrupt_when in shown and len(timers) < interrupts:
            timers.append(threading.Timer(interrupt_after_s, kernel.interrupt))
            timers[-1].start()
        if kind == "update_display_data":
            output.replaced.append(output.displays[-1]["text/plain"])
            output.displays[-1] = content["data"]
        elif kind == "display_data":
            output.displays.append(content["data"])
        elif kind == "error":
            output.error = content["ename"]
        elif kind == "stream" and content["name"] == "stderr":
            output.stderr += content["text"]
        if kind in ("display_data", "execute_result", "error"):
            output.kinds.append(kind)

    reply = kernel.client.execute_interactive(cell, output_hook=take, timeout=120)
    output.status = reply["content"]["status"]
    return output


def newest(store):
    return store.list(limit=1).rows[0].record


def assert_next_trace_works(kernel, store):
    assert run(kernel, "%%jaxtrace next\nf(x)").status == "ok"
    assert (newest(store).name, newest(store).status) == ("next", Status.OK)


def test_one_card_above_the_value(kernel, store):
    output = run(kernel, "%%jaxtrace card --steps 2\ny = f(x)\ny")
    assert output.kinds == ["display_data", "execute_result"]
    (bundle,) = output.displays
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jaxprof.capture+json"}
    assert bundle["application/vnd.jaxprof.capture+json"]["id"] == newest(store).id


def test_an_interrupt_in_the_body(kernel, store):
    output = run(kernel, "%%jaxtrace\nprint('go', flush=True)\ntime.sleep(30)", interrupt_when="go")
    assert (output.status, output.error) == ("error", "KeyboardInterrupt")
    record = newest(store)
    assert record.status is Status.INTERRUPTED
    assert record.reason == "The cell was interrupted; the trace ends there."
    assert record.xprof_run is not None
    assert record.summary["wall_ms"] < 20_000
    assert_next_trace_works(kernel, store)


def test_an_interrupt_in_a_step_keeps_the_steps_before(kernel, store):
    cell = "%%jaxtrace --steps 50\nf(x); print('go', flush=True); time.sleep(0.2)"
    output = run(kernel, cell, interrupt_when="go", interrupt_after_s=0.7)
    assert output.error == "KeyboardInterrupt"
    record = newest(store)
    assert record.status is Status.INTERRUPTED
    assert 1 <= record.steps["count"] < 50
    assert record.reason.startswith("The cell was interrupted in step ")
    assert_next_trace_works(kernel, store)


def test_an_interrupt_of_an_awaiting_body(kernel, store):
    output = run(
        kernel,
        "%%jaxtrace\nimport asyncio\nprint('go', flush=True)\nawait asyncio.sleep(3)",
        interrupt_when="go",
    )
    assert output.status == "error"
    assert newest(store).status is Status.INTERRUPTED
    assert_next_trace_works(kernel, store)


def test_progress_is_replaced_by_the_card(kernel):
    output = run(kernel, "%%jaxtrace --python\nfor i in range(1_000_000): abs(i)")
    assert output.replaced
    assert output.replaced[0].startswith(("Writing the trace", "Reading the trace"))  # what took a second
    assert len(output.displays) == 1
    assert output.displays[0]["text/plain"].startswith("trace")


@pytest.mark.skipif(not LETS_GO_OF_GIL, reason="before JAX 0.9 no signal arrives while a trace is written")
def test_an_interrupt_while_the_trace_is_written(kernel, store):
    output = run(
        kernel, "%%jaxtrace --python\nfor i in range(1_000_000): abs(i)", interrupt_when="Writing the trace"
    )
    assert output.error == "KeyboardInterrupt"
    record = newest(store)
    assert record.status is Status.INTERRUPTED
    assert record.reason == "Interrupted while the trace was being written; what is listed is whole."
    assert record.xprof_run is not None
    assert_next_trace_works(kernel, store)


@pytest.mark.skipif(not LETS_GO_OF_GIL, reason="before JAX 0.9 no signal arrives while a trace is written")
def test_two_interrupts_give_the_trace_up(kernel, store):
    output = run(
        kernel,
        "%%jaxtrace --python\nfor i in range(1_500_000): abs(i)",
        interrupt_when="the trace (",
        interrupts=2,
    )
    assert output.error == "KeyboardInterrupt"
    record = newest(store)
    assert (record.status, record.files) == (Status.INTERRUPTED, ())
    assert "given up" in record.reason
    deadline_s = time.monotonic() + 60
    while "still writing" in run(kernel, "%%jaxtrace next\n1;").stderr and time.monotonic() < deadline_s:
        time.sleep(0.2)
    assert_next_trace_works(kernel, store)
    assert not list((store.root / "partial").iterdir())


def test_a_kernel_that_ends_keeps_the_trace_that_runs(tmp_path):
    store = Store(tmp_path / "store")
    with running_kernel(JAXPROF_DIR=str(store.root)) as kernel:
        kernel.run("%load_ext jupyterlab_jaxprof\n" + SETUP)
        kernel.run("%jaxtrace start left")
        kernel.run("f(x)")
        kernel.client.shutdown()
        deadline_s = time.monotonic() + 30
        while kernel.manager.is_alive() and time.monotonic() < deadline_s:
            time.sleep(0.1)
    record = newest(store)
    assert (record.name, record.status) == ("left", Status.INTERRUPTED)
    assert record.reason == "The kernel ended before %jaxtrace stop."
    assert record.xprof_run is not None
    assert record.notices[-1] == (
        "The trace was not read for steps and findings yet: %jaxprof report left does."
    )
    assert report(store, "left").record.summary["timeline"]["source"] == "xplane"
