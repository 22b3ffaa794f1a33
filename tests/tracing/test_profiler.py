"""What jax.profiler does badly, and that this Profiler survives it."""

from __future__ import annotations

import os
import signal
import threading
import time

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.tracing import AlreadyRunning, ProfilerError
from jupyterlab_jaxprof.tracing.profiler import GivenUp, StoppedByCell

from .conftest import files

LETS_GO_OF_GIL = hasattr(jax.profiler.ProfileOptions, "session_id")


def silent(_sentence: str) -> None:
    pass


def work():
    jnp.ones(100).sum().block_until_ready()


def fill(events: int) -> None:
    """Make the Python tracer record about so many events."""
    for _ in range(events // 2):
        abs(1)


def assert_usable(new_profiler, tmp_path):
    profiler = new_profiler()
    profiler.start()
    work()
    profiler.stop(tmp_path / "trash", silent)
    assert any(name.endswith(".xplane.pb") for name in files(profiler.directory))
    assert profiler.notices == []


def test_a_trace_is_written_where_it_was_asked_for(new_profiler, tmp_path):
    assert_usable(new_profiler, tmp_path)


def test_after_a_failed_export_of_the_users_the_profiler_is_set_free(new_profiler, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError), jax.profiler.trace(str(tmp_path / "file")):
        work()
    profiler = new_profiler()
    profiler.start()
    profiler.stop(tmp_path / "trash", silent)
    assert len(files(profiler.directory)) == 2
    # JAX 0.12 and later frees itself
    assert all("set free" in notice for notice in profiler.notices)


def test_after_a_failed_export_of_ours_the_profiler_is_set_free(new_profiler, tmp_path):
    profiler = new_profiler()
    profiler.start()
    profiler.directory.rmdir()
    profiler.directory.touch()
    with pytest.raises(ProfilerError, match=r"could not write the trace\. It says: .* is not a directory"):
        profiler.stop(tmp_path / "trash", silent)
    assert_usable(new_profiler, tmp_path)


def test_a_trace_of_the_users_is_left_alone(new_profiler, tmp_path):
    jax.profiler.start_trace(str(tmp_path / "theirs"))
    with pytest.raises(AlreadyRunning, match="left alone"):
        new_profiler().start()
    work()
    jax.profiler.stop_trace()
    assert len(files(tmp_path / "theirs")) == 2
    assert_usable(new_profiler, tmp_path)


def test_a_session_that_jax_profiler_knows_nothing_of(new_profiler, tmp_path):
    from jax._src.lib import _profiler

    theirs = _profiler.ProfilerSession(jax.profiler.ProfileOptions())
    profiler = new_profiler()
    profiler.start()
    with pytest.raises(ProfilerError, match="Another trace was running in this process"):
        profiler.stop(tmp_path / "trash", silent)
    assert len(theirs.stop()) > 1000
    assert_usable(new_profiler, tmp_path)


def test_code_that_stops_our_trace_itself(new_profiler, tmp_path):
    profiler = new_profiler()
    profiler.start()
    jax.profiler.stop_trace()
    jax.profiler.start_trace(str(tmp_path / "theirs"))
    with pytest.raises(StoppedByCell):
        profiler.stop(tmp_path / "trash", silent)
    assert len(files(profiler.directory)) == 2
    jax.profiler.stop_trace()
    assert len(files(tmp_path / "theirs")) == 2
    assert_usable(new_profiler, tmp_path)


def test_two_traces_within_a_second_are_two(new_profiler, tmp_path):
    profilers = [new_profiler() for _ in range(2)]
    for profiler in profilers:
        profiler.start()
        profiler.stop(tmp_path / "trash", silent)
    assert [len(files(profiler.directory)) for profiler in profilers] == [2, 2]


def interrupt_after(*delays_s: float) -> None:
    for delay_s in delays_s:
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.measures_time
def test_an_interrupt_while_writing_lets_it_finish(new_profiler, tmp_path):
    profiler = new_profiler(python_tracer_level=1)
    profiler.start()
    fill(600_000)
    interrupt_after(0.3)
    profiler.stop(tmp_path / "trash", silent)
    assert profiler.interrupts == 1
    assert len(files(profiler.directory)) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_usable(new_profiler, tmp_path)


@pytest.mark.measures_time
@pytest.mark.skipif(not LETS_GO_OF_GIL, reason="before JAX 0.9 no signal arrives while a trace is written")
def test_a_second_interrupt_gives_the_trace_up(new_profiler, tmp_path):
    profiler = new_profiler(python_tracer_level=1)
    profiler.start()
    fill(1_500_000)
    interrupt_after(0.5, 1.5)
    said: list[str] = []
    with pytest.raises(GivenUp):
        profiler.stop(tmp_path / "trash", said.append)
    assert "finishing the trace" in said[-1]
    assert not profiler.directory.exists()
    with pytest.raises(AlreadyRunning, match="gave up"):
        new_profiler().start()
    deadline_s = time.monotonic() + 60
    while profiler.unfinished and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not profiler.directory.exists()
    assert not (tmp_path / "trash").exists()
    assert_usable(new_profiler, tmp_path)


def test_without_the_private_interfaces_a_sentence_says_what_helps(new_profiler, tmp_path, monkeypatch):
    """A JAX that has renamed its private state: nothing can be freed or told apart, but nothing breaks."""
    from jupyterlab_jaxprof.tracing import profiler as module

    monkeypatch.setattr(module, "_profile_state", lambda: None)
    assert_usable(new_profiler, tmp_path)
    jax.profiler.start_trace(str(tmp_path / "theirs"))
    with pytest.raises(AlreadyRunning, match="restart the kernel"):
        new_profiler().start()
    jax.profiler.stop_trace()
    profiler = new_profiler()
    profiler.start()
    profiler.directory.rmdir()
    profiler.directory.touch()
    with pytest.raises(ProfilerError, match="could not write the trace"):
        profiler.stop(tmp_path / "trash", silent)
    monkeypatch.undo()
    module._reset()
