"""Figures of the timing room, each as a ratio or a difference of two things measured in turns.

Run it on a machine that does nothing else: `python bench/timing.py`. What it prints are the aims of the
project beside what was measured; it fails no build.
"""

from __future__ import annotations

import os
import tempfile
import time as clock

import jax
import jax.numpy as jnp
from IPython.core.interactiveshell import InteractiveShell

from jupyterlab_jaxprof import Plan, time
from jupyterlab_jaxprof.cell import Cell, drive
from jupyterlab_jaxprof.timing import measure
from jupyterlab_jaxprof.timing.bodies import CellBody
from jupyterlab_jaxprof.timing.reads import ReadObserver
from jupyterlab_jaxprof.timing.sampling import MemorySampler

ROUNDS = 25


def by_hand(function, x, loops):
    """A loop as one writes it: the last result is waited for."""
    began = clock.perf_counter()
    for _ in range(loops):
        y = function(x)
    y.block_until_ready()
    return (clock.perf_counter() - began) / loops * 1e6


def against_a_loop(name, function, x, repeats=4):
    loops = time(function, x, plan=Plan(seconds=0.2)).repeats.samples[0].loops
    plan = Plan(repeats=repeats, loops=loops)
    ours, hand = [], []
    for _ in range(ROUNDS):
        ours += [ms * 1e3 for ms in time(function, x, plan=plan).repeats.times_ms]
        hand += [by_hand(function, x, loops) for _ in range(repeats)]
    ours, hand = sorted(ours), sorted(hand)
    median, median_hand = ours[len(ours) // 2], hand[len(hand) // 2]
    print(
        f"{name}: {median:.2f} us against {median_hand:.2f} us by hand: ratio {median / median_hand:.3f}, "
        f"difference {median - median_hand:+.2f} us; minima {ours[0]:.2f} and {hand[0]:.2f} us"
    )


def empty_body():
    shell = InteractiveShell.instance()
    cell = Cell.from_magic(shell, "jaxtime", "", "None")
    loops = 100_000
    runs = [drive(cell.run(loops)) for _ in range(ROUNDS)]
    best_ns = min((run.returned_ns - run.started_ns) / loops for run in runs)
    print(f"an empty body: {best_ns:.1f} ns an iteration (aim: under 25)")


def single_run():
    shell = InteractiveShell.instance()
    shell.user_ns.update(
        f=jax.jit(lambda x: x + 1), x=jnp.ones(8), held=[jnp.float32(n) + 0 for n in range(1000)]
    )
    shell.run_cell("f(x);", silent=True)
    cell = Cell.from_magic(shell, "jaxtime", "", "f(x);")
    body = CellBody(cell)
    drive(measure(body, "bench"))
    plain, measured = [], []
    for _ in range(ROUNDS):
        began = clock.perf_counter()
        shell.user_ns["f"](shell.user_ns["x"]).block_until_ready()
        plain.append((clock.perf_counter() - began) * 1e3)
        began = clock.perf_counter()
        drive(measure(body, "bench"))
        measured.append((clock.perf_counter() - began) * 1e3)
    extra = sorted(ours - hand for ours, hand in zip(measured, plain, strict=True))
    print(
        f"one run with 1,000 arrays alive: {extra[len(extra) // 2]:.3f} ms extra, {extra[0]:.3f} at least "
        "(aim: under 1)"
    )


def whole_cells():
    """A cell as it is run, under the magic and without: parsing, storing and flushing included."""
    shell = InteractiveShell.instance()
    shell.user_ns.update(f=jax.jit(lambda x: x + 1), x=jnp.ones(8))
    plain, measured = [], []
    with tempfile.TemporaryDirectory() as store:
        os.environ["JAXPROF_DIR"] = store
        shell.run_line_magic("load_ext", "jupyterlab_jaxprof")
        for text, times in [("y = f(x)", plain), ("%%jaxtime --no-card\ny = f(x)", measured)] * (ROUNDS + 2):
            began = clock.perf_counter()
            shell.run_cell(text)
            times.append((clock.perf_counter() - began) * 1e3)
    plain, measured = sorted(plain[2:]), sorted(measured[2:])  # the first ones import and compile
    middle = ROUNDS // 2
    print(
        f"a cell under %%jaxtime --no-card: {measured[middle]:.2f} ms against {plain[middle]:.2f} ms of the "
        f"plain cell; minima {measured[0]:.2f} and {plain[0]:.2f} ms"
    )


def watching():
    held = [jnp.float32(n) + 0 for n in range(1000)]
    sampler = MemorySampler()
    sampler.start()
    clock.sleep(3)
    sampler.stop()
    share, seconds = sampler.cost_s / sampler.duration_ms * 1e5, sampler.duration_ms / 1e3
    print(
        f"watching memory with {len(held):,} arrays alive: {share:.2f} % of a processor, "
        f"{len(sampler.samples)} samples in {seconds:.1f} s (aim: under 1 %)"
    )


def reads():
    arrays = [jnp.float32(n) + 0 for n in range(500)]
    jax.block_until_ready(arrays)

    def read():
        began = clock.perf_counter()
        for array in arrays:
            float(array)
        return (clock.perf_counter() - began) / len(arrays) * 1e6

    plain, observed = [], []
    for _ in range(2 * ROUNDS):
        plain.append(read())
        with ReadObserver(lambda *_: None):
            observed.append(read())
    print(f"following a read: {min(observed) - min(plain):+.2f} us (aim: under 5)")

    def body():
        for array in fresh:
            float(array)

    once, followed = [], []
    for transfers, times in [(False, once), (True, followed)] * ROUNDS:
        fresh = jax.block_until_ready([jnp.float32(n) + 0 for n in range(500)])
        times.append(time(body, transfers=transfers).first_ms / len(fresh) * 1e3)
    print(
        f"a loop of reads, with --transfers: {min(followed) - min(once):+.2f} us a read of {min(once):.2f} us"
    )


def main():
    print(f"jax {jax.__version__} on {jax.devices()[0]}")
    against_a_loop("an operation of some microseconds", jax.jit(lambda x: x + 1), jnp.ones(8))
    against_a_loop("a 700x700 product", jax.jit(lambda x: x @ x), jnp.ones((700, 700)))
    empty_body()
    single_run()
    whole_cells()
    reads()
    watching()


if __name__ == "__main__":
    main()
