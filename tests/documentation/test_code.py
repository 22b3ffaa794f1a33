"""The code on the documentation's pages runs, in a real shell and in its order, page by page.

Words behind a block's language say what can't be so: `elsewhere` needs a GPU, a cluster, a network or another
process, and is compiled only; `raises` ends in an error, as its page says. Their magics' lines, and all of
`%%nsys`, are read by the real parsers, and so is each command `jaxprof ...` in blocks for a terminal.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import pytest
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import TransformerManager

from jupyterlab_jaxprof.cli.arguments import parser as cli_parser
from jupyterlab_jaxprof.magics import (
    jaxmem_arguments,
    jaxnsys_arguments,
    jaxprof_arguments,
    jaxsweep_arguments,
    jaxtime_arguments,
    jaxtrace_arguments,
    registry,
)
from jupyterlab_jaxprof.magics.arguments import MagicParser, read, split
from jupyterlab_jaxprof.magics.comments import without_comment
from scripts import lessons
from tests.support.pages import ROOT, Code, code_of, pages, spans_of
from tests.support.shells import Shell, running_shell

pytestmark = pytest.mark.long

#: Those of the course run as notebooks (test_lessons.py).
PAGES = [page for page in pages() if ROOT / page not in lessons.PAGES]
#: Pages whose examples use the program that the reference begins with.
WITH_PROGRAM = ("docs/reference/", "docs/patterns/", "docs/guides/", "docs/index.md", "README.md")
PROGRAM = "docs/reference/index.md"
#: What single pages take for granted besides: names that tell by themselves what they are.
TAKEN_FOR_GRANTED = """
import functools, queue, threading, time
parameters = params
def load_batch(x):
    return x
def block(params, x):
    return loss_of(params, x)
q = k = jnp.ones((2, 16, 4, 8))
x = buffer = jnp.ones((64, 256))
row = buffer[0]
tokens = np.ones(100)
predictions = jnp.ones(8)
number = 1
weights = jnp.eye(16)
carry = jnp.ones((16, 16))
inputs = jnp.ones((8, 16, 16))
def cell(x, given):
    return jnp.tanh(x + given), x
"""
PYTHON = [code for page in PAGES for code in code_of(page) if code.language in ("python", "ipython")]
TERMINAL = [
    code
    for page in pages()
    for code in code_of(page)
    if code.language in ("sh", "bash", "console", "yaml", "dockerfile", "")
]
MAGIC = re.compile(r"^\s*(?:\w+ = )?(%%?)([a-z]+)\b ?(.*)$")


def is_ours(name: str) -> bool:
    return any(name in (one.name, *one.contested) for one in registry.TABLE)


def runs(code: Code) -> bool:
    is_nsys = re.match(r"%%(jax)?nsys", code.text) is not None
    return not ("elsewhere" in code.marks or is_nsys)


@cache
def program() -> dict[str, Any]:
    """What the reference's program leaves in a namespace."""
    names: dict[str, Any] = {}
    exec("\n".join(code.text for code in code_of(PROGRAM) if code.language == "python"), names)
    exec(TAKEN_FOR_GRANTED, names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


@pytest.fixture
def settings() -> Iterator[None]:
    """Put JAX's settings back: a page may change them."""
    before = dict(jax.config.values)
    yield
    for name, value in before.items():
        if jax.config.values[name] != value:
            jax.config.update(name, value)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("page", sorted({code.page for code in PYTHON if runs(code)}))
def test_the_pages_code_runs(
    page: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: None
) -> None:
    monkeypatch.setenv("JAXPROF_DIR", str(store / page.replace("/", "-")))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(store / "jupyter"))  # where kernels are installed
    monkeypatch.chdir(tmp_path)
    with running_shell("jupyterlab_jaxprof") as shell:
        if page.startswith(WITH_PROGRAM) and page != PROGRAM:
            shell.names.update(program())
        for code in (code for code in PYTHON if code.page == page and runs(code)):
            run(shell, code)


def run(shell: Shell, code: Code) -> None:
    outcome = shell.run(code.text)
    if "raises" in code.marks:
        assert outcome.error is not None, f"{code} is said to raise"
    else:
        assert outcome.error is None, f"{code}: {outcome.error!r}\n{outcome.text}"


