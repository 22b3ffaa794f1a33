"""A body that is run many times in a row."""

from __future__ import annotations

import asyncio
import time

import pytest

from jupyterlab_jaxprof.cell import Cell, drive

BODIES = {
    "plain": "count += 1\ncount",
    "blocks": "for _ in range(1):\n    if True:\n        count += 1",
    "future import": "from __future__ import annotations\ncount += 1",
    "nested too deeply to stand in a loop": "".join(" " * n + "for _ in (1,):\n" for n in range(20))
    + " " * 20
    + "count += 1",
    "magic": "here = %pwd\ncount += 1",
    "function": "def f(x):\n    return x + 1\ncount = f(count)",
    "one line": "count += 1; count",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("interactivity", ["last_expr", "all", "last", "none"])
def test_loops_run_the_body_so_many_times(shell, body, interactivity):
    shell.ip.ast_node_interactivity = interactivity
    shell.names["count"] = 0
    names = set(shell.names)
    cell = Cell.from_magic(shell.ip, "probe", "", body)
    run = drive(cell.run())
    assert run.error is None
    assert shell.names["count"] == 1
    for loops in (2, 7):
        run = drive(cell.run(loops))
        assert run.error is None
    assert shell.names["count"] == 10
    assert {name for name in set(shell.names) - names if "jaxprof" in name} == set()


def test_an_awaiting_body_is_looped_too(shell):
    shell.names.update(count=0, asyncio=asyncio)
    cell = Cell.from_magic(shell.ip, "probe", "", "await asyncio.sleep(0)\ncount += 1")
    assert asyncio.run(cell.run(5)).error is None
    assert shell.names["count"] == 5


def test_an_error_in_a_loop_has_its_line_and_leaves_no_names(shell):
    shell.names["count"] = 0
    cell = Cell.from_magic(shell.ip, "probe", "", "count += 1\nif count == 3:\n    1 / 0")
    run = drive(cell.run(10))
    assert isinstance(run.error, ZeroDivisionError)
    assert shell.names["count"] == 3
    traceback = run.error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback.tb_lineno == 4  # the magic's line is the first
    assert [name for name in shell.names if "jaxprof" in name] == []


@pytest.mark.parametrize("word", ["break", "continue"])
def test_a_stray_break_stays_a_syntax_error(shell, word):
    with pytest.raises(SyntaxError):
        Cell.from_magic(shell.ip, "probe", "", f"x = 1\n{word}")


@pytest.mark.measures_time
def test_an_iteration_costs_little(shell):
    cell = Cell.from_magic(shell.ip, "probe", "", "None")
    drive(cell.run(2))
    best_ns = 1e9
    for _ in range(20):
        run = drive(cell.run(20_000))
        best_ns = min(best_ns, (run.returned_ns - run.started_ns) / 20_000)
    assert best_ns < 60  # some 20 on a machine that does nothing else


def test_what_a_cell_tells_of_itself(shell):
    began = time.perf_counter_ns()
    cell = Cell.from_magic(shell.ip, "probe", "", "x = 1\ndef f():\n    return y")
    assert {code.co_filename for code in cell.codes} == {cell.filename}
    drive(cell.run(3))
    assert len(cell.codes) == 2
    assert cell.names["x"] == 1
    assert cell.names is shell.ip.user_ns
    assert time.perf_counter_ns() > began
