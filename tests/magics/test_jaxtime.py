"""%%jaxtime and %jaxtime in a real shell."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import threading
import traceback
import weakref

import jax.numpy as jnp
import pytest

from jupyterlab_jaxprof.captures import Record, Status
from jupyterlab_jaxprof.cell import barrier
from jupyterlab_jaxprof.magics.jaxtime import autotunes
from tests.magics.conftest import newest, records
from tests.support.versions import enqueues_after_failures

SETUP = """
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def step(x):
    return (x @ x).sum()
x = jnp.ones((100, 100))
runs = []
"""


def test_the_first_line_says_what_was_seen_and_the_value_follows_the_card(shell, store):
    outcome = shell.run("%%jaxtime cold\ny = step(x)\nruns.append(1)\ny")
    assert float(outcome.result.result) == 1_000_000
    assert shell.names["runs"] == [1]
    first, second, *_ = outcome.text.splitlines()
    assert re.fullmatch(r"[\d.]+ m?s, of which [\d.]+ m?s compiled step\.", first)
    assert second.startswith("time  cold  ok")
    assert outcome.text.index("Returned to Python after") < outcome.text.index("Out[")
    record = newest(store)
    assert (record.kind, record.name, record.status) == ("time", "cold", Status.OK)
    assert (record.magic, record.cell) == ("%%jaxtime cold", "y = step(x)\nruns.append(1)\ny\n")
    assert record.environment["devices"][0]["platform"] == "cpu"
    summary = record.summary
    assert summary["sentence"] == first
    assert summary["headline"] == {"label": "first run", "value": summary["wall_ms"], "unit": "ms"}
    parts = summary["first"]
    assert parts["compile_ms"] > 0
    assert parts["returned_ms"] <= parts["total_ms"] == summary["wall_ms"]
    (compiled,) = summary["compiles"]
    assert (compiled["name"], compiled["line"], compiled["arguments"]) == ("step", 2, ["x: float32[100,100]"])
    assert summary["cached"] is summary["transfers"] is summary["memory"] is None
    outcome = shell.run("%%jaxtime\nstep(x);")
    assert outcome.text.splitlines()[0].endswith("; nothing compiled.")
    assert newest(store).name == f"In [{outcome.result.execution_count}]"
    assert outcome.result.result is None


def test_cached_runs(shell, store):
    outcome = shell.run(
        "%%jaxtime -r 30 --loops 1 --warmup 2 --save v\nruns.append(1)\nprint('hello')\nstep(x)"
    )
    assert len(shell.names["runs"]) == 1 + 2 + 30
    assert outcome.text.count("hello") == 1
    assert "; run again it takes" in outcome.text.splitlines()[1]  # below what the cell printed
    for fact in ("median", "interquartile range", "minimum", "p20", "samples 30", "output of the repeats"):
        assert fact in outcome.text
    summary, result = newest(store).summary, shell.names["v"]
    assert summary["cached"]["count"] == result.cached.count == 30
    assert summary["headline"] == {"label": "cached run", "value": result.cached.median, "unit": "ms"}
    assert sum(summary["cached"]["histogram"]["counts"]) + summary["cached"]["histogram"]["beyond"] == 30
    assert result.to_dict()["sentence"] == str(result) == summary["sentence"]
    assert len(result.repeats.times_ms) == 30
    assert repr(result).startswith("<TimedResult 'In [")


def test_why_something_compiled_again_and_the_errors_that_can_be_asked_for(shell, store):
    shell.run("@jax.jit\ndef stepped(x):\n    return (x @ x).sum()")
    assert shell.run("%%jaxtime --fail-on-recompile\nstepped(x)").error is None
    shell.run("x = jnp.ones((50, 50))")
    outcome = shell.run("%%jaxtime --fail-on-recompile\nruns.append(1)\nvalue = stepped(x)\nvalue")
    assert type(outcome.error).__name__ == "CompiledError"
    reason = "stepped (line 3): Another shape: x: float32[100,100] → float32[50,50]."
    assert outcome.text.endswith(f"CompiledError: Something was compiled again: {reason}\n")
    assert "Traceback" not in outcome.text
    assert "jupyterlab_jaxprof/" not in outcome.text
    assert shell.names["runs"] == [1]
    assert float(shell.names["value"]) == 125_000
    record = newest(store)
    assert record.status is Status.FAILED
    assert reason in record.reason
    assert record.summary["compiles"][0]["cause"] == "shape"
    assert shell.run("%%jaxtime --fail-on-recompile --no-compile\nstepped(x)").error is None
    outcome = shell.run("%%jaxtime --no-compile\njax.jit(lambda x: x - 1)(x)")
    assert "Under --no-compile something was compiled: <lambda> (line 2)" in outcome.text


def test_a_compile_in_a_repeat_is_left_out_and_fails_too(shell, store):
    shell.run("n = 3\nstep(jnp.ones((3, 3)));")
    cell = "n += 1\nstep(np.ones((min(n, 8), 2)) @ np.ones((2, min(n, 8))))"
    outcome = shell.run(f"%%jaxtime -r 6 --loops 1 --warmup 0 --fail-on-recompile\n{cell}")
    assert type(outcome.error).__name__ == "CompiledError"
    summary = newest(store).summary
    assert summary["repeats"]["left_out"] > 0
    assert summary["cached"]["count"] + summary["repeats"]["left_out"] == 6
    assert "are left out of the cached runs" in " ".join(outcome.text.split())


def test_transfers_and_memory(shell, store):
    shell.run("step(x)\nlarger = [jnp.ones((300, 300)) + n for n in range(25)];")
    cell = "loss = step(x)\nfor _ in range(3):\n    float(loss * 1)\nheld = {'w': jnp.ones((200, 200))}"
    outcome = shell.run(f"%%jaxtime --transfers --memory\n{cell}")
    assert outcome.error is None
    summary = newest(store).summary
    reads = [(t["way"], t["line"], t["count"]) for t in summary["transfers"] if t["direction"] == "read"]
    assert reads == [("float", 4, 3)]
    assert "read by float" in outcome.text
    left = next(array for array in summary["memory"]["arrays"] if array["new"])
    assert (left["holders"], left["size_bytes"]) == (["held['w']"], 160_000)
    assert re.search(r"held\['w'\]\s+float32\[200,200\]\s+160 kB", outcome.text)
    assert any(program["name"] == "step" for program in summary["memory"]["programs"])
    assert "no statistics for a CPU" in outcome.text
    assert "No implicit transfer" in shell.run("%%jaxtime --transfers\nstep(x);").text


@pytest.mark.measures_time
def test_comparison_with_the_newest_of_each_name(shell, store, monkeypatch):
    shell.run("%%jaxtime a -r 5\nstep(x);")
    shell.run("%%jaxtime single\nstep(x);")
    shell.run("import time")
    shell.run("%%jaxtime a -r 10 --loops 1\ntime.sleep(0.02)")
    second = newest(store)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    outcome = shell.run("%%jaxtime b -r 10 --loops 1 --compare a,single\ntime.sleep(0.04)")
    with_a, with_single = newest(store).summary["comparison"]
    assert (with_a["name"], with_a["id"]) == ("a", second.id)
    assert 1.6 < with_a["ratio"]["value"] < 2.4
    assert with_a["ratio"]["low"] < with_a["ratio"]["value"] < with_a["ratio"]["high"]
    assert with_a["ratio"]["differs"] is True
    assert with_a["differences"] == ["XLA_FLAGS: --xla_cpu_enable_fast_math=false here, none there"]
    assert with_single["ratio"].get("low") is None
    cached = newest(store).summary["cached"]
    assert with_a["own_ms"] == cached["p20"]  # the bars are what the ratio is of
    assert with_a["own_ms"] / with_a["value_ms"] == pytest.approx(with_a["ratio"]["value"])
    assert "this, by the 20th percentile of the runs" in outcome.text
    assert re.search(r"this is \S+ × (faster|slower) \(\S+ to \S+\)\n", outcome.text)
    assert "single first runs" in outcome.text
    assert "Not alike with a: XLA_FLAGS" in outcome.text
    shell.run("%%jaxtime a\n1 / 0")  # is nothing to compare with
    again = shell.run("%%jaxtime a -r 5 --loops 1 --compare a\ntime.sleep(0.02)")
    assert newest(store).summary["comparison"][0]["id"] == second.id
    assert "too few runs to tell" in again.text


def test_a_name_that_nothing_has_is_told_before_anything_runs(shell, store):
    outcome = shell.run("%%jaxtime --compare nothing\nruns.append(1)")
    assert "UsageError: %%jaxtime: --compare: no timing is called 'nothing'. There is none" in outcome.text
    shell.run("%%jaxtime a\n1;")
    assert "There are: 'a'." in shell.run("%%jaxtime --compare a,nothing\nruns.append(1)").text
    assert shell.names["runs"] == []
    assert len(records(store)) == 1


@pytest.mark.parametrize("magic", ["%%jaxtime\n", "%%jaxtime -r 3\n", "%jaxtime "])
def test_an_error_is_the_bodys_own(shell, store, magic):
    outcome = shell.run(f"{magic}step(1 / 0)")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert "step(1 / 0)" in outcome.text
    for ours in ("jupyterlab_jaxprof/", "jaxtime.py", "measurement.py"):
        assert ours not in outcome.text
    assert newest(store).status is Status.FAILED
    assert newest(store).reason == "The cell raised ZeroDivisionError: division by zero."
    assert ", until ZeroDivisionError" in outcome.text.splitlines()[0]


def test_an_error_of_a_callback_that_nobody_waited_for_is_the_cells(shell, store):
    shell.run("def fail(x):\n    raise ValueError('in a callback')")
    shell.run("g = jax.jit(lambda x: jax.debug.callback(fail, x))")
    outcome = shell.run("%%jaxtime\ng(x);")
    assert outcome.error is not None
    assert "in a callback" in outcome.text
    assert newest(store).status is Status.FAILED
    files = [entry.filename for entry in traceback.extract_tb(outcome.error.__traceback__)]
    assert not [file for file in files if "jupyterlab_jaxprof/" in file]


def test_nothing_of_the_cells_is_kept(shell):
    class Holder:
        pass

    held = []

    def make(fail=False):
        holder = Holder()
        held.append(weakref.ref(holder))
        if fail:
            raise ValueError("made in vain")
        return holder

    shell.names["make"] = make
    shell.run("%%jaxtime --save a -r 3 --loops 1\nmake();")
    shell.run("%%jaxtime --save b --no-compile\njax.jit(lambda x: x + 2)(x); make()")
    shell.run("%%jaxtime --save c\nmake(fail=True)")
    shell.run("1 / 0")  # IPython keeps the last error and its frames
    gc.collect()
    assert len(held) == 1 + 1 + 3 + 1 + 1
    assert [reference() for reference in held] == [None] * len(held)
    result = shell.names["c"]
    assert result.to_dict()["error"] == "ValueError: made in vain"
    assert result.value is result.error is None


def test_a_body_that_donates(shell, store):
    shell.run("up = jax.jit(lambda p: p + 1, donate_argnums=0)\np = jnp.ones(9)")
    outcome = shell.run("%%jaxtime -r 4\nq = up(p)")
    assert (newest(store).status, outcome.error) == (Status.PARTIAL, None)
    assert "donated or deleted p, which it needs again" in newest(store).reason
    outcome = shell.run("p = q\n")
    outcome = shell.run("%%jaxtime -r 4\np = up(p)\np")
    assert outcome.error is None
    assert newest(store).status is Status.OK
    assert outcome.result.result is None
    assert "The cell's value is not shown" in outcome.text
    assert not shell.names["p"].is_deleted()


def test_a_repeat_that_raises_ends_the_repeats_and_is_told(shell, store):
    outcome = shell.run("%%jaxtime -r 9 --loops 1\nruns.append(1)\nassert len(runs) < 4\nlen(runs)")
    assert (outcome.error, outcome.result.result) == (None, 1)
    assert newest(store).status is Status.PARTIAL
    assert "a repeat raised AssertionError" in outcome.text


def test_an_expression_in_a_line(shell, store):
    outcome = shell.run("value = %jaxtime -r 3 step(x)\nfloat(value)")
    assert outcome.result.result == 1_000_000
    record = newest(store)
    assert (record.magic, record.cell) == ("%jaxtime -r 3 step(x)", "step(x)")
    assert record.summary["compiles"][0]["line"] is None
    assert record.name == f"In [{outcome.result.execution_count}]"
    shell.run("for n in (1, 2):\n    %jaxtime y = step(x + n)")
    assert float(shell.names["y"]) == 9_000_000
    assert len(records(store)) == 3
    assert "can't await within a line" in shell.run("%jaxtime await something()").text
    wrong = shell.run("%jaxtime step)").text
    assert "SyntaxError: unmatched ')'" in wrong
    assert "jupyterlab_jaxprof/" not in wrong
    assert "nothing has run" in shell.run("%jaxtime # a note").text.lower()
    assert len(records(store)) == 3


@pytest.mark.parametrize(
    "cell", ["%%jaxtime -x --help\nruns.append(1)", "%jaxtime --help", "%jaxtime -r 3 -h f()"]
)
def test_help_is_shown_and_nothing_runs(shell, store, cell):
    text = shell.run(cell).text
    assert text.startswith("Time a cell, or an expression, and tell what of it was compiling.")
    assert ("The cell was not run." in text) == cell.startswith("%%")
    assert (shell.names["runs"], records(store)) == ([], [])
    assert shell.run("h = 3\n%jaxtime 5 -h").result.result == 2


def test_no_card(shell, store):
    outcome = shell.run("%%jaxtime quiet --no-card --save v\nstep(x);")
    assert outcome.text == ""
    assert newest(store).name == "quiet"
    assert shell.names["v"].name == "quiet"


def test_what_can_not_be_written_is_told_and_still_says_what_it_took(shell, store, monkeypatch, tmp_path):
    outcome = shell.run("%%jaxtime\nimport shutil, os\nshutil.rmtree(os.environ['JAXPROF_DIR'])\n5")
    assert outcome.result.result == 5
    assert re.search(r"nothing compiled\. The capture .* can't be written", outcome.text)
    (tmp_path / "file").touch()
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "file"))
    outcome = shell.run("%%jaxtime\nruns.append(1)")
    assert "UsageError: %%jaxtime: No capture can be written" in outcome.text
    assert shell.names["runs"] == []


def test_a_trace_that_runs_meanwhile_is_told(shell, store):
    shell.run("%jaxtrace start around")
    outcome = shell.run("%%jaxtime\nstep(x);")
    shell.run("%jaxtrace stop --no-card")
    assert "The trace 'around' was running meanwhile" in outcome.text


def test_a_record_is_read_back_and_stays_small_whatever_was_compiled(shell, store):
    shell.run(
        "%%jaxtime many\n"
        "wide = jax.jit(lambda d: sum(d.values()))\n"
        "wide({f'name_{n}': 1.0 for n in range(200)});"
    )
    record = newest(store)
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert record.summary["compiles"][0]["arguments"][-1] == "and 170 more"
    row = store.list().rows[0].to_json()
    assert set(row["summary"]) == {"headline", "wall_ms", "steps", "sentence"}
    shutil.rmtree(store.root)


def test_to_pandas_or_a_sentence(shell):
    shell.run("%%jaxtime --save v -r 5\nstep(x);")
    try:
        import pandas  # noqa: F401 - optional
    except ImportError:
        with pytest.raises(ImportError, match="pip install pandas"):
            shell.names["v"].to_pandas()
    else:
        assert len(shell.names["v"].to_pandas()) == 6


def test_arrays_are_freed_when_the_names_go(shell):
    shell.run("%%jaxtime --memory --transfers --save v -r 3\nbig = jnp.ones((77, 77)) + 1")
    reference = weakref.ref(shell.names["big"])
    assert isinstance(shell.names["big"], type(jnp.ones(1)))
    shell.run("del big")
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("platform", "flags", "expected"),
    [
        ("gpu", "", True),
        ("gpu", "--xla_gpu_autotune_level=0 --xla_dump_to=x", False),
        ("gpu", "--xla_gpu_autotune_level=4", True),
        ("cpu", "", False),
    ],
)
def test_where_compiling_includes_autotuning(platform, flags, expected):
    environment = {"devices": [{"platform": platform}], "xla_flags": flags}
    assert autotunes(environment) is expected


def test_a_measurement_in_a_repeat_keeps_no_record(shell, store):
    shell.run("%%jaxtime outer -r 3 --loops 1\n%jaxtime -r 2 --save inner step(x);\n%jaxmem")
    assert sorted(record.kind for record in records(store)) == ["memory", "time", "time"]
    assert shell.names["inner"].cached.count == 2
    shell.run("%jaxtime step(x);")  # and after it as before
    assert len(records(store)) == 4


@enqueues_after_failures
def test_the_wait_for_an_earlier_cell_is_told_and_can_be_interrupted(shell, store, monkeypatch):
    monkeypatch.setattr(barrier, "_PATIENCE_NS", 50_000_000)
    shell.run("work = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, c: (c @ c) * 1e-3, x))")
    shell.run("x = jnp.ones((500, 500)); work(x, 1).block_until_ready();")
    shell.run("left = work(x, 400)")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = shell.run("%%jaxtime\nruns.append(1)")
    timer.join()
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert "Waiting for work that an earlier cell left running" in outcome.text
    assert "This cell has not run: nothing was measured" in outcome.text
    assert "jupyterlab_jaxprof" not in outcome.text
    assert shell.names["runs"] == []
    assert records(store) == []
    shell.run("%%jaxtime\n1;")  # waits until it ends
    (notice,) = newest(store).notices
    assert re.search(r"work that an earlier cell had left running took [\d.,]+ s to end", notice)


def test_a_failed_callback_is_told_without_the_stack_around_it(shell, store):
    shell.run("def fails(x):\n    raise ValueError('in the callback')")
    shell.run("g = jax.jit(lambda x: jax.debug.callback(fails, x) or x + 1)")
    outcome = shell.run("%%jaxtime\ny = g(x)")
    assert "in the callback" in str(outcome.error)
    assert "jupyterlab_jaxprof" not in outcome.text.partition("stored in")[2].partition("\n")[2]
    reason = newest(store).reason
    assert re.fullmatch(r"The cell raised \w+: .*ValueError: in the callback\.", reason), reason
    assert "File" not in reason
    assert len(reason) < 200
