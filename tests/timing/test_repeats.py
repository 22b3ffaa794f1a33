"""Repeats: which runs count, what ends them, and that the figures are the work's own."""

from __future__ import annotations

import _thread
import functools
import gc
import json
import threading
import time as clock

import jax
import jax.numpy as jnp
import pytest

import jupyterlab_jaxprof
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cell import Run
from jupyterlab_jaxprof.timing import Plan, time, timer
from jupyterlab_jaxprof.timing.bodies import GcPauses
from jupyterlab_jaxprof.timing.repeats import SHORTEST_SAMPLE_NS
from tests.support.undisturbed import undisturbed
from tests.support.versions import enqueues_after_failures


@jax.jit
def heavy(x):
    return jax.lax.fori_loop(0, 6, lambda _, c: (c @ c) * 1e-3, x)


@pytest.fixture(scope="module")
def big():
    return jnp.ones((500, 500))


@undisturbed
def test_first_and_cached_runs_are_told_apart(big):
    jax.clear_caches()
    result = time(heavy, big, plan=Plan(repeats=10))
    assert [entry.name for entry in result.compiles] == ["heavy"]
    assert result.cached.count == 10
    assert result.first_ms > result.phases.total_ns / 1e6 > 0
    assert result.cached.median < result.first_ms
    first, compiling, cached = (
        units.duration(ms) for ms in (result.first_ms, result.phases.total_ns / 1e6, result.cached.median)
    )
    assert result.sentence() == f"{first}, of which {compiling} compiled heavy; run again it takes {cached}."
    again = time(heavy, big)
    assert again.compiles == []
    assert again.sentence().endswith("ms; nothing compiled.")
    assert again.returned_ms <= again.first_ms


@undisturbed
def test_a_short_function_is_looped_until_the_clock_is_fine_enough():
    f = jax.jit(lambda x: x + 1)
    x = jnp.ones(8)
    result = time(f, x, plan=Plan(seconds=0.2))
    loops = result.repeats.samples[0].loops
    assert loops > 10
    assert result.cached.median * 1e6 * loops > SHORTEST_SAMPLE_NS / 3
    fixed = time(f, x, plan=Plan(repeats=3, loops=7))
    assert {sample.loops for sample in fixed.repeats.samples} == {7}
    assert fixed.cached.count == 3


@undisturbed
def test_against_a_loop_by_hand_measured_in_turns():
    """The figure for an operation of some microseconds is that of a loop with block_until_ready."""
    f = jax.jit(lambda x: x + 1)
    x = jnp.ones(8)
    f(x).block_until_ready()

    def by_hand():
        loops = 300
        began = clock.perf_counter()
        for _ in range(loops):
            y = f(x)
        y.block_until_ready()
        return (clock.perf_counter() - began) / loops * 1e3

    ours, hand = [], []
    for _ in range(25):
        ours.append(time(f, x, plan=Plan(repeats=4, loops=300)).cached.minimum)
        hand.append(min(by_hand() for _ in range(4)))
    assert min(ours) == pytest.approx(min(hand), rel=0.5)  # bench/ measures it more finely


def test_runs_that_compile_are_left_out_and_counted():
    x = jnp.ones(3)
    count = 0

    def every_second_run():
        nonlocal count
        count += 1
        return x if count % 2 else jax.jit(lambda x: x + 1)(x)

    result = time(every_second_run, plan=Plan(repeats=6, warmup=0, loops=1))
    assert result.repeats.compiled == 3
    assert result.cached.count == 3
    assert any("In 3 of 6 repeats something was traced or compiled" in n for n in result.repeats.notices)
    every = time(lambda: jax.jit(lambda x: x + 1)(x), plan=Plan(repeats=2, loops=1))
    assert every.cached is None
    assert len(every.recompiles) >= 3


