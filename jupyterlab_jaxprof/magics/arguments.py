"""Reading a magic's line: what all magics have in common. Whatever is wrong with it is said in a sentence."""

from __future__ import annotations

import argparse
import keyword
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NoReturn

from IPython.core.error import UsageError

#: What to say last in a usage error; of other magics that nothing has run.
_NOTHING_HAPPENED = {
    "%jaxtrace start": "No trace was started.",
    "%jaxtrace stop": "Nothing was stopped.",
    "%jaxtrace": "No trace was taken.",
    "%nsys start": "Nothing was begun.",
    "%nsys stop": "Nothing was stopped.",
    "%jaxprof install-nsys-kernel": "Nothing was written.",
    "%jaxmem": "No memory was looked at.",
    "%%jaxmem": "No memory was looked at.",
    "%jaxmem --watch": "No other one was begun.",
    "%jaxmem --stop": "Nothing was stopped.",
}


class Complaint(str):
    """The text of a usage error of ours: `sentence` is what is wrong, without whose it is and what has run.

    `conflict`: each option is right by itself, and they don't go together, or not with this kind of line.
    (IPython hides the traceback of `UsageError` only, and of no class derived from it.)
    """

    sentence: str = ""
    conflict: bool = False


def usage_error(magic: str, sentence: str, *, conflict: bool = False) -> UsageError:
    """Make the error that IPython prints without a traceback: whose it is, what is wrong, what has run."""
    complaint = Complaint(f"{magic}: {sentence} {_NOTHING_HAPPENED.get(magic, 'Nothing has run.')}")
    complaint.sentence, complaint.conflict = sentence, conflict
    return UsageError(complaint)


def complaint_of(error: UsageError) -> Complaint:
    """Give what an error says; of one that is not ours its whole text."""
    text: object = error.args[0] if error.args else ""
    if isinstance(text, Complaint):
        return text
    complaint = Complaint(text)
    complaint.sentence = str(text)
    return complaint


class Switch(argparse.Action):
    """`--perfetto` and `--no-perfetto` (or `--no-card` and `--card`): the one given last counts.

    So a line can undo what the settings' default options say.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        (option,) = option_strings
        opposite = f"--{option[5:]}" if option.startswith("--no-") else f"--no-{option[2:]}"
        super().__init__([option, opposite], dest, nargs=0, default=False, **settings)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Note which of the two was given."""
        setattr(namespace, self.dest, option_string == self.option_strings[0])


#: What an option or a word takes, for completion: names of captures, of timings, of variables, of files.
Values = Literal["", "captures", "timings", "variables", "files"]


class MagicParser(argparse.ArgumentParser):
    """Reads `[NAME] [options]` after a magic, whose name with the percent signs is `prog`.

    Each option is declared here once, with a short text for completion; HELP has the whole story.
    """

    def __init__(self, magic: str, *, name_is: Values = "") -> None:
        super().__init__(prog=magic, add_help=False, allow_abbrev=False)
        self.takes: dict[str, Values] = {"name": name_is}
        #: Options that this kind of line refuses, with a sentence of its own.
        self.refused: frozenset[str] = frozenset()
        self.add_argument("name", nargs="?")
        self.add_argument("--help", action="store_true")  # asks_for_help() answers it

    def option(self, *names: str, text: str, values: Values = "", **settings: Any) -> None:
        """Declare an option (or a further word): what completion tells of it, and what it takes."""
        action = self.add_argument(*names, help=text, **settings)
        self.takes[action.dest] = values

    def switch(self, name: str, *, text: str) -> None:
        """Declare an option without a value, and its opposite."""
        self.add_argument(name, action=Switch, help=text)

    def variable_and_card(self, text: str) -> None:
        """Declare --save and --no-card."""
        self.option("--save", type=filled("the name of a variable"), text=text, values="variables")
        self.switch("--no-card", text="show no card")

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, where argparse would end the process."""
        message = message.removeprefix("argument ")
        raise usage_error(self.prog, f"{message}. {self.prog.split()[0]}? explains it.")

    @property
    def actions(self) -> list[argparse.Action]:
        """Give what it reads."""
        return self._actions

    def action_of(self, option: str) -> argparse.Action | None:
        """Give what reads an option; None for an unknown one."""
        return next((action for action in self._actions if option in action.option_strings), None)

    def options(self) -> list[str]:
        """Give every option that this kind of line takes, in all its spellings."""
        return [
            option
            for action in self._actions
            if not self.refused.intersection(action.option_strings)
            for option in action.option_strings
        ]

    def declared(self) -> list[str]:
        """Give every option as it was declared, without the opposites of switches."""
        return [action.option_strings[0] for action in self._actions if action.option_strings]


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


def written_words(magic: str, line: str) -> Iterator[str]:
    """Split at blanks, except within quotes and brackets; the quotes stay where they are."""
    word, depth, quote = "", 0, ""
    for character in line:
        if quote:
            quote = "" if character == quote and not word.endswith("\\") else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character.isspace() and depth <= 0:
            if word:
                yield word
            word = ""
            continue
        word += character
    if quote:
        raise usage_error(magic, f"a quote is opened and never closed in {line.strip()}.")
    if word:
        yield word


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
        options = {option.lstrip("-"): option for option in parser.options()}
        close = get_close_matches(unknown[0].lstrip("-"), options, n=1, cutoff=0.6)
        meant = f" Did you mean {options[close[0]]}?" if close else ""
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
