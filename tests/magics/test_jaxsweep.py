"""%%jaxsweep in a real shell."""

from __future__ import annotations

import gc
import json
import weakref

import pytest

from jupyterlab_jaxprof.captures import Record, Status
from jupyterlab_jaxprof.magics.display import Display
from jupyterlab_jaxprof.magics.jaxsweep_progress import Progress
from tests.magics.conftest import newest
from tests.support.versions import enqueues_after_failures

SETUP = """
import jax, jax.numpy as jnp, time
@jax.jit
def product(x):
    return x @ x.T
seen = []
"""
QUICK = "-r 2 --loops 1 --warmup 0"


def points(store) -> list[dict]:
    return [point for series in newest(store).summary["sweep"]["series"] for point in series["points"]]


def test_a_row_for_each_value_with_its_time_rate_compiling_and_memory(shell, store):
    shell.run("n = 'mine'")
    outcome = shell.run(
        "%%jaxsweep 'sizes of n' n=16,64,256 --rate n --save s\n"
        "x = jnp.ones((n, 8))\nseen.append(n)\nprint('seen', n)\nproduct(x)"
    )
    assert (outcome.error, outcome.result.result) == (None, None)
    assert shell.names["n"] == "mine"
    assert list(dict.fromkeys(shell.names["seen"])) == [16, 64, 256]
    assert all(shell.names["seen"].count(n) > 5 for n in (16, 64, 256))
    assert outcome.text.count("seen ") == 3  # the repeats' output is swallowed
    record = newest(store)
    assert (record.kind, record.name, record.status) == ("sweep", "sizes of n", Status.OK)
    assert record.summary["sentence"] == str(shell.names["s"])
    assert record.summary["sentence"].startswith("3 values of n: the rate ")
    assert record.summary["headline"]["unit"] == "n/s"
    for point, n in zip(points(store), (16, 64, 256), strict=True):
        assert (point["value"], point["ending"]) == (str(n), "ok")
        assert point["samples"] >= 5
        assert point["rate"] == pytest.approx(n / point["median_ms"] * 1e3)
        assert point["compiling_ms"] > 0
        # argument, output and temporary bytes of the one program
        assert n * 8 * 4 + n * n * 4 <= point["need_bytes"] <= 4 * (n * 8 * 4 + n * n * 4)
        assert point["peak_bytes"] is None  # a CPU tells none
    for fact in ("n/s", "compiling", "largest program", "quartiles", "n=256", "Rate, n/s"):
        assert fact in outcome.text
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
    result = shell.names["s"].to_dict()
    json.dumps(result)
    assert [point["values"] for point in result["points"]] == [{"n": 16}, {"n": 64}, {"n": 256}]


def test_what_was_compiled_before_is_told_and_fresh_compiles_it(shell, store):
    cell = "n=16,32 -r 1 --loops 1\nproduct(jnp.ones((n, 8)));"
    assert "Nothing was compiled" not in shell.run(f"%%jaxsweep {cell}").text
    again = shell.run(f"%%jaxsweep {cell}").text
    assert "Nothing was compiled: what JAX ran had been compiled before" in again
    assert [point["need_bytes"] for point in points(store)] == [None, None]
    assert [point["compiling_ms"] for point in points(store)] == [0, 0]
    assert "Nothing was compiled" not in shell.run(f"%%jaxsweep --fresh {cell}").text
    assert all(point["need_bytes"] and point["compiling_ms"] for point in points(store))


def test_running_out_of_memory_is_a_row_and_not_the_end(shell, store):
    outcome = shell.run(f"%%jaxsweep power=4,50,6 {QUICK} --rate power\nx = jnp.zeros(1 << power)")
    assert outcome.error is None
    assert "power" not in shell.names
    assert [point["ending"] for point in points(store)] == ["ok", "out of memory", "ok"]
    assert "RESOURCE_EXHAUSTED" in points(store)[1]["error"]
    assert newest(store).status is Status.OK
    assert newest(store).summary["sentence"].endswith("power=50 ran out of memory.")
    assert "out of memory: " in outcome.text
    assert "Traceback" not in outcome.text


def test_an_error_at_some_values_is_a_row_and_its_traceback_is_printed_once(shell, store):
    cell = f"%%jaxsweep n=1,0,2,0 {QUICK}\nseen.append(n)\n1 / n"
    outcome = shell.run(cell)
    assert outcome.error is None
    assert [point["ending"] for point in points(store)] == ["ok", "failed", "ok", "failed"]
    assert outcome.text.count("ZeroDivisionError                         Traceback") == 1
    assert "At n=0, the cell raised:" in outcome.text
    assert "----> 3 1 / n" in outcome.text
    assert "jupyterlab_jaxprof/" not in outcome.text
    record = newest(store)
    assert record.status is Status.PARTIAL
    assert record.reason == "n=0 and n=0 failed: ZeroDivisionError: division by zero."
    assert "n" not in shell.names