def test_donated_arguments_are_not_repeated():
    step = jax.jit(lambda p: p + 1, donate_argnums=0)
    result = time(step, jnp.ones(9), plan=Plan(repeats=3))
    assert result.cached is None
    assert "donated or deleted argument 0" in result.repeats.stopped
    assert result.error is None

    state = {"p": jnp.ones(9)}

    def rebinding():
        state["p"] = step(state["p"])

    assert time(rebinding, plan=Plan(repeats=3)).cached.count == 3


def test_a_body_that_fails_when_it_runs_again():
    calls = []

    def once():
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("only once")

    result = time(once, plan=Plan(repeats=3))
    assert "a repeat raised ValueError: only once" in result.repeats.stopped
    assert result.first_ms >= 0
    with pytest.raises(ValueError, match="only once"):
        time(once)


def test_the_output_of_repeats_is_swallowed(capsys):
    result = time(lambda: print("hello"), plan=Plan(repeats=3, loops=1))
    assert capsys.readouterr().out == "hello\n"
    assert any(
        "output of the repeats" in notice and "characters" in notice for notice in result.repeats.notices
    )
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_an_interrupt_keeps_what_was_measured():
    from jupyterlab_jaxprof.cell import drive
    from jupyterlab_jaxprof.timing import measure
    from jupyterlab_jaxprof.timing.bodies import FunctionBody

    calls = []

    def interrupted():
        calls.append(1)
        if len(calls) == 6:
            _thread.interrupt_main()
            clock.sleep(1)

    result = drive(measure(FunctionBody(interrupted, (), {}), "f", plan=Plan(repeats=100, loops=1)))
    assert result.cached.count == 3  # after the first run and the warm-up
    assert result.repeats.interrupted
    assert "until the interrupt" in result.repeats.stopped
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        time(interrupted, plan=Plan(repeats=100, loops=1))


def test_an_interrupt_between_two_runs_keeps_them_too(monkeypatch):
    from jupyterlab_jaxprof.cell import drive
    from jupyterlab_jaxprof.timing import measure, repeats
    from jupyterlab_jaxprof.timing.bodies import FunctionBody

    taken, of = [], repeats.Sample.of

    def interrupted(*args):
        taken.append(1)
        if len(taken) == 4:
            raise KeyboardInterrupt
        return of(*args)

    monkeypatch.setattr(repeats.Sample, "of", interrupted)
    result = drive(measure(FunctionBody(lambda: 1, (), {}), "f", plan=Plan(repeats=100, loops=1)))
    assert result.cached.count == 3
    assert result.repeats.interrupted


@enqueues_after_failures
@undisturbed
def test_loading_that_an_earlier_call_left_is_told_and_not_counted(big):
    heavy(big).block_until_ready()
    quick = jax.jit(lambda x: x + 1)
    x = jnp.ones(8)
    quick(x)
    for _ in range(100):
        left = heavy(big)
    result = time(quick, x)
    assert result.first_ms < 50
    assert any("earlier cell had left running" in notice for notice in result.notices)
    del left


@undisturbed
def test_collections_of_garbage_are_told():
    def collect():
        gc.collect()

    result = time(collect)
    assert 0 < result.gc_ms <= result.first_ms


def test_the_collector_counts_only_within_the_run():
    with GcPauses() as pauses:
        gc.collect()  # in the wait before the run
        run = Run(None, None, *[clock.perf_counter_ns()] * 3, interrupted=False)
        assert pauses.in_run_ns(run) == 0
        gc.collect()
        run.done_ns = clock.perf_counter_ns()
        gc.collect()  # in the wait after it
        assert 0 < pauses.in_run_ns(run) <= run.done_ns - run.started_ns


