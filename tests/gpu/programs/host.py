"""Programs in which the device waits for the host: loading, sleeping, synchronising, small steps."""

from __future__ import annotations

import gc
import time

import jax
import jax.numpy as jnp
import numpy as np

from tests.gpu.programs.models import mlp, normal, transformer
from tests.gpu.programs.recording import IDLE, TOO_SMALL, TRANSFERS, WAITED_FOR, WAITING, Recording, program


@program(TOO_SMALL, may=("sync-every-step", "tiny-kernels"))
def tiny_mlp(record: Recording) -> None:
    """The float32 MLP, batch 32 by 128, each step waited for: far too small for the device."""
    step, params, x = mlp(record, 32, 128)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 30):
            params, _ = jax.block_until_ready(step(params, x))


@program(TOO_SMALL, may=("sync-every-step", "tiny-kernels"))
def inference_batch_1(record: Recording) -> None:
    """A transformer's forward pass for one sequence of 32 tokens, each answer waited for."""
    _, forward, params, x = transformer(record, 1, 32)
    forward(params, x).block_until_ready()
    with record.window():
        for _ in record.steps("answer", 20):
            forward(params, x).block_until_ready()


@program(TOO_SMALL, may=("eager-dispatch",))
def dispatch_bound(record: Recording) -> None:
    """Eighty jitted steps of the small MLP in a row, none waited for: Python enqueues too slowly."""
    step, params, x = mlp(record, 128, 256)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 80):
            params, loss = step(params, x)
        loss.block_until_ready()


@program(WAITING, may=(*TOO_SMALL, *TRANSFERS))
def float_loss_light(record: Recording) -> None:
    """`float(loss)` after each step of 0.1 ms."""
    step, params, x = mlp(record, 512, 1024)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 30):
            params, loss = step(params, x)
            float(loss)


@program(WAITING, may=(*TOO_SMALL, *TRANSFERS))
def print_loss(record: Recording) -> None:
    """`print(loss)` after each step of 0.1 ms, bf16."""
    step, params, x = mlp(record, 1024, 1024, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    print(loss)
    with record.window():
        for _ in record.steps("train", 25):
            params, loss = step(params, x)
            print(loss)


@program(WAITING, "no-step-markers", may=(*TOO_SMALL, *TRANSFERS, "eager-dispatch"))
def host_predicate(record: Recording) -> None:
    """A Python `while float(error) > tolerance` around a small jitted update; nothing is marked."""
    update = jax.jit(lambda x: (x * 0.9, jnp.max(jnp.abs(x))))
    x, error = jax.block_until_ready(update(normal(0, record.size(65536))))
    float(error)
    turns = 0
    with record.window():
        while float(error) > 1e-2 and turns < 60:
            x, error = update(x)
            turns += 1
    record.known["turns"] = turns


@program("host-starves-device", may=WAITED_FOR, names=("load_batch",))
def loader_sleep(record: Recording) -> None:
    """30 ms of sleep in `load_batch`, then a bf16 step of some 5 ms."""
    step, params, x = mlp(record, 16384, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 6):
            with record.range("load_batch"):
                time.sleep(0.03)
            params, _ = jax.block_until_ready(step(params, x))


@program("host-starves-device", may=(*WAITED_FOR, "host-to-device-copies"), names=("augment",))
def loader_numpy(record: Recording) -> None:
    """numpy makes a batch of 8 MiB in `augment` (some 30 ms), which then goes to the device."""
    step, params, x = mlp(record, 1024, 2048)
    params, _ = jax.block_until_ready(step(params, np.asarray(x)))
    rng = np.random.default_rng(0)
    record.known["h2d_bytes_each_step"] = x.nbytes
    with record.window():
        for _ in record.steps("train", 6):
            with record.range("augment"):
                batch = rng.normal(size=x.shape).astype(np.float32)
            params, _ = jax.block_until_ready(step(params, batch))


def decode(count: int) -> list[int]:
    """What a decoder in pure Python does: one value at a time."""
    state, values = 1, [0] * count
    for place in range(count):
        state = (state * 1103515245 + 12345) % 2147483648
        values[place] = state >> 16
    return values


@program("host-starves-device", may=(*WAITED_FOR, "profiler-overhead"), names=("decode",), python=True)
def loader_python_traced(record: Recording) -> None:
    """Some 15 ms in the Python function `decode`, not annotated: only the Python tracer sees its name."""
    step, params, x = mlp(record, 8192, 2048, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 5):
            decode(120_000)
            params, _ = jax.block_until_ready(step(params, x))


@program(IDLE, may=("sync-every-step",))
def loader_python_unseen(record: Recording) -> None:
    """The same without the Python tracer: that the host holds the device up is seen, its reason is not."""
    step, params, x = mlp(record, 8192, 2048, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 6):
            decode(120_000)
            params, _ = jax.block_until_ready(step(params, x))


@program("host-starves-device", "no-step-markers", may=IDLE, names=("fetch_rows",))
def loader_between_unmarked(record: Recording) -> None:
    """No steps marked; `fetch_rows` takes 12 ms before each, the last waited for, the device has 5 ms."""
    step, params, x = mlp(record, 16384, 4096, jnp.bfloat16)
    params, loss = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps(None, 8):
            with record.range("fetch_rows"):
                time.sleep(0.012)
            params, loss = step(params, x)
        loss.block_until_ready()


@program(IDLE, may=("sync-every-step",), names=("collect",))
def gc_each_step(record: Recording) -> None:
    """`gc.collect()` over 400,000 objects, annotated `collect`, each step."""
    step, params, x = mlp(record, 8192, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    objects = [[n] for n in range(400_000)]
    with record.window():
        for _ in record.steps("train", 5):
            params, _ = jax.block_until_ready(step(params, x))
            with record.range("collect"):
                gc.collect()
    del objects


@program(IDLE, may=("profiler-overhead", "sync-every-step"), python=True)
def gc_unmarked(record: Recording) -> None:
    """`gc.collect()` each step, not annotated; the Python tracer is on."""
    step, params, x = mlp(record, 8192, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    objects = [[n] for n in range(400_000)]
    with record.window():
        for _ in record.steps("train", 4):
            params, _ = jax.block_until_ready(step(params, x))
            gc.collect()
    del objects


@program(IDLE, minor=("sync-every-step",), names=("save_figures",))
def pause_between_phases(record: Recording) -> None:
    """Five healthy `train` steps, 250 ms in `save_figures`, five healthy `evaluate` steps: one gap."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for _ in record.steps("train", 5):
            params, _ = jax.block_until_ready(step(params, x))
        with record.range("save_figures"):
            time.sleep(0.25)
        for _ in record.steps("evaluate", 5):
            jax.block_until_ready(step(params, x)[1])


@program(IDLE, may=("nothing-wrong",), minor=("sync-every-step",), names=("write_log",), slow_step=7)
def one_slow_step(record: Recording) -> None:
    """Twelve healthy steps, but the eighth (number 7) has 60 ms in `write_log`."""
    step, params, x = mlp(record, 32768, 4096, jnp.bfloat16)
    params, _ = jax.block_until_ready(step(params, x))
    with record.window():
        for n in record.steps("train", 12):
            params, _ = jax.block_until_ready(step(params, x))
            if n == 7:
                with record.range("write_log"):
                    time.sleep(0.06)
