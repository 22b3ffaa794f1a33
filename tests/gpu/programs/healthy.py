"""Programs that keep the device busy: nothing is to be named, whatever else they do."""

from __future__ import annotations

import queue
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

from tests.gpu.programs.models import mlp, normal, transformer
from tests.gpu.programs.recording import IDLE, TOO_SMALL, TRANSFERS, WAITING, Recording, program


@program("nothing-wrong")
def healthy_transformer(record: Recording) -> None:
    """A transformer's training step in bf16, 16 x 1,024 tokens; only the last step is waited for."""
    step, _, params, x = transformer(record, 16, 1024)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 8):
            params, loss = step(params, x)
        jax.block_until_ready((params, loss))


@program("nothing-wrong", minor=("sync-every-step",))
def healthy_transformer_f32(record: Recording) -> None:
    """The same in float32, each step waited for."""
    step, _, params, x = transformer(record, 16, 1024, dtype=jnp.float32)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 5):
            params, _ = jax.block_until_ready(step(params, x))


@program("nothing-wrong", minor=("sync-every-step",))
def healthy_mlp_donated(record: Recording) -> None:
    """The MLP in bf16, batch 65,536 by 4,096, parameters donated, each step waited for."""
    step, params, x = mlp(record, 65536, 4096, jnp.bfloat16, donate=True)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 6):
            params, _ = jax.block_until_ready(step(params, x))


@program("nothing-wrong", "no-step-markers")
def healthy_unmarked(record: Recording) -> None:
    """The MLP in bf16, batch 32,768 by 4,096, no step marked, the last waited for."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps(None, 8):
            params, loss = step(params, x)
        jax.block_until_ready((params, loss))


@program("nothing-wrong", may=("profiler-overhead",), minor=(*WAITING, "device-idle"), python=True)
def healthy_python_tracer(record: Recording) -> None:
    """The MLP in bf16, batch 65,536 by 4,096, with the Python tracer on; `float(loss)` each step."""
    step, params, x = mlp(record, 65536, 4096, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 5):
            params, loss = step(params, x)
            float(loss)


@program("nothing-wrong", minor=WAITING)
def float_loss_heavy(record: Recording) -> None:
    """`float(loss)` each step, but the step is device-bound for tens of ms: reading it costs little."""
    step, params, x = mlp(record, 65536, 8192, jnp.bfloat16)
    params, loss = step(params, x)
    float(loss)
    with record.window():
        for _ in record.steps("train", 5):
            params, loss = step(params, x)
            float(loss)


@program("nothing-wrong", may=("device-copies",))
def eager_large(record: Recording) -> None:
    """Operation by operation from Python, without jit, on 12,288 x 12,288 floats: the device never waits."""
    x = normal(0, record.size(12288), record.size(12288))

    def update(x):
        y = jnp.tanh(x @ x) * 0.01 + x
        return y - jnp.mean(y)

    update(x).block_until_ready()
    with record.window():
        for _ in record.steps("update", 5):
            x = update(x)
        x.block_until_ready()


@program(minor=("sync-every-step", *IDLE))
def prefetched(record: Recording) -> None:
    """A thread puts batches on the device (`load_batch`) before they are needed, all but the first."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    batches: queue.Queue = queue.Queue(2)
    rng = np.random.default_rng(0)

    def load():
        for _ in range(12):
            with record.range("load_batch"):
                time.sleep(0.002)
                offset = rng.normal(size=(1, x.shape[1])).astype(np.float32)
                batches.put(jax.device_put(offset))

    add = jax.jit(lambda x, offset: x + offset.astype(x.dtype))
    add(x, jnp.ones((1, x.shape[1]))).block_until_ready()
    with record.window():
        thread = threading.Thread(target=load)
        thread.start()
        for _ in record.steps("train", 12):
            params, loss = step(params, add(x, batches.get()))
            loss.block_until_ready()
        thread.join()


