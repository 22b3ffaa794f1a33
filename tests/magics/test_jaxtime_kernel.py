"""%%jaxtime in a real notebook kernel: cards, interrupts, async bodies, and cells that must not go on."""

from __future__ import annotations

import time

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.cards import MIME_TYPE
from tests.support.kernels import running_kernel

SETUP = (
    "import asyncio, time, jax, jax.numpy as jnp\n"
    "f = jax.jit(lambda x: (x @ x).sum())\nx = jnp.ones((50, 50))\nn = []"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("kernel") / "store")


@pytest.fixture(scope="module")
def kernel(store):
    with running_kernel(JAXPROF_DIR=str(store.root)) as kernel:
        assert kernel.run(SETUP).status == "ok"
        yield kernel


def newest(store):
    return store.list().rows[0].record


def test_one_card_is_displayed_and_the_value_follows(kernel, store):
    reply = kernel.run("%%jaxtime card -r 5\nf(x)")
    assert (reply.status, reply.stderr) == ("ok", "")
    (bundle,) = reply.displays
    assert bundle["text/plain"].splitlines()[0] == newest(store).summary["sentence"]
    assert 'class="jx-sentence"' in bundle["text/html"]
    assert bundle[MIME_TYPE]["summary"]["cached"]["count"] == 5
    assert reply.value is not None
    assert "125000" in reply.value


def test_an_interrupt_in_the_repeats_keeps_what_was_measured(kernel, store):
    kernel.run("%%jaxtime -r 2\nf(x)")
    message = kernel.send(
        "%%jaxtime stopped -t 60 --loops 1 --save kept\nn.append(1)\nprint('on')\ntime.sleep(0.05)"
    )
    kernel.wait_for_output(message, "on")
    time.sleep(1.0)
    kernel.interrupt()
    reply = kernel.wait_for(message)
    assert (reply.status, reply.error) == ("error", "KeyboardInterrupt")
    assert "jupyterlab_jaxprof/" not in reply.traceback
    record = newest(store)
    assert (record.name, record.status) == ("stopped", Status.INTERRUPTED)
    assert record.reason == "What was measured until the interrupt is kept."
    assert record.summary["cached"]["count"] >= 2
    assert kernel.run("kept.cached.count >= 2, kept.repeats.error").value == "(True, None)"


def test_an_interrupt_in_the_first_run(kernel, store):
    message = kernel.send("%%jaxtime first\nprint('on')\ntime.sleep(60)")
    kernel.wait_for_output(message, "on")
    kernel.interrupt()
    reply = kernel.wait_for(message)
    assert reply.error == "KeyboardInterrupt"
    assert (newest(store).name, newest(store).status) == ("first", Status.INTERRUPTED)
    assert "until it was interrupted" in newest(store).summary["sentence"]


def test_an_awaiting_body_is_repeated(kernel, store):
    reply = kernel.run("%%jaxtime awaits -r 4 --loops 1\nawait asyncio.sleep(0.002)\nlen(n)")
    assert reply.status == "ok"
    assert newest(store).summary["cached"]["count"] == 4
    assert newest(store).summary["cached"]["minimum"] >= 2


def test_a_compile_that_must_not_be_fails_the_cell(kernel, store):
    reply = kernel.run("%%jaxtime --no-compile\nf(jnp.ones((51, 51)))")
    assert (reply.status, reply.error, reply.value) == ("error", "CompiledError", None)
    assert "Another shape" in reply.traceback
    assert "jupyterlab_jaxprof/" not in reply.traceback
    assert len(reply.displays) == 1