@pytest.mark.parametrize("case", ["x64", "clear", "no jit", "guard"])
@undisturbed
def test_what_the_body_does_to_jax_is_not_charged_to_it(case):
    x = jnp.ones(8)
    f = jax.jit(lambda x: x + 1)
    f(x)

    def x64():
        jax.config.update("jax_enable_x64", True)

    def disable():
        with jax.disable_jit():
            return f(x)

    body = {"x64": x64, "clear": jax.clear_caches, "no jit": disable, "guard": lambda: f(x)}[case]
    time(lambda: None)
    with jax.transfer_guard("disallow" if case == "guard" else "allow"):
        try:
            result = time(body)
        finally:
            jax.config.update("jax_enable_x64", False)
    assert result.error is None
    assert [entry for entry in result.compiles if "jaxprof" in entry.name] == []
    assert result.first_ms - result.returned_ms < 10  # no fence was compiled again


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"repeats": -1}, "number of repeats"),
        ({"seconds": float("nan")}, "seconds"),
        ({"loops": 0}, "loops"),
        ({"warmup": -1}, "warm-up"),
    ],
)
def test_plans_that_make_no_sense(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Plan(**options)


def test_timer(big):
    with timer("block", memory=True) as timed:
        assert timed.result is None
        y = heavy(big)
    assert timed.result.first_ms >= timed.result.returned_ms
    assert timed.result.memory.arrays
    assert y.is_ready()
    with pytest.raises(ZeroDivisionError), timer() as failed:
        1 / 0  # noqa: B018
    assert "until ZeroDivisionError" in failed.result.sentence()


def test_a_callbacks_error_is_the_functions():
    from jax.experimental import io_callback

    def boom(x):
        raise ValueError("boom")

    f = jax.jit(lambda x: (io_callback(boom, None, x), x + 1)[1])
    with pytest.raises(Exception, match="boom"):
        time(f, 1.0)
    with pytest.raises(Exception, match="boom"), timer():
        f(1.0)
    assert time(lambda: None).error is None


def test_callbacks_are_waited_for():
    done = []

    def slow(x):
        clock.sleep(0.1)
        done.append(x)

    f = jax.jit(lambda x: (jax.debug.callback(slow, x), x + 1)[1])
    result = time(f, jnp.float32(1))
    assert len(done) == 1
    assert result.first_ms >= 100


def test_the_result_as_plain_values(big):
    result = time(heavy, big, plan=Plan(repeats=5), transfers=True, memory=True)
    data = json.loads(json.dumps(result.to_dict()))
    assert data["sentence"] == result.sentence() == str(result)
    assert data["cached"]["count"] == 5
    assert len(data["repeats"]["times_ms"]) == 5
    first = data["first"]
    parts = [first[key] for key in ("trace_ms", "lower_ms", "compile_ms", "cache_read_ms", "run_ms")]
    assert sum(parts) == pytest.approx(first["total_ms"])
    assert data["memory"]["programs"]
    assert result.ratio_to(result).value == 1
    assert not result.ratio_to(result).differs


def test_pandas_is_optional(big, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        time(heavy, big).to_pandas()


def test_coroutine_functions_are_explained():
    async def f():
        pass

    with pytest.raises(TypeError, match="coroutine function"):
        time(f)


def test_any_callable_can_be_timed():
    class Model:
        def __call__(self, x):
            return x + 1

    for function in (Model(), functools.partial(heavy), jnp.sin, len):
        argument = [1] if function is len else jnp.ones((4, 4))
        assert time(function, argument, plan=Plan(repeats=2)).cached.count == 2
    assert jupyterlab_jaxprof.time is time
    assert jupyterlab_jaxprof.timer is timer


@undisturbed
def test_six_cells_and_what_is_waited_for(big):
    """Results stored, dropped, hidden, overwritten, or stored by another thread are all waited for."""
    heavy(big).block_until_ready()
    whole_ms = min(time(heavy, big).first_ms for _ in range(5))

    class Box:
        pass

    box, kept = Box(), []

    def stored():
        kept.append(heavy(big))

    def dropped():
        heavy(big)

    def hidden():
        box.value = heavy(big)

    def overwritten():
        for _ in range(3):
            y = heavy(big)
        kept.append(y)

    def thread():
        worker = threading.Thread(target=stored)
        worker.start()
        worker.join()

    for body, times in ((stored, 1), (dropped, 1), (hidden, 1), (overwritten, 3), (thread, 1)):
        result = time(body)
        assert result.first_ms > 0.6 * times * whole_ms, body.__name__
