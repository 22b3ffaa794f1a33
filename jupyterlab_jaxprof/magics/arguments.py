"""Reading a magic's line: what all magics have in common. Whatever is wrong with it is said in a sentence."""

from __future__ import annotations

import argparse
import keyword
import math
import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from IPython.core.error import UsageError

#: What to say last in a usage error; of other magics that nothing has run.
_NOTHING_HAPPENED = {
    "%jaxtrace start": "No trace was started.",
    "%jaxtrace stop": "Nothing was stopped.",
    "%jaxtrace": "No trace was taken.",
    "%jaxmem": "No memory was looked at.",
    "%jaxmem --watch": "No other one was begun.",
    "%jaxmem --stop": "Nothing was stopped.",
}


def usage_error(magic: str, sentence: str) -> UsageError:
    """Make the error that IPython prints without a traceback: whose it is, what is wrong, what has run."""
    return UsageError(f"{magic}: {sentence} {_NOTHING_HAPPENED.get(magic, 'Nothing has run.')}")


class MagicParser(argparse.ArgumentParser):
    """Reads `[NAME] [options]` after a magic, whose name with the percent signs is `prog`."""

    def __init__(self, magic: str) -> None:
        super().__init__(prog=magic, add_help=False, allow_abbrev=False)
        self.add_argument("name", nargs="?")
        self.add_argument("--help", action="store_true")  # asks_for_help() answers it

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, where argparse would end the process."""
        message = message.removeprefix("argument ")
        raise usage_error(self.prog, f"{message}. {self.prog.split()[0]}? explains it.")

    @property
    def actions(self) -> list[argparse.Action]:
        """Give what it reads."""
        return self._actions

    def options(self) -> list[str]:
        """Give every option, in all its spellings."""
        return [option for action in self._actions for option in action.option_strings]


def asks_for_help(line: str) -> bool:
    """Tell whether the line holds --help (or -h), whatever else is right or wrong in it."""
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    return not {"--help", "-h"}.isdisjoint(words)


def split(magic: str, line: str) -> list[str]:
    """Split the line after `magic` into words as a shell does; raises UsageError."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise usage_error(
            magic,
            f"a quote is opened and never closed in {line.strip()} ({error}). Put a name that holds spaces "
            'or quotes into a pair of the other quotes: "Anna\'s run".',
        ) from None


def read(parser: MagicParser, words: Sequence[str]) -> Any:
    """Give the words' values as attributes; raises UsageError for a second name or an unknown option."""
    values, rest = parser.parse_known_args(words)
    if rest:
        raise usage_error(parser.prog, _explain_rest(parser, values.name, rest))
    return values


def _explain_rest(parser: MagicParser, name: str | None, rest: Sequence[str]) -> str:
    magic = parser.prog
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-")]
    if unknown:
        close = get_close_matches(unknown[0], parser.options(), n=1, cutoff=0.5)
        meant = f" Did you mean {close[0]}?" if close else ""
        return f"there is no option {unknown[0]}.{meant} {magic.split()[0]}? lists them all."
    words = " ".join([name or "", *rest])
    return f'it takes one name. Put a name of several words in quotes: {magic} "{words}".'


def whole(least: int, most: int) -> Callable[[str], int]:
    """Give what reads the whole number that an option takes."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"it takes a whole number from {least} to {most:,}, not '{text}'"
            )
        return number

    return read


def seconds(most: int) -> Callable[[str], float]:
    """Give what reads the seconds that an option takes, more than 0."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 < number <= most:
            raise argparse.ArgumentTypeError(
                f"it takes seconds, more than 0 and up to {most:,}, not '{text}'"
            )
        return number

    return read


def filled(what: str) -> Callable[[str], str]:
    """Refuse an empty text: whoever gives one (an unset variable, say) did not mean to leave it out."""

    def read(text: str) -> str:
        if not text.strip():
            raise argparse.ArgumentTypeError(f"it takes {what}, not an empty text")
        return text

    return read


def one_line(magic: str, text: str) -> str:
    """Give a name without blanks around it; raises UsageError for what can't be printed."""
    if not text.isprintable():
        raise usage_error(magic, "a name can't hold tabs, line breaks or control characters.")
    return text.strip()


def identifier(magic: str, name: str) -> str:
    """Give the variable that --save names; raises UsageError for what can't be one."""
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise usage_error(magic, f"--save takes the name of a variable, and '{name}' can't be one.")
    return name
