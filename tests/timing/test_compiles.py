"""Compiles: who, when, for what, and why again; on the real JAX."""

from __future__ import annotations

import functools
import gc
import threading
import time
import weakref

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.timing import history
from jupyterlab_jaxprof.timing.compiles import LOG, Recorder, phases
from jupyterlab_jaxprof.timing.monitoring import Argument, Lowering
from jupyterlab_jaxprof.timing.places import Places
from jupyterlab_jaxprof.timing.signatures import Cause, Signature
from jupyterlab_jaxprof.timing.spans import covered_ns


def causes(entries):
    return [(entry.name, entry.reason.cause) for entry in entries if entry.finished]


def test_first_compile_has_phases_arguments_and_line(compiled):
    @jax.jit
    def step(params, batch):
        time.sleep(0.05)
        return params["w"] * batch

    arguments = {"w": jnp.ones((3, 4))}, jnp.ones(4)
    began_ns = time.perf_counter_ns()
    (entry,) = compiled(lambda: step(*arguments))
    took_ns = time.perf_counter_ns() - began_ns
    assert entry.name == "step"
    assert [(a.name, str(a)) for a in entry.arguments] == [
        ("params['w']", "float32[3,4]"),
        ("batch", "float32[4]"),
    ]
    assert 50e6 <= covered_ns(entry.trace) < took_ns
    assert covered_ns(entry.lower) > 0
    assert covered_ns(entry.compile) > 0
    assert covered_ns(entry.spans) == sum(b - a for a, b in entry.spans) <= took_ns
    assert entry.place.file == __file__
    assert entry.place.line == test_first_compile_has_phases_arguments_and_line.__code__.co_firstlineno + 8
    assert entry.reason.cause is Cause.FIRST
    assert not entry.again
    assert compiled(lambda: step(*arguments)) == []


def test_reasons(compiled):
    f = jax.jit(lambda x: x * 2)
    x3, x4 = jnp.ones(3), jnp.ones(4)
    half = x3.astype(jnp.bfloat16)

    def reason(*args, call=f):
        (entry,) = compiled(call, *args)
        return entry.reason

    assert reason(x3).cause is Cause.FIRST
    shape = reason(x4)
    assert shape.cause is Cause.SHAPE
    assert "x: float32[3] → float32[4]" in shape.text
    assert reason(half).cause is Cause.DTYPE
    assert reason(2.0).cause is Cause.SHAPE
    weak = reason(jnp.float32(2))
    assert weak.cause is Cause.WEAK_TYPE
    assert weak.again
    with jax.default_matmul_precision("float32"):
        configuration = reason(x3)
    assert configuration.cause is Cause.CONFIGURATION
    assert "jax_default_matmul_precision" in configuration.text
    jax.clear_caches()
    forgotten = reason(x3)
    assert forgotten.cause is Cause.FORGOTTEN
    assert "clear_caches" in forgotten.text
    assert reason(jax.device_put(x3, jax.devices()[0])).cause is Cause.SHARDING


def test_structure_static_and_unused_arguments(compiled):
    @functools.partial(jax.jit, static_argnums=1, static_argnames="mode")
    def step(params, n, unused=None, mode="a"):
        return params["w"] * n

    x = jnp.ones(3)

    def reason(*args, **kwargs):
        (entry,) = compiled(step, *args, **kwargs)
        return entry.reason

    assert reason({"w": x}, 2).cause is Cause.FIRST
    static = reason({"w": x}, 3)
    assert static.cause is Cause.STATIC
    assert "n: 2 → 3" in static.text
    named = reason({"w": x}, 3, mode="b")
    assert named.cause is Cause.STATIC
    assert "mode" in named.text
    assert reason({"w": x, "v": x}, 3, mode="b").cause is Cause.STRUCTURE
    unused = reason({"w": x}, 3, jnp.ones(5))
    assert unused.cause is Cause.STRUCTURE
    assert "doesn't use" in unused.text
    assert "float32[5] → float32[6]" in reason({"w": x}, 3, jnp.ones(6)).text
    plain = jax.jit(lambda x: x + 1)
    compiled(plain, x)
    (form,) = compiled(plain, x=x)
    assert form.reason.cause is Cause.STRUCTURE
    assert "keyword" in form.reason.text


