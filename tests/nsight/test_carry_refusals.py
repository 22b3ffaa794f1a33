"""What is refused, in which words; and that planning runs nothing."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.nsight.carry import CarryError, Options, Sources, plan
from tests.support.shells import running_shell


@pytest.fixture(scope="module")
def shell():
    with running_shell() as shell:
        yield shell


def planned(shell, cells, body, **options):
    for cell in cells:
        shell.run(cell).result.raise_error()
    return plan(shell.names, body, sources=Sources.from_shell(shell.ip), options=Options(**options))


def refused(shell, cells, body, **options):
    with pytest.raises(CarryError) as caught:
        planned(shell, cells, body, **options)
    return str(caught.value)


def test_every_refusal_is_told_with_its_chain_and_place(shell):
    said = refused(
        shell,
        [
            "import threading\ndef outer(): return inner()\ndef inner(): return state['log'], deep",
            "state = {'n': 1, 'log': open('/dev/null')}",
            "class Thing: pass\ndeep = Thing(); deep.workers = [1, threading.Thread()]",
            "held = threading.Lock(); held.acquire()",
        ],
        "outer(); held",
    )
    lines = said.splitlines()
    assert (
        "state['log'] (TextIOWrapper) can't be carried, since it is an open file, which belongs to the "
        "kernel's process; the cell needs it through outer → inner → state."
    ) in lines
    assert (
        "deep.workers[1] (Thread) can't be carried, since a thread runs in the kernel's process only; the "
        "cell needs it through outer → inner → deep."
    ) in lines
    assert (
        "held (lock) can't be carried, since it is a lock that is held just now; the cell needs it." in lines
    )
    assert all(remedy in lines[-1] for remedy in ("--setup", "--drop NAME", "--shapes-only"))
    assert len(lines) == 4


EFFECTS = {
    "its body opens a file": ("class A:\n    log = open('user.txt', 'a').name", "A()", "it calls open"),
    "its decorator opens a file": (
        "def logged(cls):\n    with open('user.txt', 'a'): pass\n    return cls\n@logged\nclass B: pass",
        "B()",
        "it calls open",
    ),
    "a function of a function's writes": (
        "import numpy as np\ndef save(): np.save('user.npy', 1)\ndef deco(cls): save(); return cls\n"
        "@deco\nclass C: pass",
        "C()",
        "it calls np.save",
    ),
    "a method of an object writes": (
        "import pathlib\nclass D:\n    n = pathlib.Path('user.txt').write_text('')",
        "D()",
        "it calls pathlib.Path('user.txt').write_text",
    ),
    "its decorator changes a variable": (
        "seen = []\ndef register(cls): seen.append(cls.__name__); return cls\n@register\nclass E: pass",
        "E()",
        "register changes seen",
    ),
    "its decorator counts": (
        "count = 0\ndef counted(cls):\n    global count\n    count += 1\n    return cls\n"
        "@counted\nclass F: pass",
        "F()",
        "counted changes count",
    ),
    "its base does": (
        "import os\nclass G:\n    def __init_subclass__(cls): os.system('true')\nclass H(G): pass",
        "H()",
        "it calls os.system",
    ),
    "a default argument does": (
        "import subprocess\nclass I:\n    def f(self, a=subprocess.run(['true'])): pass",
        "I()",
        "it calls subprocess.run",
    ),
    "a nested class does": (
        "class J:\n    class K:\n        m = open('user.txt', 'a').name",
        "J()",
        "it calls open",
    ),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_a_class_is_not_defined_again_when(shell, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell, body, reason = EFFECTS[case]
    shell.run(cell).result.raise_error()
    files = {path: path.unlink() for path in tmp_path.iterdir()}
    assert f"would have to run again, and {reason}" in refused(shell, [], body)
    assert not any(path.exists() for path in files)


def test_a_base_that_was_defined_anew_is_told(shell):
    said = refused(shell, ["class Old: pass\nclass New(Old): pass", "class Old: pass"], "New()")
    assert "class New was made with an earlier Old" in said
    assert "run the cell of New again" in said


def test_a_definition_that_reads_what_is_no_more(shell):
    said = refused(shell, ["width = 3\nclass Wide:\n    size = width\nwide = Wide()\ndel width"], "wide")
    assert "it reads width, which is no more" in said


def test_what_belongs_to_the_process(shell):
    cell = """
