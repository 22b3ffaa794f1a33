"""The arguments of %jaxmem: read, checked and explained."""

from __future__ import annotations

from dataclasses import dataclass

from .arguments import MagicParser, identifier, one_line, read, seconds, split, usage_error

MAGIC = "%jaxmem"
MAX_SECONDS = 86_400

HELP = """\
Tell how much memory the devices have, what is in use, and what holds it.

    %jaxmem [NAME]                    as it is now
    %jaxmem [NAME] --watch [SECONDS]  over time, while the next cells run
    %jaxmem --stop                    end the watch, and show what it saw

The card has each device's limit, memory in use and peak, why nvidia-smi shows more, the largest
arrays with the names that hold them, and the variables that decide how JAX takes memory. A watch
draws memory over time, with the cells that ran. It ends by itself after SECONDS (at the end of the
cell that runs then), and with the kernel; it takes less than 1 % of a processor. %jaxmem never
starts JAX's devices: before the first operation it tells that nothing is reserved yet.

NAME  what to call it, in quotes if it holds spaces; default: the cell's number, such as In [5]

Options
  --watch [SECONDS]     sample until %jaxmem --stop, or for so many seconds
  --stop                end the watch
  --save VAR            set VAR to the result: VAR.to_dict(), VAR.to_pandas()
  --no-card             show no card
  --help                show this

The settings (JaxProf Magics) can hold options for every run. What stands on the line counts for
more than they do; --card undoes --no-card there, and so on for every option without a value.
"""


@dataclass
class Arguments:
    """What was asked for; `seconds` is None for a watch without an end of its own."""

    name: str = ""
    watch: bool = False
    seconds: float | None = None
    stop: bool = False
    save: str = ""
    show_card: bool = True


def parser(magic: str = MAGIC) -> MagicParser:
    """Give what reads the line behind %jaxmem."""
    parser = MagicParser(magic)
    parser.option(
        "--watch",
        nargs="?",
        type=seconds(MAX_SECONDS),
        const=0.0,
        default=None,
        text="watch it while the next cells run",
    )
    parser.option("--stop", action="store_true", text="end the watch, and show it")
    parser.variable_and_card("set a variable to the result")
    return parser


def parse(line: str) -> Arguments:
    """Read the line after %jaxmem; raises UsageError with a sentence."""
    values = read(parser(), split(MAGIC, line))
    if values.watch == 0.0 and _is_number(values.name):
        raise usage_error(
            MAGIC,
            f"the seconds stand right behind --watch: --watch {values.name}, then --save and the rest. (If "
            f'{values.name} is to be its name: %jaxmem "watch {values.name}" --watch.)',
        )
    if values.stop and (values.watch is not None or values.name):
        raise usage_error(
            MAGIC, "--stop takes --save VAR and --no-card; all else is given to --watch.", conflict=True
        )
    return Arguments(
        name=one_line(MAGIC, values.name or ""),
        watch=values.watch is not None,
        seconds=values.watch or None,
        stop=values.stop,
        save=identifier(MAGIC, values.save or ""),
        show_card=not values.no_card,
    )


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True
