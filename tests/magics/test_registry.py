"""Loading, reloading and unloading beside the magics of others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import jupyterlab_jaxprof
from jupyterlab_jaxprof.magics import load, status, unload
from jupyterlab_jaxprof.magics.comments import without_comment
from jupyterlab_jaxprof.magics.registry import TABLE, BoundMagic, Magic
from tests.support import probe
from tests.support.shells import running_shell

NAME = "jupyterlab_jaxprof"

OTHER_EXTENSION = """
from IPython.core.magic import Magics, magics_class, cell_magic

@magics_class
class Other(Magics):
    @cell_magic
    def jaxtrace(self, line, cell):
        return "the other's"

    @cell_magic
    def shared(self, line, cell):
        return "the other's"

def load_ipython_extension(shell):
    shell.register_magics(Other)
"""
SHARED = Magic("jaxshared", "Run a cell.", probe.__name__, ("cell",), contested=("shared",))


@pytest.fixture
def shell(tmp_path, monkeypatch):
    probe.runs.clear()
    (tmp_path / "another_profiler.py").write_text(OTHER_EXTENSION)
    monkeypatch.syspath_prepend(tmp_path)
    with running_shell() as shell:
        yield shell
    sys.modules.pop("another_profiler", None)


def ours(shell):
    """Every trace of us in a shell."""
    magics = shell.ip.magics_manager.magics
    found = {f"%{n}" for n, m in magics["line"].items() if isinstance(m, BoundMagic)}
    found |= {f"%%{n}" for n, m in magics["cell"].items() if isinstance(m, BoundMagic)}
    transformers = [t for t in shell.ip.input_transformers_cleanup if type(t).__module__.startswith(NAME)]
    wrapped = type(shell.ip.showtraceback).__module__.startswith(NAME)
    return found, len(transformers), wrapped


ALL = (
    {
        "%jaxtrace",
        "%%jaxtrace",
        "%jaxtime",
        "%%jaxtime",
        *("%jaxsweep", "%%jaxsweep"),
        *("%jaxmem", "%%jaxmem"),
        *("%jaxprof", "%%jaxprof"),
        "%nsys",
        "%%nsys",
        "%jaxnsys",
        "%%jaxnsys",
    },
    1,
    True,
)
NONE = (set(), 0, False)


def test_loading_twice_and_unloading_twice(shell):
    assert "already loaded" not in shell.run(f"%load_ext {NAME}").text
    assert "already loaded" in shell.run(f"%load_ext {NAME}").text
    assert ours(shell) == ALL
    jupyterlab_jaxprof.load_ipython_extension(shell.ip)
    assert ours(shell) == ALL
    before = list(shell.ip.input_transformers_cleanup)
    shell.run(f"%unload_ext {NAME}")
    assert ours(shell) == NONE
    assert len(shell.ip.input_transformers_cleanup) == len(before) - 1
    jupyterlab_jaxprof.unload_ipython_extension(shell.ip)
    assert ours(shell) == NONE
    shell.run(f"%load_ext {NAME}")
    assert ours(shell) == ALL


def test_reloading(shell):
    shell.run(f"%load_ext {NAME}\n")
    for _ in range(2):
        assert shell.run(f"%reload_ext {NAME}").text == ""
        assert ours(shell) == ALL


def test_two_shells_do_not_share_anything(shell):
    from IPython.core.interactiveshell import InteractiveShell

    shell.run(f"%load_ext {NAME}")
    other = InteractiveShell()
    load(other)
    unload(other)
    assert ours(shell) == ALL


def test_a_magic_of_anothers_that_ours_replaces_comes_back(shell):
    shell.run("%load_ext another_profiler")
    shell.run(f"%load_ext {NAME}")
    assert ours(shell) == ALL
    shell.run(f"%unload_ext {NAME}")
    assert shell.run("%%jaxtrace\n1").result.result == "the other's"


def test_a_magic_of_anothers_that_replaces_ours_stays(shell):
    shell.run(f"%load_ext {NAME}")
    shell.run("%load_ext another_profiler")
    assert shell.run("%%jaxtrace\n1").result.result == "the other's"
    (row,) = [row for row in status(shell.ip) if row.name == "%%jaxtrace"]
    assert not row.active
    assert str(row) == "%%jaxtrace belongs to another_profiler; jupyterlab-jaxprof's is not loaded."
    shell.run(f"%unload_ext {NAME}")
    assert shell.run("%%jaxtrace\n1").result.result == "the other's"
    assert ours(shell) == NONE
    shell.run(f"%load_ext {NAME}")
    assert ours(shell) == ALL


def test_a_contested_name_is_left_to_whom_has_it(shell):
    shell.run("%load_ext another_profiler")
    load(shell.ip, (*TABLE, SHARED))
    assert shell.run("%%shared\n1 + 1").result.result == "the other's"
    assert shell.run("%%jaxshared\n1 + 1").result.result == 2
    rows = {row.name: row for row in status(shell.ip)}
    assert (
        str(rows["%%shared"]) == "%%shared belongs to another_profiler; jupyterlab-jaxprof's is %%jaxshared."
    )
    assert str(rows["%%jaxshared"]) == "%%jaxshared is jupyterlab-jaxprof's."
    unload(shell.ip)
    assert shell.run("%%shared\n1 + 1").result.result == "the other's"


def test_a_contested_name_that_nobody_has_is_ours_until_another_takes_it(shell):
    load(shell.ip, (*TABLE, SHARED))
    assert shell.run("%%shared\n1 + 1").result.result == 2
    assert all(row.active for row in status(shell.ip))
    shell.run("%load_ext another_profiler")
    assert shell.run("%%shared\n1 + 1").result.result == "the other's"
    assert shell.run("%%jaxshared\n1 + 1").result.result == 2
    assert not {row.name: row.active for row in status(shell.ip)}["%%shared"]


def test_a_magic_that_the_user_defines_is_told_as_the_notebooks(shell):
    load(shell.ip, (*TABLE, SHARED))
    shell.run("from IPython.core.magic import register_cell_magic")
    shell.run("@register_cell_magic\ndef shared(line, cell):\n    return 7")
    assert shell.run("%%shared\n1").result.result == 7
    assert "belongs to this notebook" in str({row.name: row for row in status(shell.ip)}["%%shared"])


def test_anothers_cell_magic_below_other_code_is_not_ours_to_explain(shell):
    load(shell.ip, (*TABLE, SHARED))
    assert "put it on the first line" in shell.run("x = 1\n%%shared\n2").text
    shell.run("%load_ext another_profiler")
    assert "put it on the first line" not in shell.run("x = 1\n%%shared\n2").text


def test_status_without_loading(shell):
    assert {str(row) for row in status(shell.ip)} == {
        "%jaxtrace is not loaded.", "%%jaxtrace is not loaded.", "%jaxprof is not loaded.",
        "%jaxtime is not loaded.", "%%jaxtime is not loaded.", "%%jaxsweep is not loaded.",
        "%jaxmem is not loaded.", "%nsys is not loaded.", "%%nsys is not loaded.",
        "%jaxnsys is not loaded.", "%%jaxnsys is not loaded.",
    }  # fmt: skip


def test_nothing_of_ours_is_left_where_another_wrapped_the_traceback(shell):
    shell.run(f"%load_ext {NAME}")
    inner, calls = shell.ip.showtraceback, []

    def wrapper(*args, **kwargs):
        calls.append(1)
        inner(*args, **kwargs)

    shell.ip.showtraceback = wrapper
    shell.run(f"%unload_ext {NAME}")
    assert "ZeroDivisionError" in shell.run("1 / 0").text
    assert calls == [1]


def test_a_traceback_wrapper_that_came_before_ours_is_put_back(shell):
    def wrapper(*args, **kwargs):
        print("wrapped")

    shell.ip.showtraceback = wrapper
    shell.run(f"%load_ext {NAME}")
    assert "wrapped" in shell.run("1 / 0").text
    shell.run(f"%unload_ext {NAME}")
    assert shell.ip.showtraceback is wrapper


def test_a_fault_of_our_own_keeps_its_traceback(shell, monkeypatch):
    load(shell.ip, (*TABLE, SHARED))
    monkeypatch.setattr("jupyterlab_jaxprof.cell.cell.Barrier", None)
    outcome = shell.run("%%jaxshared\n1")
    assert isinstance(outcome.error, TypeError)
    assert "jupyterlab_jaxprof/cell/cell.py" in outcome.text


def test_help_is_shown_without_running(shell):
    load(shell.ip, (*TABLE, SHARED))
    assert probe.HELP in shell.run("%%jaxshared?").text
    assert probe.runs == []


def test_what_every_environment_asks_for():
    assert jupyterlab_jaxprof._jupyter_labextension_paths() == [
        {"src": "labextension", "dest": "jupyterlab-jaxprof"}
    ]
    (point,) = jupyterlab_jaxprof._jupyter_server_extension_points()
    assert point["module"] == "jupyterlab_jaxprof.server"
    assert point["app"].name == "jaxprof"
    assert jupyterlab_jaxprof.Capture.__module__.startswith("jupyterlab_jaxprof.captures")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jupyterlab_jaxprof.nothing


def test_no_sentence_names_a_magic_that_there_is_not():
    package = Path(jupyterlab_jaxprof.__file__).parent
    rooms = package.rglob("*.py")
    named = {name for path in rooms for name in re.findall(r"%(jax[a-z]\w*|nsys)\b", path.read_text())}
    assert named == {name for magic in TABLE for name in (magic.name, *magic.contested)}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("report run  # the newest", "report run"),
        ("# nothing", ""),
        ("stop #", "stop"),
        ("it's  # one quote", "it's  # one quote"),
        ("--steps 3  # it's enough", "--steps 3"),
        ('"run # 1" # first', '"run # 1"'),
        (r'"a \" # b"', r'"a \" # b"'),
        ("run #1", "run #1"),
        ("a#b c# d", "a#b c# d"),
    ],
)
def test_a_comment_behind_a_line_is_left_out(line: str, kept: str) -> None:
    assert without_comment(line) == kept


def test_magics_take_no_comment_for_a_name(shell) -> None:
    shell.ip.extension_manager.load_extension(NAME)
    assert shell.run("%jaxprof explain recompilation  # why it's compiled again").error is None
    assert shell.run("%%jaxtime -r 1 --no-card  # once more\n1 + 1").result.result == 2
    assert shell.run("y = %jaxtime --no-card 40 + 2  # the answer").error is None
    assert shell.names["y"] == 42
