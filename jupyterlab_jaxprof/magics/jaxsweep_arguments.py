"""The arguments of %%jaxsweep: names with their values, and options; read, checked and explained."""

from __future__ import annotations

import ast
import itertools
import keyword
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

from jupyterlab_jaxprof.timing.sweep import Axis, Rate

from .arguments import (
    MagicParser,
    filled,
    identifier,
    one_line,
    read,
    seconds,
    usage_error,
    whole,
    written_words,
)
from .jaxtime_arguments import MAX_LOOPS, MAX_REPEATS, MAX_SECONDS, MAX_WARMUP

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MAGIC = "%%jaxsweep"
MAX_POINTS = 1000
REPEATS = 5
SECONDS = 0.2
_MAX_TEXT = 40

HELP = """\
Run a cell once for each value of a name, and tell where it stops getting faster.

    %%jaxsweep [NAME] batch=8,32,128 [more=...] [options]

The cell runs with the name bound to each value in turn (with several names, to each combination),
as %%jaxtime would run it: once, and then again for its cached runs. The card has time a call,
rate, compiling and memory of each, and says where the rate stops growing. A value that runs out of
memory, or fails otherwise, is a row like the others. The names are put back at the end. Interrupt
the kernel to stop: what is measured until then is kept.

NAME    what to call it, in quotes if it holds spaces; default: the cell's number, such as In [5]
batch=  the values, parted by commas: Python expressions, evaluated where the cell runs. A single
        list, range or generator stands for its items, so all of these are alike:
        batch=1,2,4,8    batch=[1, 2, 4, 8]    batch=2**k for k in range(4)    batch=sizes
        A tuple is one value: shape=(8,8),(16,16)

What is told
  --rate EXPR           what a call works on, such as batch or batch*length: tells items a second,
                        and the knee: the smallest value that reaches 90 % of the best rate
                        (values of twice as much must have been measured, too). It is
                        evaluated after each value's first run
  --by NAME             one series for each value of NAME, along all other names; default: along the
                        first name, one series for each combination of the others
  --fresh               empty JAX's caches before each value (jax.clear_caches), so that each
                        compiles anew and its compiling and memory are known

Repeats, at each value
  -r N                  samples of the cached runs, at least (default 5)
  -t SECONDS            seconds of repeating, at least (default 0.2)
  --warmup N            runs before the samples, left out (default 1)
  --loops N             runs in one sample; default: as many as make it long enough to be timed

Where it goes
  --save VAR            set VAR to the result: VAR.points, VAR.to_dict(), VAR.to_pandas()
  --no-card             show no card
  --help                show this, and run nothing

The settings (JaxProf Magics) can hold options for every run. What stands on the line counts for
more than they do; --card undoes --no-card there, and so on for every option without a value.

Example
    %%jaxsweep batch=1,8,32,128,256,512,1024 --rate batch
    x = jnp.ones((batch, 1024))
    y = predict(params, x)
"""

#: An equals sign with a blank before it: `n = 1,2` or `n =1,2`.
_LOOSE = re.compile(r"=(?!=)")
_AXIS = re.compile(r"([^\W\d]\w*)=(?!=)")
_OPTION = re.compile(r"--?[a-zA-Z]")


@dataclass
class Arguments:
    """What was asked for; `values` has each name's values as they were written."""

    name: str = ""
    values: dict[str, str] = field(default_factory=lambda: {})
    rate: str = ""
    by: str = ""
    fresh: bool = False
    repeats: int = REPEATS
    seconds: float = SECONDS
    warmup: int = 1
    loops: int | None = None
    save: str = ""
    show_card: bool = True