@pytest.mark.parametrize("code", [code for code in PYTHON if not runs(code)], ids=str)
def test_code_for_elsewhere_is_python(code: Code) -> None:
    first, _, body = code.text.partition("\n")
    text = body if first.startswith("%%") else code.text
    compile(TransformerManager().transform_cell(text), str(code), "exec", flags=_TOP_LEVEL_AWAIT)


_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@pytest.mark.parametrize("code", [code for code in PYTHON if "%" in code.text], ids=str)
def test_the_magics_lines_are_read(code: Code) -> None:
    for line in code.text.splitlines():
        found = MAGIC.match(line)
        if found and is_ours(found[2]) and "raises" not in code.marks:
            read_magic(found[1], found[2], without_comment(found[3]))


def read_magic(percent: str, name: str, rest: str) -> None:
    """Read a magic's line as the magic does; raises UsageError."""
    name = {"jaxnsys": "nsys"}.get(name, name)
    words = rest.split()
    command = words[0] if words else ""
    modules: dict[str, ModuleType] = {"jaxtrace": jaxtrace_arguments, "nsys": jaxnsys_arguments}
    if name in modules:
        commands = modules[name].COMMANDS if percent == "%" else {}
        magic = f"{percent}{name} {command}" if command in commands else f"{percent}{name}"
        modules[name].parse(magic, rest.removeprefix(command) if command in commands else rest)
    elif name == "jaxtime":
        (jaxtime_arguments.parse if percent == "%%" else jaxtime_arguments.parse_line)(rest)
    elif name == "jaxsweep":
        jaxsweep_arguments.parse(rest)
    elif name == "jaxmem":
        jaxmem_arguments.parse(rest)
    elif command:
        assert command in jaxprof_arguments.COMMANDS
        magic = f"%jaxprof {command}"
        read(jaxprof_arguments.parser(magic), split(magic, rest.removeprefix(command)))


@pytest.mark.parametrize("code", [code for code in TERMINAL if "jaxprof " in code.text], ids=str)
def test_commands_for_a_terminal_are_read(code: Code, capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli_parser()
    for line in code.text.replace("\\\n", " ").splitlines():
        found = re.search(r"(?:^|run: |\$ |&& |RUN )(jaxprof [a-z-]+[^#&|]*)", line.strip())
        if found:
            with contextlib.suppress(SystemExit):
                parser.parse_args(shlex.split(found[1])[1:])
            assert not capsys.readouterr().err, f"{code}: {line}"


@pytest.mark.parametrize("page", pages())
def test_options_in_the_text_are_there(page: str) -> None:
    """Of a piece such as `%%jaxtrace --steps 5` or `jaxprof report --json` each option is one there."""
    commands = next(iter(cli_parser()._subparsers._group_actions)).choices  # pyright: ignore
    for span in spans_of(page):
        told = set(re.findall(r"(?:^|\s)(--?[a-z][\w-]*)", span))
        magic, command = MAGIC.match(span), re.match(r"jaxprof ([a-z-]+)", span)
        known: set[str] | None = None
        if magic and is_ours(magic[2]):
            known = known_options(magic[1], magic[2], magic[3])
        elif command and command[1] in commands:
            known = {option for action in commands[command[1]]._actions for option in action.option_strings}
        assert known is None or told <= known, f"{page}: `{span}`"


def known_options(percent: str, name: str, rest: str) -> set[str]:
    name = {"jaxnsys": "nsys"}.get(name, name)
    command = rest.split()[0] if rest.split() else ""
    magic = f"{percent}{name}"
    parser: MagicParser
    if name == "jaxprof":
        parser = jaxprof_arguments.parser(f"%jaxprof {command}")
    elif name == "jaxmem":
        parser = jaxmem_arguments.parser()
    elif name == "jaxsweep":
        parser = jaxsweep_arguments.parser()
    elif name == "jaxtime":
        parser = jaxtime_arguments.parser(magic)
    else:
        module = jaxtrace_arguments if name == "jaxtrace" else jaxnsys_arguments
        parser = module.parser(f"{magic} {command}" if command in module.COMMANDS else magic)
    return set(parser.options())


def test_what_is_wrong_would_be_seen() -> None:
    with pytest.raises(UsageError, match="no option --step"):
        read_magic("%%", "jaxtrace", "--step 5")
    assert "--step" not in known_options("%%", "jaxtrace", "")
