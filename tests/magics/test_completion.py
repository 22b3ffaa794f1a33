"""Completion behind the magics, as a kernel answers it, and as IPython does in its own process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.magics import (
    jaxmem_arguments,
    jaxnsys_arguments,
    jaxprof_arguments,
    jaxsweep_arguments,
    jaxtime_arguments,
    jaxtrace_arguments,
)
from tests.support.kernels import Kernel, running_kernel
from tests.support.shells import Shell

SETUP = "batch, params = 1, {}"


def complete(shell: Shell, text: str) -> dict[str, str]:
    """The whole line after each completion, and what is told of it; `|` in the text is the cursor."""
    cursor = text.index("|") if "|" in text else len(text)
    text = text.replace("|", "")
    with provisionalcompleter():
        found = list(shell.ip.Completer.completions(text, cursor))
    return {text[: one.start] + one.text + text[one.end :]: one.type.replace("\u00a0", " ") for one in found}


def publish(store: Store, kind: str, *names: str) -> None:
    for name in names:
        with store.begin(kind, name) as draft:
            draft.publish(status=Status.OK)


@pytest.mark.parametrize(
    ("text", "expected", "about"),
    [
        ("%%jaxtrace --st", ["%%jaxtrace --steps", "%%jaxtrace --step-name"], "as a step"),
        (
            "# why\n%%jaxtrace 'a --b' --ste|\nx = 1",
            ["# why\n%%jaxtrace 'a --b' --steps\nx = 1"],
            "as a step",
        ),
        ("%%jaxtime -", ["%%jaxtime -r", "%%jaxtime -t", "%%jaxtime --compare"], "N samples"),
        ("%jaxtime --no-c", ["%jaxtime --no-compile", "%jaxtime --no-card"], "raise when anything"),
        ("%jaxtrace ", ["%jaxtrace start", "%jaxtrace stop", "%jaxtrace --remote"], "until %jaxtrace stop"),
        ("%jaxtrace stop -", ["%jaxtrace stop --save", "%jaxtrace stop --no-card"], "variable"),
        ("%%nsys --graphs=o", ["%%nsys --graphs=on", "%%nsys --graphs=off"], "CUDA graphs"),
        ("%%nsys --graphs ", ["%%nsys --graphs on", "%%nsys --graphs off"], "CUDA graphs"),
        ("%%jaxnsys --return ba", ["%%jaxnsys --return batch"], "int"),
        ("%%nsys --return batch,pa", ["%%nsys --return batch,params"], "dict"),
        ("%%jaxsweep batch=1,2 --ra", ["%%jaxsweep batch=1,2 --rate"], "works on"),
        ("%jaxmem --s", ["%jaxmem --stop", "%jaxmem --save"], "end the watch"),
        ("found = %jaxprof re", ["found = %jaxprof report"], "what a capture"),
        ("%jaxprof report ", ['%jaxprof report "two words"', "%jaxprof report one"], "time, 20"),
        ("%jaxprof report tw", ['%jaxprof report "two words"'], "time, 20"),
        ("%jaxprof compare 'two w", ["%jaxprof compare 'two words'"], "time, 20"),
        ("%jaxprof compare one tr", ["%jaxprof compare one traced"], "trace, 20"),
        ("%%jaxtime --compare ", ["%%jaxtime --compare one"], "time, 20"),
        ("%%jaxtime --compare=one,tw", ['%%jaxtime --compare="one,two words"'], "time, 20"),
    ],
)
def test_what_is_completed(shell: Shell, store: Store, text: str, expected: list[str], about: str) -> None:
    publish(store, "time", "one", "two words", "it's")
    publish(store, "trace", "traced")
    found = complete(shell, text)
    assert set(expected) <= set(found), found
    assert about in found[expected[0]]
    for line in found:  # nothing but what belongs there: no names of Python's, no files
        assert "import" not in line


def test_what_is_not_completed(shell: Shell, store: Store) -> None:
    publish(store, "trace", "traced")
    assert not any("traced" in line for line in complete(shell, "%%jaxtime --compare t"))
    assert list(complete(shell, "%%jaxtrace --steps 5 --st")) == ["%%jaxtrace --steps 5 --step-name"]
    assert not any("--no-perfetto" in line for line in complete(shell, "%%jaxtrace --"))
    assert not any("--steps" in line for line in complete(shell, "%jaxtrace start --"))
    assert "%%jaxtrace\nparams" in complete(shell, "%%jaxtrace\npara")
    assert "%%jaxsweep" in complete(shell, "%%jax")
    shell.run("%unload_ext jupyterlab_jaxprof")
    assert not any("--steps" in line for line in complete(shell, "%%jaxtrace --st"))


def test_every_option_has_a_text_that_a_list_can_show() -> None:
    parsers = [
        jaxtrace_arguments.parser("%%jaxtrace"),
        jaxtime_arguments.parser("%%jaxtime"),
        jaxsweep_arguments.parser(),
        jaxmem_arguments.parser(),
        jaxnsys_arguments.parser("%%nsys"),
        jaxprof_arguments.parser("%jaxprof compare"),
        jaxprof_arguments.parser("%jaxprof install-nsys-kernel"),
    ]
    for parser in parsers:
        texts = [action.help for action in parser.actions if action.option_strings[:1] != ["--help"]]
        assert all(text and len(text) <= 40 for text in texts if text is not None), texts
        assert sum(text is None for text in texts) == 1  # the name


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with running_kernel() as kernel:
        yield kernel


def reply_to(kernel: Kernel, message_id: str) -> dict[str, Any]:
    while True:
        answer = kernel.client.get_shell_msg(timeout=60)
        if answer["parent_header"].get("msg_id") == message_id:
            return answer["content"]


def test_a_kernel_completes_before_anything_heavy_is_imported(kernel: Kernel) -> None:
    content = reply_to(kernel, kernel.client.complete("%%jaxtime --f", 13))
    assert content["matches"] == ["--fail-on-recompile"]
    assert (content["cursor_start"], content["cursor_end"]) == (10, 13)
    (told,) = content["metadata"]["_jupyter_types_experimental"]
    assert told["type"].replace("\u00a0", " ") == "raise when something compiles again"
    assert kernel.run("import sys; 'jax' in sys.modules").value == "False"


@pytest.mark.parametrize("name", ["jaxtrace", "jaxtime", "jaxsweep", "jaxmem", "nsys", "jaxnsys", "jaxprof"])
def test_help_in_a_kernel(kernel: Kernel, name: str) -> None:
    for magic in (f"%{name}", f"%%{name}"):
        reply = reply_to(kernel, kernel.client.execute(f"{magic}?"))
        text = re.sub(r"\x1b\[[0-9;]*m", "", reply["payload"][0]["data"]["text/plain"])
        module = "jaxnsys" if name == "nsys" else name
        assert import_module(f"jupyterlab_jaxprof.magics.{module}_arguments").HELP.rstrip() in text
        assert text.rstrip().endswith(f"magics/{module}.py")
        source = reply_to(kernel, kernel.client.execute(f"{magic}??"))["payload"][0]["data"]["text/plain"]
        assert "BoundMagic" not in source


def test_a_wrong_number_of_percent_signs_is_told(shell: Shell) -> None:
    told = shell.run("%%jaxmem\n1 / 0").text
    assert told.strip() == (
        "UsageError: %%jaxmem: it takes no cell: write %jaxmem (one percent sign) in a line of its own. "
        "No memory was looked at."
    )
    assert "two percent signs" in shell.run("%jaxsweep n=1,2").text
    assert "one percent sign" in shell.run("%%jaxprof\nimport asyncio\nawait asyncio.sleep(0)").text
