"""Cells measured: in the user's namespace, with the cell's own lines."""

from __future__ import annotations

import asyncio
import sys

import jax
import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.cell import Cell, drive
from jupyterlab_jaxprof.timing import Plan, measure
from jupyterlab_jaxprof.timing.bodies import CellBody
from tests.support.shells import running_shell

ONCE = Plan()


@pytest.fixture
def shell():
    with running_shell("tests.support.probe") as shell:
        shell.names.update(jax=jax, jnp=jnp)
        yield shell


def run(shell, body, plan=ONCE, **options):
    cell = Cell.from_magic(shell.ip, "jaxtime", "", body)
    return drive(measure(CellBody(cell), "cell", plan=plan, names=shell.names, **options))


def test_lines_of_compiles_and_transfers_are_the_cells(shell):
    shell.run("def helper(f, x):\n    return f(x)")
    shell.run("f = jax.jit(lambda x: x * 3)\nx = jnp.arange(4.0)")
    result = run(shell, "y = helper(f, x)\n\nfor _ in range(2):\n    t = float(y[0])\n    y = y + 1\nt")
    assert result.value == 0 or result.value == 1
    (compiled,) = [entry for entry in result.compiles if not entry.operation]
    assert (compiled.name, compiled.place.line) == ("<lambda>", 2)
    result = run(
        shell, "y = helper(f, x)\n\nfor _ in range(2):\n    t = float(y[0])\n    y = y + 1\nt", transfers=True
    )
    reads = [(t.line, t.count) for t in result.transfers if t.direction == "read"]
    assert reads == [(5, 2)]
    writes = {t.line: t.count for t in result.transfers if t.direction == "write"}
    assert writes[6] == 2
    assert set(writes) == {5, 6}


def test_repeats_carry_the_state_over_and_swallow_output(shell):
    shell.names.update(count=0, x=jnp.ones(3))
    result = run(shell, "count += 1\nx = x + 1\nprint(count)\ncount", Plan(repeats=5, loops=2))
    assert result.value == 1
    assert result.cached.count == 5
    assert shell.names["count"] == 1 + 1 + 5 * 2
    assert float(shell.names["x"][0]) == 1 + shell.names["count"]
    assert any("output of the repeats" in notice for notice in result.repeats.notices)


def test_displays_of_repeats_are_swallowed(shell, capsys):
    shell.run("from IPython.display import display")
    result = run(shell, "display(7)", Plan(repeats=3, loops=1))
    assert capsys.readouterr().out.count("7") == 1
    assert any("displays" in notice for notice in result.repeats.notices)


def test_names_that_the_cell_donates_without_assigning_them_again(shell):
    shell.run("step = jax.jit(lambda p: {'w': p['w'] + 1}, donate_argnums=0)\np = {'w': jnp.ones(9)}")
    result = run(shell, "q = step(p)", Plan(repeats=3))
    assert "donated or deleted p," in result.repeats.stopped
    shell.run("p = {'w': jnp.ones(9)}")
    assert run(shell, "p = step(p)", Plan(repeats=3)).cached.count == 3


def test_an_awaiting_cell_is_repeated(shell):
    shell.names.update(asyncio=asyncio, count=0)
    cell = Cell.from_magic(shell.ip, "jaxtime", "", "await asyncio.sleep(0.001)\ncount += 1")
    result = asyncio.run(measure(CellBody(cell), "cell", plan=Plan(repeats=4, loops=1)))
    assert result.cached.count == 4
    assert result.cached.minimum >= 1
    assert shell.names["count"] == 6


def test_a_new_function_in_each_run_is_found(shell):
    shell.names["x"] = jnp.ones(3)
    result = run(shell, "def f(x):\n    return x * 2\njax.jit(f)(x)", Plan(repeats=2, loops=1, warmup=0))
    assert result.cached is None
    assert {entry.reason.cause for entry in result.recompiles} == {"new function object"}
    assert [entry.place.line for entry in result.recompiles] == [4, 4]


def test_memory_names_what_the_cell_left(shell):
    shell.run("product = jax.jit(lambda x: x @ x)\nx = jnp.ones((2000, 2000))\nproduct(x)")
    result = run(shell, "y = [product(x)]", memory=True)  # larger than what other tests keep alive
    held = {array.holders: array.new for array in result.memory.arrays}
    assert held["y[0]",] is True
    assert held["x",] is False
    assert [program.name for program in result.memory.programs] == ["<lambda>"]


def test_nothing_is_left_in_the_namespace_or_the_interpreter(shell):
    before = set(shell.names)
    run(shell, "x1 = 1", Plan(repeats=2), transfers=True, memory=True)
    assert set(shell.names) - before == {"x1"}
    assert sys.gettrace() is None


def test_a_cell_that_fails(shell):
    result = run(shell, "x2 = 1\n1 / 0", Plan(repeats=3), transfers=True, memory=True)
    assert isinstance(result.error, ZeroDivisionError)
    assert result.repeats is None
    assert "until ZeroDivisionError" in result.sentence()
    assert shell.names["x2"] == 1
