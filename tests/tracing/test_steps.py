from __future__ import annotations

import pytest

from jupyterlab_jaxprof.tracing.steps import step_name, summarize


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("params, loss = train_step(params, batch)", "train_step"),
        ("train_step(params, batch);", "train_step"),
        ("loss = train_step(params).block_until_ready()", "train_step"),
        ("jax.block_until_ready(model.apply(x))", "apply"),
        ("await serve(x)", "serve"),
        ("state: int = step_fn(state)", "step_fn"),
        ("x = 1", "step"),
        ("print(f(x))", "step"),
        ("a = f(x)\nb = g(a)", "step"),
        ("for i in range(3): f(i)", "step"),
        ("%timeit f(x)", "step"),
        ("(lambda: 1)()", "step"),
        ("", "step"),
    ],
)
def test_steps_are_named_after_the_one_function_called(body, name):
    assert step_name(body) == name


def test_summary():
    steps = summarize("train", [3.0, 1.0, 2.0])
    assert steps == {
        "name": "train",
        "count": 3,
        "median_ms": 2.0,
        "min_ms": 1.0,
        "max_ms": 3.0,
        "quartiles_ms": [1.5, 2.5],
        "durations_ms": [3.0, 1.0, 2.0],
    }
    assert summarize("train", [2.0])["quartiles_ms"] == [2.0, 2.0]
    assert len(summarize("train", [1.0] * 50_000)["durations_ms"]) == 10_000
