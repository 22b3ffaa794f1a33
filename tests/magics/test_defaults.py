"""The settings' default options: obeyed, told, and outdone by the line; no trouble with them stops a cell."""

from __future__ import annotations

import functools
import json
import sys

import pytest
from IPython.core.error import UsageError

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.magics import jaxnsys_arguments, jaxtime_arguments, jaxtrace_arguments
from jupyterlab_jaxprof.magics.defaults import with_defaults
from tests.magics.conftest import newest
from tests.support.shells import Shell

SETUP = ""


def save(store: Store, **defaults: object) -> None:
    store.prepare()
    (store.root / "settings.json").write_text(json.dumps({"defaults": defaults}))


@pytest.mark.parametrize(
    ("options", "line", "used", "left_out"),
    [
        ("", "--steps 5", "--steps 5", ""),
        ("--perfetto --steps 3", "x", "--perfetto --steps 3 x", ""),
        ("--perfetto --steps 3", "x --no-perfetto --steps 5", "x --no-perfetto --steps 5", ""),
        ("--no-card --python", "'a b' --card", "--python 'a b' --card", ""),
        ("--step-name 'a b' --steps 2", "x", "--step-name 'a b' --steps 2 x", ""),
        ("--stpes 5 --perfetto", "x", "--perfetto x", "Did you mean --steps?"),
        ("--steps many", "x", "x", "not 'many'"),
        ("name --perfetto", "x", "--perfetto x", "it takes one name"),
        ("--steps 'unclosed", "x", "x", "never closed"),
        ("--steps 5 --python", "--remote a:1", "--python --remote a:1", ""),
    ],
)
def test_a_line_with_defaults(store, monkeypatch, options, line, used, left_out):
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    save(store, jaxtrace=options)
    parse = functools.partial(jaxtrace_arguments.parse, "%%jaxtrace")
    given = with_defaults("jaxtrace", "%%jaxtrace", line, parse)
    assert given.line == used
    assert given.arguments == parse(used)
    told = [notice for notice in given.notices if "was left out" in notice]
    assert len(told) == bool(left_out)
    assert all(left_out in notice and "settings" in notice for notice in told)
    assert any("default options of %%jaxtrace: --" in notice for notice in given.notices) == (used != line)


def test_options_that_need_or_exclude_each_other(store, monkeypatch):
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    save(store, jaxtime="--warmup 3 -r 5", nsys="--steps 9", jaxtrace="--steps 5")
    given = with_defaults("jaxtime", "%jaxtime", "-- -f(x)", jaxtime_arguments.parse_line)
    assert (given.arguments.warmup, given.arguments.repeats, given.arguments.expression) == (3, 5, "-f(x)")
    save(store, jaxtime="--warmup 3", nsys="--steps 9")
    assert with_defaults("jaxtime", "%%jaxtime", "", jaxtime_arguments.parse).notices == []
    assert with_defaults("jaxtime", "%%jaxtime", "-r 2", jaxtime_arguments.parse).arguments.warmup == 3
    parse = functools.partial(jaxnsys_arguments.parse, "%%nsys")
    assert with_defaults("nsys", "%%nsys", "--setup", parse).notices == []
    start = functools.partial(jaxtrace_arguments.parse, "%jaxtrace start")
    assert with_defaults("jaxtrace", "%jaxtrace start", "x", start).notices == []
    with pytest.raises(UsageError, match="--stpes"):  # the line's own mistake stays one
        with_defaults("nsys", "%%nsys", "--stpes 3", parse)


def test_the_magics_obey_and_the_card_tells(shell: Shell, store: Store) -> None:
    save(store, jaxtrace="--steps 2 --option nonsense=1 --no-card", jaxtime="--compare nobody --save kept")
    done = shell.run("%%jaxtrace traced --card\nx = 6\nx * 7")
    assert done.result.result == 42
    record = newest(store)
    assert record.magic == "%%jaxtrace --steps 2 traced --card"
    assert record.steps is not None
    assert record.steps["count"] == 2
    left_out, used = (notice for notice in record.notices if "settings" in notice)
    assert "nonsense=1 of %%jaxtrace was left out" in left_out
    assert used.endswith("--steps 2.")
    assert used in " ".join(done.text.split())
    assert shell.run("%%jaxtime\n6 * 7").result.result == 42
    assert "no timing is called 'nobody'" in newest(store).notices[0]
    assert "kept" in shell.names
    (store.root / "settings.json").write_text("{")
    assert shell.run("%jaxtime 6 * 7").result.result == 42
    assert "settings.json are damaged" in newest(store).notices[0]
    assert newest(store).magic == "%jaxtime 6 * 7"


def test_memory_and_sweeps_obey(shell: Shell, store: Store) -> None:
    save(store, jaxmem="--save held", jaxsweep="-r 2 --rate n --by other --rate 'n +'")
    shell.run("%jaxmem")
    assert newest(store).magic == "%jaxmem --save held"
    shell.run("%%jaxsweep n=1,2\nn + 1")
    record = newest(store)
    assert record.magic == "%%jaxsweep -r 2 --rate n n=1,2"
    assert [notice for notice in record.notices if "left out" in notice] == [
        notice for notice in record.notices if "'n +'" in notice
    ]
    assert record.notices
    assert "jax" in sys.modules