def parse(line: str) -> Arguments:
    """Read the line after %%jaxsweep; raises UsageError with a sentence. Values are not evaluated."""
    reader = parser()
    parted, before = _Line(reader), ""
    for word in written_words(MAGIC, line):
        parted.take(word, before)
        before = word
    values = parted.values
    given = read(reader, parted.words)
    if not values:
        raise usage_error(
            MAGIC,
            "it needs a name and the values to run the cell with: %%jaxsweep batch=8,32,128, for example.",
        )
    if given.by and given.by not in values:
        raise usage_error(
            MAGIC,
            f"--by takes one of the names that are swept ({', '.join(values)}), not '{given.by}'.",
            conflict=True,
        )
    if given.repeats is None and given.seconds is None:
        given.repeats, given.seconds = REPEATS, SECONDS
    return Arguments(
        name=one_line(MAGIC, given.name or ""),
        values=values,
        rate=given.rate or "",
        by=given.by or "",
        fresh=given.fresh,
        repeats=given.repeats or 0,
        seconds=given.seconds or 0.0,
        warmup=given.warmup,
        loops=given.loops,
        save=identifier(MAGIC, given.save or ""),
        show_card=not given.no_card,
    )


def parser(magic: str = MAGIC) -> MagicParser:
    """Give what reads the options behind %%jaxsweep."""
    parser = MagicParser(magic)
    option, switch = parser.option, parser.switch
    option("--rate", type=filled("an expression"), text="what a call works on, such as batch")
    option("--by", type=filled("a name"), text="one series for each value of a name")
    switch("--fresh", text="empty JAX's caches before each value")
    option(
        "-r", dest="repeats", type=whole(1, MAX_REPEATS), default=None, text="samples at each value, at least"
    )
    option(
        "-t", dest="seconds", type=seconds(MAX_SECONDS), default=None, text="seconds at each value, at least"
    )
    option("--warmup", type=whole(0, MAX_WARMUP), default=1, text="runs before the samples")
    option("--loops", type=whole(1, MAX_LOOPS), default=None, text="runs in one sample")
    parser.variable_and_card("set a variable to the result")
    return parser


class _Line:
    """A line parted into the names' values and the other words; values go on until a name or an option."""

    def __init__(self, parser: MagicParser) -> None:
        bare = {option for action in parser.actions if action.nargs == 0 for option in action.option_strings}
        self._options = parser.options()
        self._take_values = set(self._options) - bare
        self._option = ""
        self._axis = ""
        self._rated = False
        self.words: list[str] = []
        self.values: dict[str, str] = {}

    def take(self, word: str, before: str) -> None:
        """Take the next word; `before` is the one before it."""
        if self._option and word not in self._options:
            self._give_option(_unquoted(word))
            return
        rated, self._rated, self._option = self._rated, False, ""
        axis = _AXIS.match(word)
        if _OPTION.match(word):
            self.words.append(_unquoted(word))
            self._option = word if word in self._take_values else ""
            self._axis = ""
        elif axis is not None:
            self._axis = _checked(axis[1], self.values)
            self.values[self._axis] = word[axis.end() :]
        elif _LOOSE.match(word) and before.isidentifier():
            raise usage_error(
                MAGIC, f"no blanks belong around the = between a name and its values: {before}=1,2,4."
            )
        elif self._axis:
            self.values[self._axis] += f" {word}"
        elif rated and _is_expression(f"{self.words[-1].partition('=')[2]} {word}"):
            self.words[-1] += f" {word}"
            self._rated = True
        elif rated and (keyword.iskeyword(word) or not _is_word(word)):
            raise usage_error(
                MAGIC, "put what --rate takes into quotes where it holds blanks: --rate 'n * 2'."
            )
        else:
            self.words.append(_unquoted(word))

    def _give_option(self, value: str) -> None:
        """Join a long option with its value, which may begin with a minus."""
        option, self._option = self._option, ""
        if option.startswith("--"):
            self.words[-1] = f"{option}={value}"
        else:
            self.words.append(value)
        self._rated = option == "--rate"


def _is_expression(text: str) -> bool:
    """Tell whether a text is a Python expression, or how one begins (`n *`)."""
    for ending in ("", " 1"):
        try:
            compile(text + ending, "<--rate>", "eval")
        except (SyntaxError, ValueError):
            continue
        return True
    return False


def _unquoted(word: str) -> str:
    try:
        return " ".join(shlex.split(word)) if word else word
    except ValueError:
        return word


