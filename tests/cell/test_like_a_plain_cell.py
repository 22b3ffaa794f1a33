"""A cell under a magic does, shows and raises what the same cell does without it."""

from __future__ import annotations

import gc
import inspect
import linecache
import re
import sys
import threading
import weakref

import pytest

from tests.support.shells import running_shell

CELLS = {
    "value": "x = 1\nx + 1",
    "several values": "1\n2\n3",
    "silenced": "x = 1\nx + 1;",
    "silenced, with a comment after it": "x = 1\nx + 1;  # not shown\n# nor this\n",
    "semicolon inside a string": "'a;'",
    "None": "None",
    "assignment": "y = 41",
    "augmented assignment": "y = 41\ny += 1",
    "annotated assignment": "y: int = 41",
    "several targets": "a, b = 1, 2",
    "loop": "for i in range(3):\n    i",
    "with": "import contextlib\nwith contextlib.suppress(KeyError):\n    7",
    "future import": "from __future__ import annotations\ndef f(x: Undefined): return x\nf(3)",
    "docstring": '"""text"""\nq = 1',
    "print and value": "print('hello')\n5",
    "underscores": "_, __",
    "line magic": "%pylab_is_not_a_magic",
    "line magic's value": "%env JAXPROF_NO_SUCH_VARIABLE",
    "assigned line magic": "here = %pwd\nisinstance(here, str)",
    "command": "!echo from the shell",
    "assigned command": "out = !echo from the shell\nout[0]",
    "help": "import math\nmath.gcd?",
    "blank lines first": "\n\n\n1 / 0",
    "comment first": "# why\n1 / 0",
    "error": "x = 1\nx / 0\nx = 2",
    "error in a function": "def f(a):\n    b = a\n    return b / 0\n\n\nf(1)",
    "error in an imported module": "import json\njson.loads('{')",
    "error with a cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
    "error while handling another": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    undefined_name",
    "error group": "raise ExceptionGroup('two', [ValueError(1), KeyError(2)])",
    "error without a dict": (
        "class Slots(Exception):\n    __slots__ = ()\n    __setattr__ = None\nraise Slots('s')"
    ),
    "error after blank lines": "x = 1\n\n\n\nraise RuntimeError('late')",
    "syntax error at run time": "x = 1\ncompile('1 +', 'a file', 'exec')",
    "syntax error": "x = 1\ny = (2,\nz = 3",
    "indentation error": "if True:\nx = 1",
    "break outside a loop": "x = 1\n\nbreak",
    "return outside a function": "x = 1\nreturn x",
    "await in a lambda": "lambda: await f()",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "system exit": "raise SystemExit(3)",
    "await": "import asyncio\nawait asyncio.sleep(0, 'slept')",
    "await, silenced": "import asyncio\nawait asyncio.sleep(0, 'slept');",
    "await, then an error": "import asyncio\nawait asyncio.sleep(0)\n1 / 0",
    "await in a function": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return g\nawait f()"
    ),
    "async with": (
        "import contextlib\n@contextlib.asynccontextmanager\nasync def opened():\n    yield 3\n"
        "async with opened() as x:\n    y = x + 1\ny"
    ),
    "async for": (
        "async def numbers():\n    for i in range(3):\n        yield i\ntotal = 0\n"
        "async for i in numbers():\n    total += i\ntotal"
    ),
    "async comprehension": (
        "async def numbers():\n    for i in range(3):\n        yield i\n[i async for i in numbers()]"
    ),
    "async def alone": "async def f(): pass",
    "the word await in a string": "'await x'",
    "await, syntax error": "await x\ny = = 1",
    "cancelled": "import asyncio\nraise asyncio.CancelledError('stop')",
    "warning": "import warnings\nwarnings.warn('careful')",
}

# IPython runs the statements before such an error; a measured cell runs whole or not at all.
OF_AN_INTERRUPT = "%%probe: Interrupted; no capture of it is kept.\n"  # said besides
NOTHING_RUNS = {CELLS["break outside a loop"], CELLS["return outside a function"]}
HIDDEN = "_ __ ___ _i _ii _iii _ih _oh _dh In Out exit quit get_ipython __warningregistry__"


def play(first_line: str, body: str, interactivity: str, before: str = ""):
    """Run a cell in a fresh shell: all that can be seen of it, its names and its error."""
    with running_shell("tests.support.probe") as shell:
        shell.ip.ast_node_interactivity = interactivity
        shell.run("'first'")
        shell.run("'second'")
        outcome = shell.run(first_line + "\n" + body)
        names = {
            name: repr(value)
            for name, value in shell.names.items()
            if name not in HIDDEN.split() and not re.fullmatch(r"_i?\d+", name)
        }
        seen = outcome.text.replace("#%%probe", "#(above)").replace("# plain", "#(above)")
        seen = seen.replace(OF_AN_INTERRUPT, "")
        names = {name: _without_addresses(text) for name, text in names.items()}
        last_shown, error = repr(shell.names["_"]), _without_addresses(repr(outcome.error))
        return _without_addresses(seen), names, last_shown, error, sorted(shell.names["Out"])


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{6,}", "0x", re.sub(r"<ipython-input-(\d+)-\w+>", r"<cell \1>", text))