import asyncio, socket, sqlite3, subprocess
from multiprocessing import shared_memory
ended = subprocess.Popen(["true"]); ended.wait()
async def waiting(): pass
held = {
    "socket": socket.socket(), "database": sqlite3.connect(":memory:"), "process": ended,
    "coroutine": waiting(), "loop": asyncio.new_event_loop(),
}
memory = shared_memory.SharedMemory(create=True, size=10)
"""
    try:
        said = refused(shell, [cell], "held, memory")
    finally:
        shell.run("memory.close(); memory.unlink()\nfor one in held.values(): getattr(one, 'close', str)()")
    for found in ("['socket'] (socket)", "['database'] (Connection)", "['process'] (Popen)"):
        assert f"held{found} can't be carried" in said
    assert "held['coroutine'] (coroutine)" in said
    assert (
        "memory (SharedMemory) can't be carried, since it is memory that the kernel's process shares" in said
    )


def test_a_class_without_a_source_is_told(shell):
    cell = (
        "class Meta(type): pass\n"
        "exec('class Ghost(metaclass=Meta): pass')\n"
        "def make():\n    class Local(metaclass=Meta): pass\n    return Local()\nlocal = make()"
    )
    said = refused(shell, [cell], "Ghost, local")
    assert "no cell of this kernel's history has the statement that made class Ghost" in said
    assert "class Local was made inside a function" in said


def test_a_definition_that_needs_what_it_defines(shell):
    cells = ["class Knot: pass", "knot = Knot()\nclass Knot:\n    other = knot", "knot = Knot()"]
    said = refused(shell, cells, "knot")
    assert "it needs itself before it can be made" in said


def test_arrays_that_have_no_values(shell):
    cell = """
import jax, jax.numpy as jnp
gone = {"w": jnp.ones(3)}
jax.jit(lambda a: a + 1, donate_argnums=0)(gone["w"])
leaked = []
@jax.jit
def leak(a): leaked.append(a); return a
leak(1.)
"""
    said = refused(shell, [cell], "gone, leaked")
    assert "gone['w'] (ArrayImpl) can't be carried, since its values are gone" in said
    assert "leaked[0] (" in said
    assert "a tracer that leaked" in said
    assert "gone" not in refused(shell, [], "gone, leaked", shapes_only="zeros").split("What helps")[0]


def test_variables_that_are_left_out(shell):
    shell.run("opened = open('/dev/null'); a = b = 1").result.raise_error()
    assert planned(shell, [], "a, opened, b", drop=frozenset({"opened", "b"})).variables == ("a",)


def test_a_primitive_of_the_notebook(shell):
    cell = (
        "import jax\nfrom jax.extend.core import Primitive\nmine = Primitive('mine'); theirs = jax.lax.add_p"
    )
    assert "a primitive made in the notebook" in refused(shell, [cell], "mine, theirs")
    assert planned(shell, [], "theirs").variables == ("theirs",)


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(shell, tmp_path):
    cell = "import numpy as np\nhuge = np.lib.stride_tricks.as_strided(np.zeros(9), (2**42,), (8,))"
    carried = planned(shell, [cell], "huge")
    with pytest.raises(
        CarryError,
        match=r"\(35,184,372\.\d MB for the variables .* and the disk of .* MB free.*--shapes-only",
    ):
        carried.write(tmp_path / "carried")
    assert list((tmp_path / "carried").iterdir()) == []


def test_progress_is_told_to_the_end(shell, tmp_path):
    cell = "import numpy as np\nlarge = np.ones((3, 100_000)); text = 'a' * 100_000"
    carried, told = planned(shell, [cell], "large, text"), []
    carried.write(tmp_path / "carried", lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (carried.size_bytes, carried.size_bytes)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "carried").rglob("*") if path.is_file())
    assert 0 <= on_disk - carried.size_bytes < 1000  # the files' own headers
    assert (tmp_path / "carried").stat().st_mode & 0o077 == 0


READS = {
    "x = 1\nx": set(),
    "x = x + 1": {"x"},
    "x += 1": {"x"},
    "for x in xs: x": {"xs"},
    "for _ in xs: x = f(x)": {"xs", "f", "x"},
    "if t: x = 1\nx": {"t", "x"},
    "if t: x = 1\nelse: x = 2\nx": {"t"},
    "with m as x: y = x\ny": {"m"},
    "def g(a, b=d): return a + c\ng(1)": {"c", "d"},
    "lambda x: x + y": {"y"},
    "[x for x in xs if x > y]": {"xs", "y"},
    "class A(B):\n    c = d\n    e = c\n    def f(self): return g": {"B", "d", "g"},
    "import a.b as x, c.d\nx, c": set(),
    "try: x = 1\nexcept E as e: e\nx": {"E", "x"},
    "del x": {"x"},
    "(x := 1); x": set(),
    "await f(x)": {"f", "x"},
    "match s:\n    case {'a': q, **r}: q, r": {"s"},
    "global x\nx = 1": set(),
    "get_ipython().system('ls {folder} $other')": {"get_ipython", "folder", "other"},
    "get_ipython().run_line_magic('time', 'f(x)')": {"get_ipython", "f", "x", "time"},
}


@pytest.mark.parametrize("body", READS)
def test_names_that_a_body_reads(body):
    import ast
    import builtins

    from jupyterlab_jaxprof.nsight.carry.names import names_of_body

    assert names_of_body(ast.parse(body).body).reads - set(dir(builtins)) == READS[body]