def test_an_error_at_every_value_is_the_cells(shell, store):
    outcome = shell.run(f"%%jaxsweep n=1,2 {QUICK}\nseen.append(n)\nundefined")
    assert isinstance(outcome.error, NameError)
    assert outcome.text.count("Traceback") == 1
    assert "jupyterlab_jaxprof/" not in outcome.text
    assert shell.names["seen"] == [1, 2]
    assert newest(store).status is Status.FAILED
    assert "n" not in shell.names


def test_ctrl_c_keeps_what_was_measured_and_puts_the_names_back(shell, store):
    shell.run("n = 7")
    with shell.interrupted_when("third"):
        outcome = shell.run(
            f"%%jaxsweep n=1,2,3,4 {QUICK} --save s\nseen.append(n)\n"
            "if n == 3:\n    print('third')\n    time.sleep(60)"
        )
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert [point["ending"] for point in points(store)] == ["ok", "ok", "interrupted"]
    record = newest(store)
    assert (record.status, record.reason) == (Status.INTERRUPTED, "Stopped after 2 of 4 values.")
    assert record.summary["sentence"].startswith("2 of 4 values of n: the shortest call takes ")
    assert len(shell.names["s"].measured) == 2
    assert (shell.names["n"], 4 in shell.names["seen"]) == (7, False)


def test_several_names_make_series(shell, store):
    shell.run("base = 4")
    outcome = shell.run(
        f"%%jaxsweep n=range(1, 3) kind='float32', jnp.bfloat16 k=base {QUICK}\n"
        "seen.append((n, k)); x = jnp.ones((n, k), kind)"
    )
    series = newest(store).summary["sweep"]["series"]
    assert [one["label"] for one in series] == ["kind=float32, k=4", "kind=jnp.bfloat16, k=4"]
    assert [one["along"] for one in series] == ["n", "n"]
    assert [[point["value"] for point in one["points"]] for one in series] == [["1", "2"]] * 2
    assert "kind=jnp.bfloat16, k=4, n=2" in outcome.text
    shell.run(f"%%jaxsweep n=1,2 k=4,5,6 --by n {QUICK}\nseen.append((n, k))")
    series = newest(store).summary["sweep"]["series"]
    assert [(one["label"], one["along"], len(one["points"])) for one in series] == [
        ("n=1", "k", 3),
        ("n=2", "k", 3),
    ]


def test_a_donated_array_is_told_at_its_value_and_at_those_behind_it(shell, store):
    shell.run("up = jax.jit(lambda p: p + 1, donate_argnums=0)\np = jnp.ones(9)")
    outcome = shell.run("%%jaxsweep n=1,2,3 -r 3\nq = up(p * n if n == 2 else p)")
    first, second, third = points(store)
    assert "donated or deleted p" in first["stopped"]
    assert (first["median_ms"], second["ending"]) == (None, "failed")
    hint = "p was donated or deleted at n=1, and every value uses it: make it anew in the cell"
    assert second["hint"].startswith(hint)
    assert third["hint"] == second["hint"]
    assert newest(store).status is Status.PARTIAL
    assert hint in newest(store).reason
    assert hint in " ".join(outcome.text.split())
    # A cell that makes what it donates, and fails for another reason, is not told of it.
    shell.run(f"%%jaxsweep n=1,0 {QUICK}\np = jnp.ones(9); q = up(p); 1 / n")
    assert [point["hint"] for point in points(store)] == ["", ""]


def test_an_exit_ends_the_sweep_and_keeps_what_was_measured(shell, store):
    cell = f"%%jaxsweep n=1,2,3 {QUICK}\nseen.append(n)\nif n == 2:\n    raise"
    assert isinstance(shell.run(f"{cell} SystemExit(4)").error, SystemExit)
    record = newest(store)
    assert [point["ending"] for point in points(store)] == ["ok", "failed"]
    assert record.status is Status.INTERRUPTED
    assert record.reason == "The cell raised SystemExit at n=2, which ended the sweep."
    assert isinstance(shell.run(f"{cell} GeneratorExit").error, GeneratorExit)
    repeated = "if n == 2 and seen.count(2) > 2:\n    raise"  # a repeat of it
    assert isinstance(
        shell.run(cell.replace("if n == 2:\n    raise", f"{repeated} SystemExit")).error, SystemExit
    )
    assert len(points(store)) == 2
    leave = "--rate 'sys.exit() if n == 2 else n'"
    shell.run("import sys")
    assert isinstance(shell.run(f"%%jaxsweep n=1,2,3 {leave} {QUICK}\nseen.append(n)").error, SystemExit)
    assert newest(store).reason == "The cell raised SystemExit, which ended the sweep."
    assert ("n" in shell.names, 3 in shell.names["seen"]) == (False, False)


