"""Programs whose kernels are the matter: too many, too small, or only moving data about."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.gpu.programs.models import normal
from tests.gpu.programs.recording import TOO_SMALL, TRANSFERS, Recording, program


def parameters(count: int) -> list[jax.Array]:
    return [normal(seed, 64, 64) for seed in range(count)]


@program("eager-dispatch", "no-step-markers", may=(*TOO_SMALL, *TRANSFERS))
def eager_unmarked(record: Recording) -> None:
    """Adam over 10 small parameters operation by operation, not jitted; nothing is marked."""
    params = parameters(10)
    moments = [jnp.zeros_like(p) for p in params]

    def update(params, moments):
        for i, p in enumerate(params):
            moments[i] = 0.9 * moments[i] + 0.1 * jnp.sin(p)
            params[i] = p - 0.01 * moments[i] / (jnp.sqrt(jnp.abs(moments[i])) + 1e-8)

    update(params, moments)
    jax.block_until_ready(params)
    with record.window():
        for _ in record.steps(None, 4):
            update(params, moments)
        jax.block_until_ready(params)


@program("eager-dispatch", may=(*TOO_SMALL, *TRANSFERS, "profiler-overhead"), python=True)
def eager_python_tracer(record: Recording) -> None:
    """Sixty operations on small bf16 arrays one by one, with the Python tracer on."""
    x = normal(0, 64, 64, dtype=jnp.bfloat16)

    def chain(x):
        for _ in range(20):
            x = jnp.tanh(x) * 0.5 + x
        return x

    chain(x).block_until_ready()
    with record.window():
        for _ in record.steps("chain", 3):
            x = chain(x).block_until_ready()


@program("tiny-kernels", may=TOO_SMALL)
def scan_tiny(record: Recording) -> None:
    """`lax.scan` of 400 iterations over a 16 x 16 matrix, jitted."""
    w = normal(0, 16, 16) / 4
    run = jax.jit(lambda x: jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), jnp.sum(x)), x, length=400))
    x, _ = jax.block_until_ready(run(w))
    with record.window():
        for _ in record.steps("rnn", 4):
            x, _ = jax.block_until_ready(run(x))


@program("tiny-kernels", may=TOO_SMALL)
def scan_unrolled(record: Recording) -> None:
    """The same in bf16 with `unroll=20`: fewer iterations, but the kernels stay as small."""
    w = normal(0, 16, 16, dtype=jnp.bfloat16) / 4
    run = jax.jit(lambda x: jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, length=400, unroll=20)[0])
    x = jax.block_until_ready(run(w))
    with record.window():
        for _ in record.steps("rnn", 4):
            x = run(x).block_until_ready()


@program("tiny-kernels", "no-step-markers", may=(*TOO_SMALL, *TRANSFERS))
def while_on_device(record: Recording) -> None:
    """`lax.while_loop` of 300 small turns: its predicate is the device's own affair. Nothing is marked."""
    w = normal(0, 32, 32) / 6
    run = jax.jit(
        lambda x: jax.lax.while_loop(lambda s: s[0] < 300, lambda s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, x))[
            1
        ]
    )
    x = run(w).block_until_ready()
    with record.window():
        for _ in record.steps(None, 4):
            x = run(x).block_until_ready()


@program("device-copies", may=("nothing-wrong",))
def transposes(record: Recording) -> None:
    """Each step transposes 1 GiB four times, in calls of their own: nothing but moving data."""
    x = normal(0, record.size(512), record.size(512), record.size(1024))
    turn = jax.jit(jnp.transpose, static_argnums=1)

    def step(x):
        for order in ((2, 0, 1), (1, 2, 0), (2, 1, 0), (2, 1, 0)):
            x = turn(x, order)
        return x

    x = step(x).block_until_ready()
    record.known["bytes_moved_each_step"] = 8 * x.nbytes
    with record.window():
        for _ in record.steps("train", 6):
            x = step(x)
        x.block_until_ready()


@program(("device-copies", "nothing-wrong"))
def rolling_buffer(record: Recording) -> None:
    """A buffer of 4 GiB is moved up by one row, by concatenation, for each new row; bf16."""
    buffer = normal(0, record.size(131072), record.size(16384), dtype=jnp.bfloat16)
    push = jax.jit(lambda buffer, row: jnp.concatenate([buffer[1:], row[None]]))
    row = buffer[0] * 2
    buffer = push(buffer, row).block_until_ready()
    record.known["bytes_moved_each_step"] = 2 * buffer.nbytes
    with record.window():
        for _ in record.steps("push", 8):
            buffer = push(buffer, row)
        buffer.block_until_ready()


@program("device-copies", may=("nothing-wrong", "eager-dispatch"))
def eager_copies(record: Recording) -> None:
    """`jnp.copy` of a GiB, four times a step, not jitted."""
    x = normal(0, record.size(16384), record.size(16384))
    jnp.copy(x).block_until_ready()
    record.known["bytes_moved_each_step"] = 8 * x.nbytes
    with record.window():
        for _ in record.steps("train", 5):
            for _ in range(4):
                x = jnp.copy(x)
        x.block_until_ready()
