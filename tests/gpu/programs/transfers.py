"""Programs whose time goes into copies between host and device, or into calling the host back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from tests.gpu.programs.models import mlp, normal
from tests.gpu.programs.recording import IDLE, TOO_SMALL, TRANSFERS, WAITED_FOR, WAITING, Recording, program


@program("host-to-device-copies", may=WAITED_FOR)
def h2d_pageable(record: Recording) -> None:
    """A numpy batch of 256 MiB goes to the device each step, then a float32 step of 9 ms."""
    step, params, x = mlp(record, 16384, 4096)
    batch = np.asarray(x)
    params, _ = jax.block_until_ready(step(params, batch))
    record.known["h2d_bytes_each_step"] = batch.nbytes
    with record.window():
        for _ in record.steps("train", 6):
            params, _ = jax.block_until_ready(step(params, batch))


@program("host-to-device-copies", may=TOO_SMALL)
def h2d_many_small(record: Recording) -> None:
    """Two hundred numpy arrays of 4 KiB go to the device each step, as the leaves of one batch."""
    leaves = [np.full((1024,), n, np.float32) for n in range(200)]
    step = jax.jit(lambda w, leaves: w * 0.9 + sum(leaves))
    w = step(jnp.zeros(1024), leaves).block_until_ready()
    record.known["h2d_copies_each_step"] = len(leaves)
    with record.window():
        for _ in record.steps("train", 10):
            w = step(w, leaves).block_until_ready()


@program("device-to-host-copies", may=(*WAITING, *IDLE))
def asarray_activation(record: Recording) -> None:
    """`np.asarray` of an activation of 64 MiB each step."""
    w = normal(0, record.size(4096), record.size(4096)) / 64
    forward = jax.jit(lambda w, x: jnp.tanh(x @ w))
    x = forward(w, w)
    np.asarray(x)
    record.known["d2h_bytes_each_step"] = x.nbytes
    with record.window():
        for _ in record.steps("train", 8):
            x = forward(w, x)
            np.asarray(x)


@program("device-to-host-copies", may=(*WAITING, *IDLE), names=("checkpoint",))
def checkpoint_each_step(record: Recording) -> None:
    """All parameters (512 MiB, float32) are read back in `checkpoint` after each healthy step."""
    step, params, x = mlp(record, 16384, 8192)
    params, _ = jax.block_until_ready(step(params, x))
    record.known["d2h_bytes_each_step"] = sum(w.nbytes for w in params)
    with record.window():
        for _ in record.steps("train", 4):
            params, _ = jax.block_until_ready(step(params, x))
            with record.range("checkpoint"):
                jax.device_get(params)


@program("host-to-device-copies", "device-to-host-copies", "no-step-markers", may=(*WAITING, *IDLE))
def offload_round_trip(record: Recording) -> None:
    """State of 256 MiB goes to the host and back around each step; nothing is marked."""
    step = jax.jit(lambda x: jnp.tanh(x) * 0.99)
    state = np.asarray(step(normal(0, record.size(8192), record.size(8192))))
    step(state).block_until_ready()
    record.known["h2d_bytes_each_step"] = record.known["d2h_bytes_each_step"] = state.nbytes
    with record.window():
        for _ in record.steps(None, 4):
            state = np.asarray(step(state))


CALLBACK_MAY = (*TRANSFERS, *WAITED_FOR)


@program("host-callback", may=CALLBACK_MAY)
def callback_slow(record: Recording) -> None:
    """`jax.pure_callback` sorts 4 MiB in numpy in the midst of each step: some 20 ms on the host."""
    w = normal(0, record.size(2048), record.size(2048)) / 45

    def on_host(x):
        return np.sort(np.asarray(x), axis=-1)

    @jax.jit
    def step(w, x):
        y = jnp.tanh(x @ w)
        y = jax.pure_callback(on_host, jax.ShapeDtypeStruct(y.shape, y.dtype), y)
        return y @ w

    x = step(w, normal(1, record.size(512), record.size(2048))).block_until_ready()
    with record.window():
        for _ in record.steps("train", 6):
            x = step(w, x).block_until_ready()


@program("host-callback", may=(*CALLBACK_MAY, "batch-too-small", "launch-bound"))
def callback_io(record: Recording) -> None:
    """An ordered `io_callback` logs the loss in each small step; the last step is waited for."""
    seen = []

    @jax.jit
    def step(x):
        y = jnp.tanh(x @ x)
        io_callback(lambda loss: seen.append(float(loss)), None, jnp.mean(y), ordered=True)
        return y

    x = step(normal(0, record.size(2048), record.size(2048)) / 45)
    x.block_until_ready()
    jax.effects_barrier()
    seen.clear()
    with record.window():
        for _ in record.steps("train", 12):
            x = step(x)
        x.block_until_ready()
        jax.effects_barrier()
    record.known["callbacks"] = len(seen)


@program("host-callback", may=(*CALLBACK_MAY, "batch-too-small", "launch-bound"))
def debug_print(record: Recording) -> None:
    """`jax.debug.print` of the loss in each small step, the step waited for."""

    step, params, x = mlp(record, 2048, 2048)

    @jax.jit
    def logged(params, x):
        params, loss = step(params, x)
        jax.debug.print("loss {}", loss)
        return params, loss

    params, _ = jax.block_until_ready(logged(params, x))
    with record.window():
        for _ in record.steps("train", 12):
            params, _ = jax.block_until_ready(logged(params, x))


@program("nothing-wrong", minor=("host-callback", "launch-bound", *TRANSFERS))
def debug_print_heavy(record: Recording) -> None:
    """`jax.debug.print` of a scalar at the end of a step of tens of ms: it costs next to nothing."""
    step, params, x = mlp(record, 65536, 4096, jnp.bfloat16)

    @jax.jit
    def logged(params, x):
        params, loss = step(params, x)
        jax.debug.print("loss {}", loss)
        return params, loss

    params, loss = jax.block_until_ready(logged(params, x))
    with record.window():
        for _ in record.steps("train", 5):
            params, loss = logged(params, x)
        loss.block_until_ready()


@program("memory-pressure", may=("nothing-wrong",))
def memory_near_limit(record: Recording) -> None:
    """All but some GiB of the allocator's memory is held while the bf16 MLP is trained."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    stats = jax.local_devices()[0].memory_stats() or {}
    if record.small or "bytes_limit" not in stats:
        held = []
    else:
        room = int(stats["bytes_limit"] * 0.96) - stats["peak_bytes_in_use"]
        held = [jnp.zeros((256, 1024, 1024), jnp.float32) for _ in range(room // 2**30)]
    jax.block_until_ready(held)
    record.known["held_bytes"] = sum(array.nbytes for array in held)
    with record.window():
        for _ in record.steps("train", 5):
            params, loss = step(params, x)
        loss.block_until_ready()
    del held