def test_a_new_function_object_each_time(compiled):
    x = jnp.ones(3)

    def twice(make):
        for _ in range(2):
            jax.jit(make())(x)

    def scaled(x, by):
        return x * by

    class Model:
        def __call__(self, x):
            return x + 1

        def loss(self, x):
            return x + 2

    model = Model()
    for make in (
        lambda: lambda x: x + 1,
        lambda: functools.partial(scaled, by=2.0),
        lambda: model.loss,
        lambda: jax.grad(lambda x: x.sum()),
    ):
        first, second = compiled(twice, make)
        assert first.reason.cause is Cause.FIRST
        assert second.reason.cause is Cause.NEW_FUNCTION, second.reason
        assert second.again


def test_a_callable_whose_equality_computes_is_not_asked(compiled):
    class Model:
        def __init__(self):
            self.weights = jnp.ones(3)

        def __call__(self, x):
            return x * 2

        def __eq__(self, other):
            if isinstance(other, Model) and other is not self:
                raise AssertionError("asked")
            return other is self

        __hash__ = object.__hash__

    x = jnp.ones(3)
    with Recorder(Places()) as recorder:
        for _ in range(2):
            jax.jit(Model())(x)
    assert recorder.notices() == []
    assert [entry.reason.cause for entry in recorder.compiles] == [Cause.FIRST, Cause.NEW_FUNCTION]


def test_defined_anew_or_with_other_values_is_no_recompile(compiled):
    x = jnp.ones(3)
    names = {}
    entries = []
    for source in ("def f(x): return x + 1", "def f(x): return x + 2"):
        exec(source, names)
        entries += compiled(jax.jit(names["f"]), x)

    def make(by):
        return jax.jit(lambda x: x * by)

    for by in (2.0, 3.0):
        entries += compiled(make(by), x)
    assert [entry.reason.cause for entry in entries] == [
        Cause.FIRST, Cause.DEFINED_ANEW, Cause.FIRST, Cause.DEFINED_ANEW,
    ]  # fmt: skip
    assert not any(entry.again for entry in entries)


def test_grad_and_vmap_of_a_function_are_not_its_recompiles(compiled):
    def loss(x):
        return (x * x).sum()

    x = jnp.ones(3)
    entries = compiled(
        lambda: (jax.jit(loss)(x), jax.jit(jax.grad(loss))(x), jax.jit(jax.vmap(loss))(x[:, None]))
    )
    assert not any(entry.again for entry in entries), causes(entries)
    f = jax.jit(loss)
    f(x)
    for _ in range(2):
        jax.clear_caches()
        entries = compiled(lambda: jax.grad(lambda x: f(x))(x))
        assert not any(entry.again for entry in entries if not entry.trace), causes(entries)


def test_options_of_jit(compiled):
    def f(x):
        return x + 1

    entries = compiled(lambda: (jax.jit(f)(jnp.ones(3)), jax.jit(f, donate_argnums=0)(jnp.ones(3))))
    assert causes(entries) == [("f", Cause.FIRST), ("f", Cause.OPTIONS)]
    assert "donate_argnums: () → (0,)" in entries[1].reason.text


def test_operations_outside_of_jit(compiled):
    x = jnp.arange(3.0)
    (first,) = compiled(lambda: jnp.cosh(x), operations=True)
    assert first.operation
    assert "cosh" in first.name
    *_, again = compiled(lambda: jnp.cosh(jnp.arange(4.0)), operations=True)
    assert again.reason.cause is Cause.SHAPE
    assert again.again


def test_traced_alone_ahead_of_time_and_failed(compiled):
    f = jax.jit(lambda x: x + 1)
    x = jnp.ones(9)
    (entry,) = compiled(lambda: jax.eval_shape(f, x))
    assert (entry.finished, entry.again) == (False, False)
    assert "not compiled" in entry.explanation
    (entry,) = compiled(lambda: f.lower(jnp.ones(7)).compile())
    assert entry.finished

    @jax.jit
    def bad(x):
        raise ValueError("no")

    def run():
        with pytest.raises(ValueError, match="no"):
            bad(x)

    (entry,) = compiled(run)
    assert entry.failed
    assert entry.explanation == "It failed."
    (entry,) = compiled(run)
    assert not entry.again