@pytest.mark.parametrize("body", CELLS.values(), ids=CELLS.keys())
def test_same_as_without_the_magic(body):
    plain, measured = play("# plain", body, "last_expr"), play("%%probe", body, "last_expr")
    if body in NOTHING_RUNS:
        assert plain[1].pop("x") == "1"
    assert measured == plain


def test_an_indented_cell(shell):
    assert "----> 3 x / 0" in shell.run("%%probe\n    x = 1\n    x / 0").text
    assert shell.run("    %%probe\n    x = 1\n    x + 1").result.result == 2


def test_a_warning_of_the_compiler_is_shown_once(shell):
    with pytest.warns(SyntaxWarning) as warnings:
        shell.run("%%probe\nx = 1\nx is 1000")
    assert len(warnings) == 1


@pytest.mark.parametrize("interactivity", ["all", "last", "last_expr_or_assign", "none"])
@pytest.mark.parametrize(
    "name",
    [
        "several values", "silenced", "loop", "assignment", "augmented assignment", "annotated assignment",
        "several targets", "await", "error in a function", "print and value",
    ],
)  # fmt: skip
def test_interactivity_is_respected(interactivity, name):
    body = CELLS[name]
    if interactivity == "none":
        assert play("%%probe", body, "none")[:2] == play("# plain", body, "none")[:2]
    else:
        assert play("%%probe", body, interactivity) == play("# plain", body, interactivity)


def test_comments_and_blank_lines_above_the_magic_keep_the_lines_their_numbers(shell):
    outcome = shell.run("# what this does\n\n%%probe\nx = 1\n\n1 / 0")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert "Cell In[1], line 6" in outcome.text
    assert "----> 6 1 / 0" in outcome.text
    assert "3 #%%probe" in outcome.text


def test_lines_are_right_without_history(shell):
    outcome = shell.run("\n%%probe\n\n1 / 0", store_history=False)
    assert "----> 4 1 / 0" in outcome.text


def test_lines_are_right_under_another_magic(shell):
    outcome = shell.run("%%time\n%%probe\nx = 1\n1 / 0")
    assert "----> 4 1 / 0" in outcome.text
    assert "jupyterlab_jaxprof" not in outcome.text


def test_lines_are_right_in_a_magic_of_ours_within_ours(shell):
    outcome = shell.run("%%probe\n%%probe_too\nx = 1\nx / 0")
    assert "----> 4 x / 0" in outcome.text
    assert outcome.text.count("Cell In[1]") == 1


def test_syntax_error_in_a_magic_within_ours_has_its_line(shell):
    outcome = shell.run("%%probe\n\n%%probe_too\nx = 1\nx = = 2")
    assert isinstance(outcome.error, SyntaxError)
    assert "line 5" in outcome.text
    assert "jupyterlab_jaxprof" not in outcome.text


def test_a_body_that_is_no_cell_has_a_file_of_its_own(shell):
    shell.run("def measure(code):\n    return get_ipython().run_cell_magic('probe', '', code)")
    outcome = shell.run("x = 2\nmeasure('y = x\\ny / 0')")
    assert isinstance(outcome.error, ZeroDivisionError)
    assert "      2 y = x\n----> 3 y / 0" in outcome.text


def test_source_of_a_function_defined_in_the_body(shell):
    shell.run("%%probe\n\ndef double(x):\n    # twice\n    return 2 * x\n")
    source = "def double(x):\n    # twice\n    return 2 * x\n"
    assert inspect.getsource(shell.names["double"]) == source
    linecache.checkcache()
    assert inspect.getsource(shell.names["double"]) == source


def test_everything_runs_once_in_the_thread_and_context_of_the_shell(shell):
    shell.names["where"] = []
    shell.run("import contextvars, threading\nvar = contextvars.ContextVar('var', default=0)")
    shell.run("local = threading.local()")
    shell.run("%%probe\nwhere.append(threading.current_thread())\nvar.set(5)\nlocal.value = 6")
    assert shell.names["where"] == [threading.current_thread()]
    assert shell.run("var.get(), local.value").result.result == (5, 6)


