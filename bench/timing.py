"""Figures of the timing magics, each as a ratio or a difference of two things measured in turns."""

from __future__ import annotations

import os
import statistics
import tempfile
import time as clock
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from IPython.core.interactiveshell import InteractiveShell

from bench.table import Figure, Limit
from bench.turns import in_turns, timed
from jupyterlab_jaxprof import Plan, time
from jupyterlab_jaxprof.cell import Cell, drive
from jupyterlab_jaxprof.timing import measure
from jupyterlab_jaxprof.timing.bodies import CellBody
from jupyterlab_jaxprof.timing.reads import ReadObserver
from jupyterlab_jaxprof.timing.sampling import MemorySampler

ROUNDS = 25


HELD = 1000
"""Arrays alive while something else is measured."""


def by_hand(function, x, loops):
    """Seconds an iteration of a loop as one writes it: the last result is waited for."""
    began = clock.perf_counter()
    for _ in range(loops):
        y = function(x)
    y.block_until_ready()
    return (clock.perf_counter() - began) / loops


def against_a_loop(name: str, function, x, *limits: Limit, repeats: int = 4) -> Figure:
    """`repeats` samples of each in every turn."""
    loops = time(function, x, plan=Plan(seconds=0.2)).repeats.samples[0].loops
    plan = Plan(repeats=repeats, loops=loops)
    ours, hand = [], []
    for _ in range(ROUNDS):
        ours.append(statistics.median(time(function, x, plan=plan).repeats.times_ms) / 1e3)
        hand.append(statistics.median(by_hand(function, x, loops) for _ in range(repeats)))
    return Figure.of_pairs(name, ours, "a loop by hand", hand, "s", *limits)


def empty_body() -> Figure:
    shell = InteractiveShell.instance()
    cell = Cell.from_magic(shell, "jaxtime", "", "None")
    loops = 100_000
    runs = [drive(cell.run(loops)) for _ in range(ROUNDS)]
    each = [(run.returned_ns - run.started_ns) / loops / 1e9 for run in runs]
    return Figure.of_values("an iteration of an empty body", each, "s", Limit("value", 25e-9))


def single_run() -> Figure:
    shell = InteractiveShell.instance()
    held = [jnp.float32(n) + 0 for n in range(HELD)]
    shell.user_ns.update(f=jax.jit(lambda x: x + 1), x=jnp.ones(8), held=held)
    shell.run_cell("f(x);", silent=True)
    cell = Cell.from_magic(shell, "jaxtime", "", "f(x);")
    body = CellBody(cell)
    drive(measure(body, "bench"))

    def plain() -> None:
        shell.user_ns["f"](shell.user_ns["x"]).block_until_ready()

    ours, theirs = in_turns(
        ROUNDS, lambda: timed(lambda: drive(measure(body, "bench"))), lambda: timed(plain)
    )
    name = f"one run under %%jaxtime, {HELD:,} arrays alive"
    return Figure.of_pairs(name, ours, "the plain run", theirs, "s", Limit("above", 1e-3))


def whole_cells() -> Figure:
    """A cell as it is run, under the magic and without: parsing, storing and flushing included."""
    shell = InteractiveShell.instance()
    shell.user_ns.update(f=jax.jit(lambda x: x + 1), x=jnp.ones(8))
    with tempfile.TemporaryDirectory() as store:
        os.environ["JAXPROF_DIR"] = store
        shell.run_line_magic("load_ext", "jupyterlab_jaxprof")

        def cell(text: str) -> Callable[[], float]:
            return lambda: timed(lambda: shell.run_cell(text))

        # the first ones import and compile
        ours, theirs = in_turns(ROUNDS, cell("%%jaxtime --no-card\ny = f(x)"), cell("y = f(x)"), warmups=2)
    name = "a whole cell under %%jaxtime, its record stored"
    return Figure.of_pairs(name, ours, "the plain cell", theirs, "s", Limit("above", 20e-3))


def watching() -> Figure:
    held = [jnp.float32(n) + 0 for n in range(HELD)]
    sampler = MemorySampler()
    sampler.start()
    clock.sleep(3)
    sampler.stop()
    share = sampler.cost_s / sampler.duration_ms * 1e5
    name = f"%jaxmem --watch with {len(held):,} arrays alive, of a processor"
    return Figure(name, share, "%", (Limit("value", 1),), samples=len(sampler.samples))


def reads() -> Iterator[Figure]:
    arrays = [jnp.float32(n) + 0 for n in range(500)]
    jax.block_until_ready(arrays)

    def read() -> float:
        began = clock.perf_counter()
        for array in arrays:
            float(array)
        return (clock.perf_counter() - began) / len(arrays)

    def observed() -> float:
        with ReadObserver(lambda *_: None):
            return read()

    ours, theirs = in_turns(2 * ROUNDS, observed, read)
    yield Figure.of_pairs("a read that is followed", ours, "a read", theirs, "s", Limit("above", 5e-6))

    def loop(transfers: bool) -> float:
        fresh = jax.block_until_ready([jnp.float32(n) + 0 for n in range(500)])

        def body():
            for array in fresh:
                float(array)

        return time(body, transfers=transfers).first_ms / len(fresh) / 1e3

    ours, theirs = in_turns(ROUNDS, lambda: loop(True), lambda: loop(False))
    name = "a read in a loop with --transfers, its place too"
    yield Figure.of_pairs(name, ours, "without --transfers", theirs, "s", Limit("above", 10e-6))


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    within = Limit("ratio", 1.10), Limit("above", 0.5e-6)
    yield against_a_loop("an operation of microseconds", jax.jit(lambda x: x + 1), jnp.ones(8), *within)
    product = jax.jit(lambda x: x @ x)
    yield against_a_loop("a 700x700 product", product, jnp.ones((700, 700)), Limit("ratio", 1.03))
    yield empty_body()
    yield single_run()
    yield whole_cells()
    yield from reads()
    yield watching()
