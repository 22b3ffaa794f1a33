"""%%jaxsweep and %jaxmem in a real notebook kernel: the display that becomes the card, interrupts, await."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.cards import MIME_TYPE
from tests.support.kernels import running_kernel

QUICK = "-r 2 --loops 1 --warmup 0"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("kernel") / "store")


@pytest.fixture(scope="module")
def kernel(store):
    with running_kernel(JAXPROF_DIR=str(store.root)) as kernel:
        assert kernel.run("import asyncio, time, jax, jax.numpy as jnp\nx = jnp.ones(9)").status == "ok"
        yield kernel


def newest(store):
    return store.list().rows[0].record


def shown(kernel, code):
    """Run code; gives the reply, and all that its one display showed, one after another."""
    message = kernel.send(code)
    bundles = []
    original = kernel.client.get_iopub_msg

    def watching(**options):
        answer = original(**options)
        if answer["msg_type"] in ("display_data", "update_display_data"):
            bundles.append(answer["content"])
        return answer

    kernel.client.get_iopub_msg = watching
    try:
        reply = kernel.wait_for(message)
    finally:
        kernel.client.get_iopub_msg = original
    return reply, bundles


def test_progress_stands_where_the_card_comes(kernel, store):
    reply, bundles = shown(kernel, f"%%jaxsweep n=1,2,3 {QUICK}\nawait asyncio.sleep(0.001 * n)")
    assert (reply.status, reply.stderr, reply.stdout) == ("ok", "", "")
    assert len({bundle["transient"]["display_id"] for bundle in bundles}) == 1
    *progress, card = [bundle["data"] for bundle in bundles]
    assert [one["text/plain"].partition(".")[0] for one in progress] == [
        "0 of 3 measured, now n=1", "1 of 3 measured, now n=2", "2 of 3 measured, now n=3",
    ]  # fmt: skip
    assert 'aria-valuenow="2"' in progress[2]["text/html"]
    assert card["text/plain"].splitlines()[0] == newest(store).summary["sentence"]
    assert card[MIME_TYPE]["kind"] == "sweep"
    series = newest(store).summary["sweep"]["series"][0]
    assert all(point["median_ms"] >= int(point["value"]) for point in series["points"])


def test_an_interrupt_stops_the_notebook_and_keeps_what_was_measured(kernel, store):
    message = kernel.send(f"%%jaxsweep n=1,2,3 {QUICK}\nif n == 2:\n    print('on')\n    time.sleep(60)")
    kernel.wait_for_output(message, "on")
    kernel.interrupt()
    reply = kernel.wait_for(message)
    assert (reply.status, reply.error) == ("error", "KeyboardInterrupt")
    assert "jupyterlab_jaxprof/" not in reply.traceback
    assert newest(store).status is Status.INTERRUPTED
    endings = [point["ending"] for point in newest(store).summary["sweep"]["series"][0]["points"]]
    assert endings == ["ok", "interrupted"]
    assert "NameError" in kernel.run_once_accepted("n").traceback


def test_a_watch_that_ends_while_nothing_runs_puts_its_card_where_it_was_begun(kernel, store):
    _, bundles = shown(kernel, "%jaxmem idle --watch 0.5 --save w")
    assert bundles[0]["data"]["text/plain"] == "Watching memory for 0.5 s."
    while len(bundles) < 2:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "update_display_data":
            bundles.append(message["content"])
    begun, ended = bundles
    assert begun["transient"] == ended["transient"]
    assert ended["data"][MIME_TYPE]["name"] == "idle"
    assert newest(store).name == "idle"
    assert kernel.run("len(w.samples) > 1").value == "True"
