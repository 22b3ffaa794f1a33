"""The line after %%jaxtrace."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from IPython.core.error import UsageError

from jupyterlab_jaxprof.magics.jaxtrace_arguments import HELP, Arguments, parse, parser


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Arguments()),
        ("first", Arguments(name="first")),
        ('"my naïve / run #1"', Arguments(name="my naïve / run #1")),
        ("'Anna\"s run'", Arguments(name='Anna"s run')),
        ("{x} --steps 3", Arguments(name="{x}", steps=3)),
        ("$HOME", Arguments(name="$HOME")),
        ("--python name", Arguments(name="name", profiler_options={"python_tracer_level": 1})),
        ("--python 0 name", Arguments(name="name", profiler_options={"python_tracer_level": 0})),
        ("--python=1", Arguments(profiler_options={"python_tracer_level": 1})),
        (
            "--host-level 0 --device-level 0 --option a=1 --option b.c=x=y",
            Arguments(
                profiler_options={"host_tracer_level": 0, "device_tracer_level": 0, "a": "1", "b.c": "x=y"}
            ),
        ),
        ('--dir "~/my traces" --no-card', Arguments(directory="~/my traces", show_card=False)),
        ("--save capture --perfetto", Arguments(save="capture", perfetto=True)),
        ("--remote a:1,b:2 --duration-ms 50", Arguments(remote="a:1,b:2", duration_ms=50)),
        ("--steps 2 --step-name 'my step'", Arguments(steps=2, step_name="my step")),
    ],
)
def test_what_is_read(line, expected):
    assert parse("%%jaxtrace", line) == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("my run", '%%jaxtrace "my run"'),
        ("Anna's", "a quote is opened and never closed"),
        ("--step 5", "Did you mean --steps?"),
        ("--perfeto", "Did you mean --perfetto?"),
        ("--xyz", "there is no option --xyz"),
        ("--hlep", "Did you mean --help?"),
        ("--steps 0", "a whole number from 1 to"),
        ("--steps many", "not 'many'"),
        ("--steps 1e3", "not '1e3'"),
        ("--steps", "expected one argument"),
        ("--python 7", "from 0 to 1"),
        ("--python -1", "from 0 to 1"),
        ("--host-level 4", "from 0 to 3"),
        ("--option python_tracer_level", "FIELD=VALUE"),
        ("--dir ''", "it takes a directory, not an empty text"),
        ("--dir ' '", "it takes a directory, not an empty text"),
        ("--save=", "the name of a variable, not an empty text"),
        ("--step-name ''", "a name for the steps, not an empty text"),
        ("--steps 2 --step-name 'a#1'", "--step-name can't hold '#'"),
        ("--remote ''", "localhost:9012, not an empty text"),
        ("--save 1x", "can't be one"),
        ("--save class", "can't be one"),
        ("--save a.b", "can't be one"),
        ("'two\tcolumns'", "tabs"),
        ("--duration-ms 100", "is for --remote"),
        ("--remote a:1 --steps 3", "can't be combined"),
        ("--remote a:1 --perfetto", "can't be combined"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(line, sentence):
    with pytest.raises(UsageError) as raised:
        parse("%%jaxtrace", line)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("%%jaxtrace: ")
    assert str(raised.value).endswith(". Nothing has run.")


def test_help_tells_of_every_option():
    options = parser("").declared()
    assert options
    assert not {option for option in options if option not in HELP}
    assert "taken only by --remote" in HELP
    assert "needs JAX 0.9" in HELP


def test_every_option_begins_a_line_and_its_text_stands_in_one_column():
    lines = HELP.splitlines()
    assert max(map(len, lines)) <= 100
    described = [line for line in lines if re.match(r"  (--|NAME)", line)]
    options = set(parser("").declared()) - {"--help"}
    assert {line.split()[0] for line in described} == options | {"NAME"}
    assert all(re.match(r"  \S.{,20} \S|  --remote \S+$", line) for line in described)
    texts = [re.search(r"\S  +(\S)", line) for line in described if not line.startswith("  --remote")]
    assert {text.start(1) for text in texts} == {24}
    continued = [line for line in lines if re.match(r" {5,}\S", line)]
    assert {len(line) - len(line.lstrip()) for line in continued} == {24}


def test_help_costs_no_jax():
    code = (
        "import sys; from jupyterlab_jaxprof.magics import jaxtrace\n"
        "print(jaxtrace.HELP[:5], sorted({'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Trace []"
