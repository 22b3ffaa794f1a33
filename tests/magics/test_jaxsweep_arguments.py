"""The line after %%jaxsweep: names and their values, and options."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.error import UsageError

from jupyterlab_jaxprof.magics.jaxsweep_arguments import HELP, Arguments, axes_of, parse, parser
from tests.support.shells import running_shell


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("n=1,2", Arguments(values={"n": "1,2"})),
        ("n=1, 2,  3 -r 9", Arguments(values={"n": "1, 2, 3"}, repeats=9, seconds=0.0)),
        (
            "-t 1 n=[1, 2] k='a b', 'c'",
            Arguments(values={"n": "[1, 2]", "k": "'a b', 'c'"}, repeats=0, seconds=1),
        ),
        (
            "'two words' n=2**k for k in range(5) --fresh",
            Arguments("two words", {"n": "2**k for k in range(5)"}, fresh=True),
        ),
        ("n=1,2 --rate 'n * 2' --by n", Arguments(values={"n": "1,2"}, rate="n * 2", by="n")),
        ("n=1,2 --rate n * 2 -r 3", Arguments(values={"n": "1,2"}, rate="n * 2", repeats=3, seconds=0.0)),
        ("--rate -n mine n=1", Arguments("mine", {"n": "1"}, rate="-n")),
        ("n= 1, 2", Arguments(values={"n": " 1, 2"})),
        ("--rate n*f(k=3) n=1,2", Arguments(values={"n": "1,2"}, rate="n*f(k=3)")),
        ("n=-1, -2 --loops 3", Arguments(values={"n": "-1, -2"}, loops=3)),
        (
            "n=dict(a=1),{'b': 2} --save v --no-card",
            Arguments(values={"n": "dict(a=1),{'b': 2}"}, save="v", show_card=False),
        ),
        ("name größe=1", Arguments(name="name", values={"größe": "1"})),
    ],
)
def test_what_is_read(line, expected):
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "it needs a name and the values"),
        ("batch", "it needs a name and the values"),
        ("n=1 n=2", "n is given twice"),
        ("for=1", "'for' is a word of Python's"),
        ("n=1 --by k", "--by takes one of the names that are swept (n), not 'k'"),
        ("n=1 --rat n", "there is no option --rat. Did you mean --rate?"),
        ("n='a", "a quote is opened and never closed"),
        ("two names n=1", "it takes one name"),
        ("n=1 -r 0", "a whole number from 1"),
        ("n=1 --save 1x", "'1x' can't be one"),
        ("n = 1,2", "no blanks belong around the = between a name and its values: n=1,2,4"),
        ("n=1 k =2", "no blanks belong around the = between a name and its values: k=1,2,4"),
        ("n=1 --rate n if n else 1", "put what --rate takes into quotes where it holds blanks"),
        ("n=1 --rate --by n", "--rate: expected one argument"),
    ],
)
def test_what_is_refused(line, sentence):
    with pytest.raises(UsageError) as refused:
        parse(line)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("%%jaxsweep: ")
    assert str(refused.value).endswith("Nothing has run.")


@pytest.fixture(scope="module")
def shell():
    with running_shell() as shell:
        shell.names.update(sizes=[3, 4], np=np, jnp=jnp)
        shell.run("import itertools")
        yield shell.ip


@pytest.mark.parametrize(
    ("text", "values", "texts"),
    [
        ("1,2.5,None", [1, 2.5, None], ["1", "2.5", "None"]),
        ("sizes", [3, 4], ["3", "4"]),
        ("sizes, [1]", [[3, 4], [1]], ["sizes", "[1]"]),
        ("*sizes, 9", [3, 4, 9], ["3", "4", "9"]),
        ("range(1, 9, 4)", [1, 5], ["1", "5"]),
        ("2**k for k in sizes", [8, 16], ["8", "16"]),
        ("(k for k in sizes)", [3, 4], ["3", "4"]),
        ("(8, 8), (16, 16)", [(8, 8), (16, 16)], ["(8, 8)", "(16, 16)"]),
        ("(8, 8)", [(8, 8)], ["(8, 8)"]),
        ("'a,b', \"c\"", ["a,b", "c"], ["a,b", "c"]),
        ("np.arange(2)", [0, 1], ["0", "1"]),
        ("jnp.float32, jnp.bfloat16", [jnp.float32, jnp.bfloat16], ["jnp.float32", "jnp.bfloat16"]),
        ("lambda x: [x, x]", None, ["lambda x: [x, x]"]),
    ],
)
def test_values(shell, text, values, texts):
    (axis,) = axes_of(shell, {"n": text})
    assert list(axis.texts) == texts
    if values is not None:
        assert list(axis.values) == values


def test_an_endless_generator_is_refused(shell):
    with pytest.raises(UsageError, match=r"gives more than 1,000 values"):
        axes_of(shell, {"n": "itertools.count()"})


def test_the_help_tells_of_every_option():
    for option in parser().declared():
        assert option in HELP
    assert all(len(line) <= 100 for line in HELP.splitlines())