def test_ctrl_c_between_two_values_shows_none_of_our_lines(shell, store, monkeypatch):
    def interrupted(progress, done, label):
        if done == 1:
            raise KeyboardInterrupt("in the middle of showing it")

    monkeypatch.setattr(Progress, "show", interrupted)
    outcome = shell.run(f"%%jaxsweep n=1,2 {QUICK}\nseen.append(n)")
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert "in the middle" not in outcome.text
    assert "jupyterlab_jaxprof/" not in outcome.text
    assert newest(store).reason == "Stopped after 1 of 2 values."


def test_what_the_rate_counts_is_that_of_the_first_run(shell, store):
    shell.run("made = 0")
    shell.run("%%jaxsweep n=10,20 -r 3 -t 0.001 --warmup 2 --rate made * 2 --save s\nmade += n")
    (first, second), made = shell.names["s"].points, shell.names["made"]
    assert first.items == 20
    assert 20 < second.items < 2 * made  # what the repeats before it left, and this value's first run
    shell.run(f"%%jaxsweep n=10,20 {QUICK} --rate n --save s\nn = n + 1")
    assert [point.items for point in shell.names["s"].points] == [10, 20]


def test_operations_outside_of_jit_are_programs_too(shell, store):
    shell.run(f"%%jaxsweep n=301,402 {QUICK}\nbig = jnp.zeros((n, 1000)); product(jnp.ones((2, n - 7)))")
    assert [point["need_bytes"] >= n * 4000 for point, n in zip(points(store), (301, 402), strict=True)] == [
        True, True,
    ]  # fmt: skip


def test_a_cell_without_jax_is_told_nothing_of_compiling(shell, store):
    shell.run("def outer(n):\n    return inner(n)\ndef inner(n):\n    return jnp.ones(n)")
    assert "compiled" not in shell.run(f"%%jaxsweep n=5,6 {QUICK}\ny = len(seen * n); time.sleep(0)").text
    shell.run("outer(5); outer(6)")
    assert "had been compiled before" in shell.run(f"%%jaxsweep n=5,6 {QUICK}\nouter(n)").text
    assert [point["compiled_before"] for point in points(store)] == [True, True]


def test_what_compiles_in_every_repeat_is_named_with_its_reason(shell, store):
    shell.run("x = jnp.ones(3)")
    shell.run(f"%%jaxsweep n=1,2 {QUICK}\ny = jax.jit(lambda z: z * n)(x)")
    told = "In every repeat <lambda> was compiled again, so no run of it counts."
    assert points(store)[0]["stopped"].startswith(f"{told} A new function object")
    assert f"none could be timed ({told[:-1]})" in newest(store).summary["sentence"]
    assert newest(store).reason.startswith(f"n=1: {told}")


def test_programs_read_from_disk_are_no_compiling(shell, store, tmp_path):
    import jax

    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    try:
        shell.run(
            "from jax.experimental.compilation_cache import compilation_cache\n"
            "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
            "compilation_cache.reset_cache()\n"
            f"jax.config.update('jax_compilation_cache_dir', {str(tmp_path)!r})"
        )
        cell = f"%%jaxsweep n=41,42 --fresh {QUICK}\nproduct(jnp.ones((n, 8)))"
        shell.run(cell)
        assert points(store)[0]["cache_read_ms"] == 0
        outcome = shell.run(cell)
        assert all(point["cache_read_ms"] > 0 and point["compiling_ms"] > 0 for point in points(store))
        assert "read from disk" in outcome.text
        assert "At 2 values programs were read from the persistent compilation cache" in outcome.text
    finally:
        jax.config.update("jax_compilation_cache_dir", before[0])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])
        shell.run("compilation_cache.reset_cache()")


def test_a_magic_in_the_cell_uses_the_name_and_keeps_no_record_of_repeats(shell, store):
    text = shell.run(f"%%jaxsweep n=3,4 {QUICK}\n%jaxtime --no-card product(jnp.ones((n, 2)))").text
    assert "do not use n" not in text
    assert sorted(row.record.kind for row in store.list().rows) == ["sweep", "time", "time"]