def test_nested_phases_are_counted_once(compiled):
    @jax.jit
    def outer(x):
        with jax.ensure_compile_time_eval():
            y = jnp.arange(5) * 3
        time.sleep(0.05)
        return jnp.sin(x) + y.sum()

    x = jnp.ones(3)
    with Recorder(Places()) as recorder:
        began_ns = time.perf_counter_ns()
        outer(x)
        ended_ns = time.perf_counter_ns()
    names = {entry.name for entry in recorder.compiles}
    assert {"outer", "multiply"} <= names  # an operation was compiled while outer was traced
    found = phases(recorder.compiles, began_ns, ended_ns)
    assert found.total_ns == covered_ns([span for entry in recorder.compiles for span in entry.spans])
    assert found.total_ns == found.trace_ns + found.lower_ns + found.compile_ns  # each moment once
    assert found.total_ns <= ended_ns - began_ns
    assert found.trace_ns >= 50e6


def test_threads_compile_side_by_side():
    x = jnp.ones(3)

    def work(n):
        def f(x):
            time.sleep(0.1)
            return x * n

        jax.jit(f)(x).block_until_ready()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    with Recorder(Places()) as recorder:
        began_ns = time.perf_counter_ns()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended_ns = time.perf_counter_ns()
    assert [entry.name for entry in recorder.compiles] == ["f"] * 3
    found = phases(recorder.compiles, began_ns, ended_ns)
    assert 100e6 <= found.trace_ns <= found.total_ns <= ended_ns - began_ns


def test_persistent_cache(tmp_path, compiled):
    x = jnp.ones(3)
    kept = {
        name: getattr(jax.config, name)
        for name in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes",
        )
    }
    from jax.experimental.compilation_cache import compilation_cache

    def f(x):
        return jnp.tanh(x) * 3

    try:
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        with Recorder(Places()) as recorder:
            jax.jit(f)(x)
        assert [entry.cache for entry in recorder.compiles] == ["miss"]
        assert "not stored there" in recorder.notices()[0]
        assert "1 s or more" in recorder.notices()[0]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.clear_caches()
        assert [entry.cache for entry in compiled(jax.jit(f), x)] == ["written"]
        jax.clear_caches()
        with Recorder(Places()) as recorder:
            began_ns = time.perf_counter_ns()
            jax.jit(f)(x)
            ended_ns = time.perf_counter_ns()
        assert [entry.cache for entry in recorder.compiles] == ["hit"]
        found = phases(recorder.compiles, began_ns, ended_ns)
        assert found.cached_ns > 0
        assert found.compile_ns == 0
        assert recorder.notices() == []
    finally:
        for name, value in kept.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def test_nothing_of_the_call_is_kept():
    class Leaf:
        pass

    references = []

    def run():
        x = jnp.ones(1000)
        leaf = Leaf()

        @functools.partial(jax.jit, static_argnums=1)
        def f(x, leaf):
            return x + 1

        with Recorder(Places()) as recorder:
            f(x, leaf)
        references.extend([weakref.ref(x), weakref.ref(leaf), weakref.ref(f.__wrapped__)])
        return recorder

    recorder = run()
    jax.clear_caches()
    gc.collect()
    assert [entry.name for entry in recorder.compiles] == ["f"]
    assert [reference() for reference in references] == [None] * 3


def test_the_history_is_bounded(monkeypatch):
    monkeypatch.setattr(history, "MAX_FUNCTIONS", 10)
    monkeypatch.setattr(history, "MAX_ARGUMENTS", 500)
    log = history.History()

    def signature(number):
        lowering = Lowering("f", (Argument("x", (number,), "float32"),) * 20, ("",) * 20)
        return Signature.of(f"f{number % 20}", None).lowered(lowering)

    for number in range(200):
        log.add(signature(number), {"temporary_bytes": 1})
        assert len(log) <= 10
        assert log.arguments <= 500
    monkeypatch.setattr(history, "MAX_ARGUMENTS", 100)
    for number in range(0, 2000, 20):  # one function alone
        log.add(signature(number), None)
    assert log.arguments <= signature(0).size * history.MAX_SIGNATURES


def test_memory_of_programs(compiled):
    @jax.jit
    def f(x):
        return (x @ x).sum()

    (entry,) = compiled(f, jnp.ones((64, 64)))
    assert entry.memory["argument_bytes"] == 64 * 64 * 4
    assert entry.memory["output_bytes"] == 4
    assert LOG.history.memory_of(f.__wrapped__) == entry.memory