def _checked(name: str, values: dict[str, str]) -> str:
    if keyword.iskeyword(name):
        raise usage_error(MAGIC, f"'{name}' is a word of Python's, and can't be bound to values.")
    if name in values:
        raise usage_error(MAGIC, f"{name} is given twice. Put all its values behind one {name}=.")
    return name


def axes_of(shell: InteractiveShell, values: dict[str, str]) -> list[Axis]:
    """Evaluate the values in the user's namespace; raises UsageError for what can't be, or is too much."""
    axes = [_axis(shell, name, text) for name, text in values.items()]
    total = 1
    for axis in axes:
        total *= len(axis.values)
    if total > MAX_POINTS:
        raise usage_error(
            MAGIC,
            f"these are {total:,} combinations, and it takes {MAX_POINTS:,} at most. Give fewer values.",
        )
    return axes


def _axis(shell: InteractiveShell, name: str, text: str) -> Axis:
    source = f"[{text.strip()}]"
    if not text.strip():
        raise usage_error(MAGIC, f"{name}= has no values behind it: {name}=1,2,4, for example.")
    try:
        tree = ast.parse(source, mode="eval")
        found: Any = eval(compile(tree, "<%%jaxsweep>", "eval"), shell.user_ns)
        written = _written(tree.body, source)
        values = list(cast("Iterable[Any]", found))
        if len(values) == 1 and written is not None and _stands_for_items(values[0]):
            values, written = list(itertools.islice(values[0], MAX_POINTS + 1)), None
    except Exception as error:  # noqa: BLE001 - the user's own expression raises anything
        raise usage_error(MAGIC, _unreadable(name, text, error)) from None
    if not values:
        raise usage_error(MAGIC, f"{name}={text} gives no value at all.")
    if len(values) > MAX_POINTS:
        raise usage_error(MAGIC, f"{name}={text} gives more than {MAX_POINTS:,} values.")
    texts = written or [""] * len(values)
    shown = [_text(value, text, index) for index, (value, text) in enumerate(zip(values, texts, strict=True))]
    return Axis(name, values, shown)


def _unreadable(name: str, text: str, error: Exception) -> str:
    """Say what is wrong with the values of a name."""
    *first, last = written_words(MAGIC, text)
    values = " ".join(first)
    if isinstance(error, SyntaxError) and values and _is_word(last) and _is_expression(f"[{values}]"):
        return (
            f"'{_unquoted(last)}' behind the values of {name} is none of them. What to call the result goes "
            f"first: %%jaxsweep {last} {name}={values}."
        )
    told = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"the values of {name} can't be read ({type(error).__name__}: {told}) in {name}={text}."


def _is_word(text: str) -> bool:
    return text.isidentifier() or text[:1] in ("'", '"')


def _written(node: ast.expr, source: str) -> list[str] | None:
    """Give each value as it was written; None where items come of something else than being written."""
    if not isinstance(node, ast.List) or any(isinstance(item, ast.Starred) for item in node.elts):
        return None
    return [ast.get_source_segment(source, item) or "" for item in node.elts]


def _stands_for_items(value: Any) -> bool:
    """Whether a single value is several: a list, a range, a generator, an array of one dimension."""
    if isinstance(value, list | range | set | frozenset | Iterator):
        return True
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and len(cast("Sequence[int]", shape)) == 1


def _text(value: Any, written: str, index: int) -> str:
    """Write a value: a number or a text as it is, anything else as it was written."""
    try:
        text = _plain_text(value) or written or repr(value)
    except Exception:  # noqa: BLE001 - the user's own class can raise anything, an int be too long to write
        text = written or f"{type(value).__name__} {index + 1}"
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _plain_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return str(value)
    return ""


def rate_of(text: str) -> Rate | None:
    """Compile what --rate takes; raises UsageError where it is no expression."""
    if not text:
        return None
    try:
        code: CodeType = compile(text.strip(), "<--rate>", "eval")
    except (SyntaxError, ValueError) as error:
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise usage_error(
            MAGIC, f"--rate takes a Python expression, and '{text}' is none ({told})."
        ) from None
    return Rate(text.strip(), code)