@program("nothing-wrong", minor=("sync-every-step", "device-idle", "host-to-device-copies"))
def put_ahead(record: Recording) -> None:
    """The next batch (16 MiB) is put on the device while the step runs: the copy is hidden by the step."""
    step, params, x = mlp(record, 65536, 4096, jnp.bfloat16)
    rows = record.size(1024)
    batches = [np.full((rows, x.shape[1]), n, np.float32) for n in range(8)]
    mix = jax.jit(lambda x, b: x.at[: b.shape[0]].add(b.astype(x.dtype)))
    ahead = jax.device_put(batches[0])
    params, _ = jax.block_until_ready(step(params, mix(x, ahead)))
    record.known["h2d_bytes_each_step"] = batches[0].nbytes
    with record.window():
        for n in record.steps("train", 7):
            params, loss = step(params, mix(x, ahead))
            ahead = jax.device_put(batches[n + 1])
            loss.block_until_ready()


@program("nothing-wrong", minor=TRANSFERS)
def small_inputs(record: Recording) -> None:
    """A 64 KiB numpy batch and a Python scalar go to the device each step of some 10 ms: no matter."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    batch = np.ones((4, x.shape[1]), np.float32)
    mix = jax.jit(lambda x, b, rate: x + rate * jnp.sum(b, 0).astype(x.dtype))
    params, _ = jax.block_until_ready(step(params, mix(x, batch, 0.1)))
    record.known["h2d_bytes_each_step"] = batch.nbytes
    with record.window():
        for n in record.steps("train", 8):
            params, loss = step(params, mix(x, batch, 0.1 * n))
        loss.block_until_ready()


@program("nothing-wrong")
def scan_big(record: Recording) -> None:
    """`lax.scan` over 24 iterations of a bf16 product of 8,192 x 8,192: a loop, but of large bodies."""
    size = record.size(8192)
    w = normal(0, size, size, dtype=jnp.bfloat16) / size**0.5
    run = jax.jit(lambda w, x: jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, length=24)[0])
    x = jax.block_until_ready(run(w, w))
    with record.window():
        for _ in record.steps("train", 4):
            x = run(w, x)
        x.block_until_ready()


@program("nothing-wrong")
def memory_moderate(record: Recording) -> None:
    """Some 40 % of the device's memory is held while a healthy step runs: no pressure."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    held = jnp.zeros((record.size(40 * 1024), 1024, 256 if not record.small else 1), jnp.float32)
    params, loss = jax.block_until_ready(step(params, x))
    record.known["held_bytes"] = held.nbytes
    with record.window():
        for _ in record.steps("train", 6):
            params, loss = step(params, x)
        loss.block_until_ready()
    del held


@program("nothing-wrong", flags="--xla_gpu_enable_command_buffer=")
def no_command_buffers(record: Recording) -> None:
    """The float32 MLP, batch 16,384 by 4,096, its kernels launched one by one without CUDA graphs."""
    step, params, x = mlp(record, 16384, 4096)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 6):
            params, loss = step(params, x)
        loss.block_until_ready()


@program(may=("sync-every-step", *TOO_SMALL))
def two_kinds_of_steps(record: Recording) -> None:
    """Steps `train` and `evaluate` by turns, of different length: no step is slow, they are two kinds. Of
    each, waited for, one ms is starting and ending."""
    step, forward, params, x = transformer(record, 16, 512)
    params, _ = jax.block_until_ready(step(params, x))
    forward(params, x).block_until_ready()
    with record.window():
        for _ in range(4):
            for _ in record.steps("train", 1):
                params, _ = jax.block_until_ready(step(params, x))
            for _ in record.steps("evaluate", 1):
                forward(params, x).block_until_ready()


@program("nothing-wrong")
def started_amid_work(record: Recording) -> None:
    """Recording starts while earlier work still runs; then healthy steps, of which none is waited for."""
    step, params, x = mlp(record, 65536, 8192, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    record.alone()
    for _ in range(12):
        params, loss = step(params, x)
    with record.window():
        for _ in record.steps("train", 6):
            params, loss = step(params, x)
        loss.block_until_ready()
