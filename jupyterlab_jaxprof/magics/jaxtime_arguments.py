"""The arguments of %%jaxtime and %jaxtime: read, checked and explained."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from .arguments import (
    MagicParser,
    asks_for_help,
    filled,
    identifier,
    one_line,
    read,
    seconds,
    split,
    usage_error,
    whole,
)

MAX_REPEATS = 100_000
MAX_LOOPS = 1_000_000
MAX_WARMUP = 100_000
MAX_SECONDS = 86_400

HELP = """\
Time a cell, or an expression, and tell what of it was compiling.

    %%jaxtime [NAME] [options]          time the cell below
    %jaxtime [options] [--] EXPRESSION  time the expression (or statement) in this line

The cell runs once, as it would without the magic, and its time ends when everything that it
enqueued on the devices has ended. The first line of the card says what you saw; below it stand
tracing, lowering, compiling and running apart, when Python got control back and when the devices
were done, and what was compiled, for which arguments and why. The result is kept in the
sidebar's list.

NAME  what to call it, in quotes if it holds spaces; default: the cell's number, such as In [5]

Repeats
  -r N                  run the cell again until there are N samples: the cached runs, in which
                        nothing compiles. State carries over from run to run, output is shown
                        the first time only, and the value is the first run's.
  -t SECONDS            the same for so many seconds (with -r: until both are reached)
  --warmup N            runs before the samples, left out (default 1)
  --loops N             runs in one sample; default: as many as make it long enough to be timed

What else is told
  --transfers           each line that reads from or writes to a device without saying so, such as
                        float(loss), print(x) or a numpy array passed in, with the time waiting
  --memory              the devices' memory before and after, what the programs need, and the
                        largest arrays with the names that hold them
  --compare NAME[,NAME] how this compares with earlier results of these names (the newest of each)

Errors
  --fail-on-recompile   raise CompiledError when something is compiled that had been before
  --no-compile          raise CompiledError when anything is compiled

Where it goes
  --save VAR            set VAR to the result: VAR.to_dict(), VAR.to_pandas()
  --no-card             show no card
  --help                show this, and run nothing

The settings (JaxProf Magics) can hold options for every run. What stands on the line counts for
more than they do; --card undoes --no-card there, and so on for every option without a value.

Examples
    %%jaxtime "batch 256" -t 1 --compare "batch 128"
    params, loss = train_step(params, batch)

    %jaxtime -r 20 f(x)
"""


@dataclass
class Arguments:
    """What was asked for; `expression` is a line magic's."""

    name: str = ""
    expression: str = ""
    repeats: int = 0
    seconds: float = 0.0
    warmup: int = 1
    loops: int | None = None
    transfers: bool = False
    memory: bool = False
    compare: tuple[str, ...] = ()
    fail_on_recompile: bool = False
    no_compile: bool = False
    save: str = ""
    show_card: bool = True


def parse(line: str) -> Arguments:
    """Read the line after %%jaxtime; raises UsageError with a sentence."""
    magic = "%%jaxtime"
    return _arguments(magic, read(parser(magic), split(magic, line)))


def parse_line(line: str) -> Arguments:
    """Read the line after %jaxtime: options, then all the rest is the expression; raises UsageError."""
    magic = "%jaxtime"
    reader = parser(magic)
    options, expression = _divided(reader, line)
    arguments = _arguments(magic, read(reader, split(magic, options)))
    if not expression:
        raise usage_error(
            magic,
            "it times the expression behind it, and there is none: %jaxtime f(x), for example. %%jaxtime "
            "(two percent signs) on a cell's first line times the cell.",
        )
    arguments.expression = expression
    return arguments


def line_asks_for_help(line: str) -> bool:
    """Tell whether --help (or -h) is among the options of a line that may hold an expression behind them."""
    return asks_for_help(_divided(parser("%jaxtime"), line)[0])


def _divided(parser: MagicParser, line: str) -> tuple[str, str]:
    """Part the options at the line's beginning from the expression, which may hold anything.

    A `--` ends the options, for an expression that begins with a minus.
    """
    bare = {option for action in parser.actions if action.nargs == 0 for option in action.option_strings}
    position = 0
    while found := _WORD.match(line, position):
        word, option = found[0], found[1]
        if option == "--":
            return line[:position], line[found.end() :].strip()
        if not re.match("--?[a-zA-Z]", option):
            break
        position = found.end()
        if option in parser.options() and option not in bare and "=" not in word:
            value = _WORD.match(line, position)
            position = value.end() if value else position
    return line[:position], line[position:].strip()


#: A word and the blanks before it; quotes keep blanks in it together.
_WORD = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[^\s"'=])+)(?:=(?:"[^"]*"|'[^']*'|[^\s"'])*)?""")


@functools.cache
def parser(magic: str) -> MagicParser:
    """Give what reads the options behind `magic`: %%jaxtime or %jaxtime."""
    parser = MagicParser(magic)
    option, switch = parser.option, parser.switch
    option(
        "-r", dest="repeats", type=whole(1, MAX_REPEATS), default=0, text="run it until there are N samples"
    )
    option("-t", dest="seconds", type=seconds(MAX_SECONDS), default=0.0, text="repeat it for so many seconds")
    option("--warmup", type=whole(0, MAX_WARMUP), default=None, text="runs before the samples")
    option("--loops", type=whole(1, MAX_LOOPS), default=None, text="runs in one sample")
    switch("--transfers", text="tell the lines that read from a device")
    switch("--memory", text="tell the devices' memory")
    option(
        "--compare", type=filled("names of earlier results"), text="compare with earlier", values="timings"
    )
    switch("--fail-on-recompile", text="raise when something compiles again")
    switch("--no-compile", text="raise when anything compiles")
    parser.variable_and_card("set a variable to the result")
    return parser


def _arguments(magic: str, values: Any) -> Arguments:
    for option, given in (("--warmup", values.warmup), ("--loops", values.loops)):
        if given is not None and not (values.repeats or values.seconds):
            raise usage_error(
                magic, f"{option} is about repeats: give -r N or -t SECONDS with it.", conflict=True
            )
    return Arguments(
        name=one_line(magic, values.name or ""),
        repeats=values.repeats,
        seconds=values.seconds,
        warmup=1 if values.warmup is None else values.warmup,
        loops=values.loops,
        transfers=values.transfers,
        memory=values.memory,
        compare=_names(magic, values.compare or ""),
        fail_on_recompile=values.fail_on_recompile,
        no_compile=values.no_compile,
        save=identifier(magic, values.save or ""),
        show_card=not values.no_card,
    )


def _names(magic: str, text: str) -> tuple[str, ...]:
    names = [one_line(magic, name) for name in text.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))
