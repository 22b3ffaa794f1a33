"""Programs that compile while they are recorded, for a first time or again."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from tests.gpu.programs.models import mlp, normal, transformer
from tests.gpu.programs.recording import IDLE, TOO_SMALL, WAITED_FOR, Recording, program

# While one compiles nothing runs.
COMPILING_MAY = (*TOO_SMALL, "first-call-compile", "eager-dispatch", "sync-every-step")


@program("recompilation", may=COMPILING_MAY, names=("train_step",), cached=False)
def recompile_shapes(record: Recording) -> None:
    """The batch has another length each step: `train_step` is compiled each time."""
    step, params, x = mlp(record, 4096, 1024)
    params, _ = jax.block_until_ready(step(params, x))
    batches = [jax.block_until_ready(x[: -8 * (n + 1)]) for n in range(5)]
    with record.window():
        for n in record.steps("train", 5):
            params, _ = jax.block_until_ready(step(params, batches[n]))


@program("recompilation", may=COMPILING_MAY, names=("scaled",), cached=False)
def recompile_static(record: Recording) -> None:
    """A Python number that changes each step is a static argument of `scaled`; bf16, only small work."""

    @functools.partial(jax.jit, static_argnums=1)
    def scaled(x, rate):
        return jnp.sin(x) * rate + x

    x = normal(0, record.size(65536), dtype=jnp.bfloat16)
    scaled(x, 0.0).block_until_ready()
    with record.window():
        for n in record.steps("train", 8):
            x = scaled(x, 0.1 * (n + 1)).block_until_ready()


@program("recompilation", may=(*COMPILING_MAY, "profiler-overhead"), python=True, cached=False)
def recompile_lambda(record: Recording) -> None:
    """A new lambda is jitted each step; the Python tracer is on."""
    x = normal(0, record.size(65536))
    jax.jit(lambda x: jnp.cos(x) + 0.5)(x).block_until_ready()
    with record.window():
        for _ in record.steps("train", 4):
            x = jax.jit(lambda x: jnp.cos(x) + 0.5)(x).block_until_ready()


@program("recompilation", "no-step-markers", may=COMPILING_MAY, cached=False)
def recompile_growing(record: Recording) -> None:
    """A cache grows by `jnp.concatenate` each turn, so its readers are compiled anew; nothing is marked."""
    attend = jax.jit(lambda cache, q: jax.nn.softmax(cache @ q) @ cache)
    cache = normal(0, 16, record.size(1024))
    q = attend(cache, cache[0]).block_until_ready()
    with record.window():
        for _ in record.steps(None, 4):
            cache = jnp.concatenate([cache, q[None]])
            q = attend(cache, q).block_until_ready()


@program("recompilation", may=COMPILING_MAY, names=("train_step",), cached=False)
def weak_type_once(record: Recording) -> None:
    """From step 4 of 10 the rate is an array, no Python number: `train_step` is compiled once more."""

    @jax.jit
    def train_step(x, rate):
        return x - rate * jnp.tanh(x @ x)

    x = normal(0, record.size(4096), record.size(4096)) / 64
    rate = jnp.float32(0.01)
    jax.block_until_ready(train_step(x, 0.01))
    with record.window():
        for n in record.steps("train", 10):
            x = train_step(x, 0.01 if n < 4 else rate).block_until_ready()


@program("first-call-compile", may=WAITED_FOR, names=("train_step",), cached=False)
def first_call_transformer(record: Recording) -> None:
    """The first of six steps compiles the transformer's `train_step`; the others are healthy."""
    step, _, params, x = transformer(record, 16, 1024, layers=2)
    jax.block_until_ready((params, x))
    with record.window():
        for _ in record.steps("train", 6):
            params, _ = jax.block_until_ready(step(params, x))


@program("first-call-compile", may=WAITED_FOR, cached=False)
def first_calls_of_two(record: Recording) -> None:
    """`train_step` is compiled in the first step, `evaluate_loss` in step 4, where it is first called."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)

    @jax.jit
    def evaluate_loss(params, x):
        return jnp.mean(jnp.square(jnp.tanh(x @ params[0]) @ params[1]))

    jax.block_until_ready((params, x))
    with record.window():
        for n in record.steps("train", 8):
            params, _ = jax.block_until_ready(step(params, x))
            if n == 4:
                evaluate_loss(params, x).block_until_ready()


@program("nothing-wrong", may=("first-call-compile", *IDLE), cached=False)
def compiled_before_the_steps(record: Recording) -> None:
    """Compiling ahead of time happens in the recorded time, but before the steps, which are healthy."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    jax.block_until_ready((params, x))
    with record.window():
        compiled = step.lower(params, x).compile()
        for _ in record.steps("train", 8):
            params, loss = compiled(params, x)
        loss.block_until_ready()


@program(("first-call-compile", *IDLE), may=("nothing-wrong", *WAITED_FOR))
def first_call_from_cache(record: Recording) -> None:
    """The first step takes its program from the persistent cache: it is read and loaded, not compiled."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    jax.clear_caches()
    with record.window():
        for _ in record.steps("train", 6):
            params, _ = jax.block_until_ready(step(params, x))