def test_ast_transformers_apply_once(shell):
    import ast

    class Negate(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.copy_location(ast.Constant(-node.value), node) if node.value == 5 else node

    shell.ip.ast_transformers.append(Negate())
    assert shell.run("%%probe\nx = 5\nx").result.result == -5


def test_rejected_input_is_an_error_and_does_not_run(shell):
    import ast

    from IPython.core.interactiveshell import InputRejected

    class Reject(ast.NodeTransformer):
        def visit_Name(self, node):
            if node.id == "forbidden":
                raise InputRejected("not this name")
            return node

    shell.ip.ast_transformers.append(Reject())
    outcome = shell.run("%%probe\nran = True\nforbidden")
    assert isinstance(outcome.error, InputRejected)
    assert "ran" not in shell.names


def test_another_user_namespace(shell):
    names = {"x": 20}
    shell.ip.user_ns, kept = {**shell.ip.user_ns, **names}, shell.ip.user_ns
    try:
        assert shell.run("%%probe\ny = x + 1\ny").result.result == 21
        assert shell.ip.user_ns["y"] == 21
    finally:
        shell.ip.user_ns = kept
    assert "y" not in kept


def test_capture_around_the_magic(shell):
    outcome = shell.run("%%capture out\n%%probe\nprint('inside')\n7")
    assert outcome.text == ""
    assert "inside" in shell.names["out"].stdout


def test_autoawait_off_makes_await_the_error_that_it_is_in_a_plain_cell(shell):
    shell.run("%autoawait off")
    outcome = shell.run("%%probe\nimport asyncio\nawait asyncio.sleep(0)")
    assert isinstance(outcome.error, SyntaxError)
    assert "line 3" in outcome.text


class Held:
    """Stands for an array, which can be weakly referred to as well, but whose life is Python's alone."""


@pytest.mark.parametrize("ending", ["del held", "held = None\n1 / 0", "held = None\nraise KeyboardInterrupt"])
def test_nothing_of_the_cell_is_kept(shell, ending):
    shell.names["Held"], shell.names["refs"] = Held, []
    shell.run(f"%%probe\nimport weakref\nheld = Held()\nrefs.append(weakref.ref(held))\n{ending}")
    gc.collect()
    (reference,) = shell.names["refs"]
    assert reference() is None


def test_an_array_made_in_a_failing_function_goes_with_its_traceback(shell):
    import jax.numpy as jnp

    refs = []
    shell.names.update(jnp=jnp, keep=lambda array: refs.append(weakref.ref(array)))
    shell.run("%%probe\ndef f():\n    a = jnp.ones(8)\n    keep(a)\n    raise ValueError\nf()")
    shell.run("another_error")  # IPython and Python keep the last one
    gc.collect()
    assert refs[0]() is None


def test_a_shown_array_lives_in_out_alone(shell):
    import jax.numpy as jnp

    shell.names["jnp"] = jnp
    shell.run("%%probe\njnp.ones(8)")
    reference = weakref.ref(shell.names["Out"][1])
    for other in ("1", "2", "3"):  # values that take over `_`, `__` and `___`
        shell.run(other)
    del shell.names["Out"][1], shell.names["_1"], shell.ip.user_ns_hidden["_1"]
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("body", ["", "# only a comment\n", "\n\n", "   \n# x\n"])
def test_nothing_to_run_is_explained(shell, body):
    outcome = shell.run(f"%%probe\n{body}")
    assert "UsageError: %%probe: there is nothing to run" in outcome.text
    assert outcome.error is not None
    assert "Traceback" not in outcome.text


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1\n%%probe\ny = 2",
        "x = 1\n\n%%probe name\n",
        "%%time\nx = 1\n%%probe\ny = 2",
        "%pwd\n%%probe\ny = 2",
    ],
)
def test_a_magic_below_other_code_is_explained_and_nothing_runs(shell, cell):
    outcome = shell.run(cell)
    assert "put it on the first line" in outcome.text
    assert outcome.error is not None
    assert "x" not in shell.names
    assert "y" not in shell.names


@pytest.mark.parametrize(
    "cell",
    [
        "text = '''\n%%probe\n'''\ntext",
        "(7\n%%probe\n)",
        "%%writefile /dev/null\nx\n%%probe\n",
        "# x\n'''a\n%%probe'''",
    ],
)
def test_text_that_only_looks_like_a_magic_is_left_alone(shell, cell):
    shell.names["probe"] = 4
    outcome = shell.run(cell.replace("(7\n%%probe\n)", "(7\n%probe\n)"))
    assert outcome.error is None
    assert "first line" not in outcome.text


def test_jax_that_cannot_be_imported_is_a_sentence(shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    outcome = shell.run("%%probe\nran = True")
    assert "UsageError: JAX can't be imported in this kernel" in outcome.text
    assert "ran" not in shell.names
