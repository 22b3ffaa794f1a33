"""Listening to JAX: from before it is imported, without a trace left behind, and never in the user's way."""

from __future__ import annotations

import logging
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jupyterlab_jaxprof import timing
from jupyterlab_jaxprof.timing.compiles import LOG, Recorder
from jupyterlab_jaxprof.timing.places import Places
from jupyterlab_jaxprof.timing.signatures import Cause
from tests.support.shells import running_shell


def listeners():
    from jax._src import monitoring

    return [
        list(getattr(monitoring, name))
        for name in ("_scalar_listeners", "_event_listeners", "_event_duration_secs_listeners")
    ]


def test_jax_and_its_log_are_left_as_they_were():
    timing.unwatch()
    logger = logging.getLogger("jax._src.interpreters.pxla")
    before = listeners(), logger.level, list(logger.filters), list(logger.handlers), set(vars(logger))
    timing.watch()
    timing.watch()
    jax.jit(lambda x: x + 1)(1.0)
    assert len(listeners()[0]) == len(before[0][0]) + 1
    timing.unwatch()
    after = listeners(), logger.level, list(logger.filters), list(logger.handlers), set(vars(logger))
    assert after == before


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_the_users_own_logging_of_jax_goes_on_as_before(level):
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger = logging.getLogger("jax._src.interpreters.pxla")
    handler, kept = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        jax.jit(lambda x: x + 1)(1.0)
        assert any("Compiling" in text for text in records) == (level == logging.DEBUG)
        records.clear()
        with jax.log_compiles(True):
            jax.jit(lambda x: x + 2)(1.0)
        assert any("Compiling" in text for text in records)
        records.clear()
        logging.disable(logging.CRITICAL)
        jax.jit(lambda x: x + 3)(1.0)
        assert records == []
    finally:
        logging.disable(logging.NOTSET)
        logger.removeHandler(handler)
        logger.setLevel(kept)


def test_a_listener_that_fails_does_not_reach_the_user(monkeypatch, compiled):
    def fail(*_):
        raise RuntimeError("a fault of ours")

    f = jax.jit(lambda x: x + 1)
    with monkeypatch.context() as patched:
        patched.setattr("jupyterlab_jaxprof.timing.compiles.call_on_stack", fail)
        with Recorder(Places()) as recorder:
            assert f(1.0) == 2
    assert "RuntimeError: a fault of ours" in recorder.notices()[0]
    with Recorder(Places()) as recorder:
        f(jnp.ones(2))
    assert recorder.notices() == []
    assert [entry.name for entry in recorder.compiles if not entry.operation] == ["<lambda>"]


def test_compiles_are_known_by_arguments_alone_where_jax_hides_the_call(monkeypatch, compiled):
    monkeypatch.setattr("jupyterlab_jaxprof.timing.compiles.call_on_stack", lambda frame: None)
    monkeypatch.setattr(LOG, "_sees_calls", False)

    @jax.jit
    def hidden(x):
        return x + 1

    (first,) = [e for e in compiled(hidden, np.ones(3, np.float32)) if e.name == "hidden"]
    (second,) = [e for e in compiled(hidden, np.ones(4, np.float32)) if e.name == "hidden"]
    assert [str(argument) for argument in first.arguments] == ["float32[3]"]
    assert second.reason.cause is Cause.SHAPE


def test_missing_arguments_are_told(monkeypatch):
    monkeypatch.setattr("jupyterlab_jaxprof.timing.monitoring.lowering_of", lambda record: None)
    monkeypatch.setattr("jupyterlab_jaxprof.timing.compiles.call_on_stack", lambda frame: None)
    with Recorder(Places()) as recorder:
        jax.jit(lambda x: x + 1)(1.0)
    assert recorder.compiles[-1].arguments is None
    assert "did not show what arguments <lambda> was compiled for" in recorder.notices()[0]


def test_listeners_that_the_user_cleared_are_registered_again(compiled):
    jax.monitoring.clear_event_listeners()
    assert [entry.name for entry in compiled(jax.jit(lambda x: x * 5), jnp.ones(3))] == ["<lambda>"]


SCRIPT = """
import logging, sys, time  # as IPython has them
began = time.process_time()
from jupyterlab_jaxprof import timing
timing.watch()
took = time.process_time() - began
assert not {"jax", "numpy", "jupyterlab_jaxprof.timing.compiles"} & set(sys.modules), "imported too much"
assert took < 0.02, took
import jax, jax.numpy as jnp
f = jax.jit(lambda x: x * 2)
f(jnp.ones(3))  # before anything measures: the history has it
from jupyterlab_jaxprof.timing.compiles import Recorder
from jupyterlab_jaxprof.timing.places import Places
with Recorder(Places()) as recorder:
    f(jnp.ones(4))
print(recorder.compiles[-1].reason.text)
"""


def test_the_extension_begins_and_ends_the_history():
    timing.unwatch()
    logger = logging.getLogger("jax._src.interpreters.pxla")
    before = listeners(), list(logger.filters), set(vars(logger))
    with running_shell("jupyterlab_jaxprof") as shell:
        assert len(logger.filters) == len(before[1]) + 1
        shell.run("import jax; jax.jit(lambda x: x + 1)(1.0)")
        shell.run("%reload_ext jupyterlab_jaxprof")
        assert len(logger.filters) == len(before[1]) + 1
        shell.run("%unload_ext jupyterlab_jaxprof")
        assert (listeners(), list(logger.filters), set(vars(logger))) == before


@pytest.mark.measures_time
def test_the_history_begins_before_jax_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert "x: float32[3] → float32[4]" in done.stdout, done.stderr
