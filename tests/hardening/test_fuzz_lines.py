"""What a user may write behind every magic, complete there, and have in a notebook's metadata."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st
from IPython.core.error import UsageError

from jupyterlab_jaxprof.captures import InvalidValue, Status, Store
from jupyterlab_jaxprof.captures.settings import write_settings
from jupyterlab_jaxprof.cell import notebook
from jupyterlab_jaxprof.magics import (
    completion,
    jaxmem_arguments,
    jaxnsys_arguments,
    jaxprof_arguments,
    jaxsweep_arguments,
    jaxtime_arguments,
    jaxtrace_arguments,
    registry,
)
from jupyterlab_jaxprof.magics.arguments import asks_for_help, complaint_of, read, split
from jupyterlab_jaxprof.magics.defaults import with_defaults
from tests.support.fuzz_checks import assert_sentence
from tests.support.fuzzing import fuzzed
from tests.support.odd_values import odd_json, odd_text, pool
from tests.support.shells import Shell, running_shell

#: What reads a line, by the words that it stands behind.
READERS: dict[str, Callable[[str], Any]] = {
    "%%jaxtime": jaxtime_arguments.parse,
    "%jaxtime": jaxtime_arguments.parse_line,
    "%%jaxsweep": jaxsweep_arguments.parse,
    "%jaxmem": jaxmem_arguments.parse,
    **{
        magic: lambda line, magic=magic: jaxtrace_arguments.parse(magic, line)
        for magic in ("%%jaxtrace", "%jaxtrace", "%jaxtrace start", "%jaxtrace stop")
    },
    **{
        magic: lambda line, magic=magic: jaxnsys_arguments.parse(magic, line)
        for magic in ("%%jaxnsys", jaxnsys_arguments.START, jaxnsys_arguments.STOP)
    },
    **{
        f"%jaxprof {command}": lambda line, magic=f"%jaxprof {command}": read(
            jaxprof_arguments.parser(magic), split(magic, line)
        )
        for command in jaxprof_arguments.COMMANDS
    },
}
_DEFAULTS = {"%%jaxtime": "jaxtime", "%%jaxsweep": "jaxsweep", "%%jaxtrace": "jaxtrace", "%%jaxnsys": "nsys"}
_WORDS = (
    "name", '"two words"', "'open", '"open', "5", "0", "-3", "1e9", "1_000", "x=1,2", "x=[1, 2", "y=(1,",
    "x", "=", "{name}", "$name", "${name}", "f(x)", "a,b", "cuda,nvtx", "--cuda-memory-usage=true",
    "'--a --b'", "start", "stop", "report", "doctor", "n * 2", "localhost:9012", "[::1]:99999", "zeros",
    "on", "\\", "\\'", "lambda:", "#", "a " * 3000, "'" * 3001, "(" * 3000, "--x" * 2000,
)  # fmt: skip
_OPTIONS = sorted(
    {
        option
        for module in (jaxtime_arguments, jaxtrace_arguments, jaxsweep_arguments, jaxnsys_arguments)
        for option in module.parser("%%x").options()
    }
    | {"--watch", "--stop", "--json", "--name", "--osrt", "-h", "--", "-", "--ste"}
)


def _word(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(_OPTIONS)
    if kind < 0.5:
        return f"{chance.choice(_OPTIONS)}={odd_text(chance)}"
    if kind < 0.6:
        return shlex.quote(odd_text(chance))
    return chance.choice(_WORDS) if kind < 0.9 else odd_text(chance)


def _line(chance: Random) -> str:
    return chance.choice(["", " "]) + " ".join(_word(chance) for _ in range(chance.randrange(6)))


lines = st.builds(lambda *parts: " ".join(parts), pool(_line, 8000), st.one_of(st.just(""), pool(_word)))


def complaint(work: Callable[[], object]) -> str:
    """Do it; gives the sentence of a usage error, empty where it went well. Any other error is a fault."""
    try:
        work()
    except UsageError as error:
        said = str(complaint_of(error))
        assert_sentence(said)
        return said
    return ""


@fuzzed(1000, magic=st.sampled_from(sorted(READERS)), line=lines)
def test_any_line_is_read_or_refused_in_a_sentence(magic: str, line: str) -> None:
    found: list[Any] = []
    asks_for_help(line)
    if complaint(lambda: found.append(READERS[magic](line))):
        return
    for name in ("name", "step_name"):
        assert (getattr(found[0], name, "") or "").isprintable() or magic.startswith("%jaxprof")
    assert not getattr(found[0], "save", "") or magic.startswith("%jaxprof") or found[0].save.isidentifier()


NAMES = ("plain", "two words", "it's", 'say "x"', 'it\'s "x"', "a\\b", "$HOME {x}", "a,b", "日本 語", "--")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("fuzz") / "store")
    for name in NAMES:
        with store.begin("time", name) as draft:
            draft.publish(status=Status.OK)
    return store


@pytest.fixture(scope="module")
def shell(store: Store) -> Iterator[Shell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXPROF_DIR", str(store.root))
        with running_shell("jupyterlab_jaxprof") as shell:
            shell.run("batch, params, größe = 1, {}, 2")
            yield shell


@fuzzed(150, magic=st.sampled_from(sorted(_DEFAULTS)), line=lines, options=lines)
def test_any_default_options_are_taken_or_left_out_with_a_sentence(
    shell: Shell, store: Store, magic: str, line: str, options: str
) -> None:
    name = _DEFAULTS[magic]
    try:
        write_settings(store.root, {"defaults": {name: options.strip()}})
    except InvalidValue as error:
        assert_sentence(str(error))
        return
    alone = complaint(lambda: READERS[magic](line))
    given: list[Any] = []
    refused = complaint(lambda: given.append(with_defaults(name, magic, line, READERS[magic])))
    assert refused == alone
    for notice in given[0].notices if given else ():
        assert_sentence(notice)


@fuzzed(
    250,
    magic=st.sampled_from(sorted(READERS)),
    line=lines,
    cut=st.integers(0, 60),
)
def test_what_is_completed_fits_and_can_be_read_back(shell: Shell, magic: str, line: str, cut: int) -> None:
    text = f"{magic} {line}"[: len(magic) + 1 + cut]
    place = completion.place_of(text)
    if place is None:
        return
    signs, name = completion._parted(place.magic)
    module = registry._module_of(shell.ip, signs, name)
    for one in completion.suggestions(shell.ip, place, module) if module else ():
        assert one.text.isprintable()
        (word,) = shlex.split(one.text)
        if not {"'", '"'}.isdisjoint(one.text):
            assert word.endswith(NAMES), (text, one.text)
        assert import_module(module).HELP


_CELLS = (
    "%%jaxtime {line}\n{body}",
    "# why\n\n%%nsys {line}\n{body}",
    "x = 1\n%%jaxtrace {line}\n",
    "%jaxprof {line}",
)
_BODIES = (
    "x = 1",
    "await f()",
    "def f(:",
    "'''",
    "%%time\nx",
    "x = [\n",
    "!ls {x}",
    "%time x",
    "\tx\n  y",
    "\\",
)


@fuzzed(
    250,
    cell=st.sampled_from(_CELLS),
    line=lines,
    body=st.one_of(st.sampled_from(_BODIES), pool(odd_text, 1000)),
)
def test_any_cell_is_made_into_python_or_refused_as_ipython_does(
    shell: Shell, cell: str, line: str, body: str
) -> None:
    text = cell.replace("{line}", line.replace("\n", " ")).replace("{body}", body)

    def transform() -> None:
        try:
            shell.ip.transform_cell(text)
        except (SyntaxError, UnicodeError):  # of the cell itself: IPython shows it as such
            return

    complaint(transform)


@fuzzed(200, message=pool(odd_json, 4000), metadata=pool(odd_json, 4000), body=pool(odd_text, 500))
def test_any_metadata_of_a_notebook_is_survived(message: Any, metadata: Any, body: str) -> None:
    header = {"metadata": metadata, "content": message}
    for parent in (
        message,
        header,
        {**header, "metadata": {"cellId": message, notebook.ADDED_LINE: metadata}},
    ):
        shell: Any = SimpleNamespace(
            parent_header=parent, kernel=SimpleNamespace(parent=SimpleNamespace(connection_file=body))
        )
        assert isinstance(notebook.cell_id(shell), str)
        assert isinstance(notebook.kernel_id(shell), str)
        assert notebook.line_was_added(shell, body) in (True, False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A place deep enough for `../..`, with nothing in it; nobody's home is read."""
    place = tmp_path_factory.mktemp("deep") / "a" / "b" / "c"
    place.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("HOME", str(place))
        yield place


@fuzzed(
    60,
    full=20_000,
    command=st.sampled_from(["report", "compare", "import", "explain"]),
    words=st.lists(pool(lambda chance: shlex.quote(odd_text(chance)), 1000), max_size=3),
)
def test_whatever_is_asked_of_captures_is_answered_without_a_traceback(
    shell: Shell, folder: Path, command: str, words: list[str]
) -> None:
    line = " ".join(words)
    if {"/", "//"} & set(words) or "\n" in line or "\r" in line:  # a whole machine; two lines
        return
    for path in folder.iterdir():
        path.unlink()
    outcome = shell.run(f"get_ipython().run_line_magic('jaxprof', {f'{command} {line}'!r})")
    assert outcome.error is None or isinstance(outcome.error, UsageError), outcome.text
    json.dumps(outcome.text)
