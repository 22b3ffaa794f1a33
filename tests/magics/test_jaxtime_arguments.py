"""The line after %%jaxtime and %jaxtime."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from jupyterlab_jaxprof.magics.jaxtime_arguments import HELP, Arguments, parse, parse_line, parser


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Arguments()),
        ('"batch 256" -r 20', Arguments(name="batch 256", repeats=20)),
        ("-t 0.5 name --warmup 0", Arguments(name="name", seconds=0.5, warmup=0)),
        ("-r20 --loops 1", Arguments(repeats=20, loops=1)),
        ("--transfers --memory --no-card", Arguments(transfers=True, memory=True, show_card=False)),
        ('x --compare "first one, In [3],first one"', Arguments(name="x", compare=("first one", "In [3]"))),
        ("--fail-on-recompile --save v", Arguments(fail_on_recompile=True, save="v")),
        ("--no-compile {x} ", Arguments(no_compile=True, name="{x}")),
    ],
)
def test_what_is_read(line, expected):
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("my run", '%%jaxtime "my run"'),
        ("Anna's", "a quote is opened and never closed"),
        ("--repeat 5", "there is no option --repeat"),
        ("--transfer", "Did you mean --transfers?"),
        ("-r 0", "a whole number from 1 to 100,000, not '0'"),
        ("-r many", "not 'many'"),
        ("-t 0", "seconds, more than 0"),
        ("-t nan", "seconds, more than 0"),
        ("-t inf", "seconds, more than 0"),
        ("-r", "expected one argument"),
        ("--warmup 2", "--warmup is about repeats"),
        ("--loops 2", "--loops is about repeats"),
        ("--save a.b", "can't be one"),
        ("--save ''", "not an empty text"),
        ("--compare ''", "not an empty text"),
        ('"a\tb"', "can't hold tabs"),
    ],
)
def test_what_is_refused_in_a_sentence(line, sentence):
    with pytest.raises(UsageError) as raised:
        parse(line)
    assert sentence in str(raised.value)
    assert str(raised.value).startswith("%%jaxtime: ")
    assert str(raised.value).endswith(" Nothing has run.")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f(x)", Arguments(expression="f(x)")),
        ("f(x, -r) -r 3", Arguments(expression="f(x, -r) -r 3")),
        ("-r 20  f('a  b')", Arguments(repeats=20, expression="f('a  b')")),
        ("--compare='a b' --memory y = x", Arguments(compare=("a b",), memory=True, expression="y = x")),
        ("--compare 'a b' f(\"it's\")", Arguments(compare=("a b",), expression="f(\"it's\")")),
        ("-r20 f(x)", Arguments(repeats=20, expression="f(x)")),
        ("-1 + x", Arguments(expression="-1 + x")),
        ("-- -x.sum()", Arguments(expression="-x.sum()")),
        ("-t 1 -- -x", Arguments(seconds=1.0, expression="-x")),
        ("f(x) # and a note", Arguments(expression="f(x) # and a note")),
        ("'a' + 'b'", Arguments(expression="'a' + 'b'")),
    ],
)  # fmt: skip
def test_an_expression_is_what_follows_the_options(line, expected):
    assert parse_line(line) == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "there is none"),
        ("-r 20", "there is none"),
        ("-x", "there is no option -x"),
        ("-x f(x)", "there is no option -x"),
        ("-r f(x)", "not 'f(x)'"),
    ],
)
def test_a_line_that_is_refused(line, sentence):
    with pytest.raises(UsageError) as raised:
        parse_line(line)
    assert sentence in str(raised.value)


def test_the_help_has_every_option_and_nothing_else():
    reader = parser("%%jaxtime")
    told = {word.strip("[],:") for word in HELP.split() if word.strip("[],:").startswith("-")}
    assert set(reader.declared()) <= told - {"--"} <= set(reader.options())
    assert max(map(len, HELP.splitlines())) <= 100