@enqueues_after_failures
def test_a_wait_for_an_earlier_cell_is_told_at_its_value(shell, store):
    shell.run(
        "work = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, y: jnp.sin(y @ y), x))\n"
        "x, n, took = jnp.ones((300, 300)), 250, 0\n"
        "work(x, n).block_until_ready()\n"
        "while took < 0.4:\n"  # long enough on any machine
        "    n, began = 2 * n, time.perf_counter()\n"
        "    work(x, n).block_until_ready()\n"
        "    took = time.perf_counter() - began"
    )
    shell.run("left = work(x, n)")
    shell.run(f"%%jaxsweep n=1,2 {QUICK}\nseen.append(n)")
    (told,) = newest(store).notices
    assert told.startswith(
        "At n=1: Before this cell started, work that an earlier cell had left running took"
    )


def test_values_that_can_not_be_written_are_counted(shell, store):
    shell.run(
        "class Odd:\n    def __repr__(self):\n        raise ValueError('no')\nodd = [Odd(), Odd(), 10**5000]"
    )
    assert shell.run(f"%%jaxsweep n=odd {QUICK}\nseen.append(n)").error is None
    assert [point["value"] for point in points(store)] == ["Odd 1", "Odd 2", "int 3"]


def test_what_can_mislead_is_told(shell):
    text = shell.run(f"%%jaxsweep n=1,2 {QUICK} --rate nothing\nseen.append(0)").text
    assert "The cell's own lines do not use n." in text
    assert "--rate nothing can't be used: NameError" in text
    text = shell.run(f"%%jaxsweep n=1,0,2,-1 {QUICK} --rate n\nseen.append(n)").text
    assert "--rate n can't be used at n=0 and n=-1: it gives no number above 0." in text
    assert "The cell itself assigns to n" in shell.run(f"%%jaxsweep n=1,2 {QUICK}\nn = n + 1").text


def test_nothing_of_the_cells_is_kept(shell):
    class Holder:
        pass

    held = []

    def make(fail):
        holder = Holder()
        held.append(weakref.ref(holder))
        if fail:
            raise ValueError("made in vain")
        return holder

    shell.names["make"] = make
    shell.run(f"%%jaxsweep n=0,1 {QUICK} --save s\nmake(n == 1)")
    gc.collect()
    assert len(held) == 4
    assert [reference() for reference in held] == [None] * len(held)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%%jaxsweep n=1,2\nseen.append(1))\n", "SyntaxError: unmatched"),
        ("%%jaxsweep n=1,2\n", "there is nothing to run"),
        ("%%jaxsweep n=nothing\nseen.append(n)", "(NameError: name 'nothing' is not defined) in n=nothing"),
        ("%%jaxsweep n=1,,2\nseen.append(n)", "the values of n can't be read (SyntaxError"),
        ("%%jaxsweep n=[]\nseen.append(n)", "gives no value"),
        ("%%jaxsweep n=range(40) k=range(40)\nseen.append(n)", "these are 1,600 combinations"),
        ("%%jaxsweep n=1,2 --help\nseen.append(n)", "The cell was not run."),
        ("%%jaxsweep n=(1 / k for k in (1, 0))\nseen.append(n)", "can't be read (ZeroDivisionError"),
        ("%%jaxsweep n=1,2 'my run'\nseen.append(n)", "goes first: %%jaxsweep 'my run' n=1,2."),
        ("%%jaxsweep n=1, 2 mine\nseen.append(n)", "goes first: %%jaxsweep mine n=1, 2."),
        ("%%jaxsweep n=1,2 --rate 1+\nseen.append(n)", "--rate takes a Python expression, and '1+' is none"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(shell, store, cell, told):
    outcome = shell.run(cell)
    assert told in outcome.text
    assert "jupyterlab_jaxprof/" not in outcome.text
    assert (shell.names["seen"], list(store.list().rows)) == ([], [])


def test_a_terminal_shows_a_bar_and_takes_it_away(monkeypatch, capsys):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    display = Display(None, show_card=False)  # type: ignore[arg-type] - a terminal needs no shell
    progress = Progress(None, display, 4)  # type: ignore[arg-type]
    progress.show(1, "batch=8")
    progress.clear()
    progress.clear()
    shown = capsys.readouterr().err
    assert shown.endswith("\r\x1b[K")
    assert "██████░░░░░░░░░░░░░░░░░░ 1/4  batch=8" in shown
    assert shown.count("\x1b[K") == 2
