"""Completion behind a magic: its commands and options, what these take, and names of captures.

It stands on IPython's own matchers, so that it works wherever code is completed. What is completed comes from
the parsers that read the magics' lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from .arguments import MagicParser, Values

IDENTIFIER = "jupyterlab_jaxprof"
_LINE = re.compile(r"\s*(?:[^\s%=][^%=]*=\s*)?(%{1,2})(\w+)[ \t]+(.*)", re.DOTALL)
#: A word, or the one that is begun: a quote that is still open keeps its blanks.
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+(?:"[^"]*|'[^']*)?|"[^"]*|'[^']*""")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_CAPTURES = 200
_TIMINGS = "time"


@dataclass(frozen=True)
class Suggestion:
    """What may stand at the cursor, and a few words about it."""

    text: str
    about: str


@dataclass(frozen=True)
class Place:
    """What stands before the cursor: the magic with its percent signs, whole words, and the word begun."""

    magic: str
    words: Sequence[str]
    begun: str


def add(shell: InteractiveShell, modules: Callable[[str, str], str]) -> Callable[..., object]:
    """Complete behind the magics of a shell; `modules` gives a magic's module, empty for others' magics.

    It is asked with the percent signs and the name. Gives what `remove` takes.
    """
    from IPython.core.completer import context_matcher

    @context_matcher(identifier=IDENTIFIER)
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        place = place_of(context.text_until_cursor)
        module = modules(*_parted(place.magic)) if place is not None else ""
        if place is None or not module:
            return {"completions": []}
        return _result(place, list(suggestions(shell, place, module)))

    _matchers(shell).append(matcher)
    return matcher


def remove(shell: InteractiveShell, matcher: Callable[..., object]) -> None:
    """Take a matcher out that `add` gave."""
    if matcher in _matchers(shell):
        _matchers(shell).remove(matcher)


def _matchers(shell: InteractiveShell) -> list[Any]:
    """The shell's list of matchers; a shell without a completer has none."""
    return getattr(shell.Completer, "custom_matchers", [])


def _parted(magic: str) -> tuple[str, str]:
    name = magic.lstrip("%")
    return magic[: -len(name)], name


def place_of(before: str) -> Place | None:
    """Read the line up to the cursor; None where no magic's arguments stand there."""
    match = _LINE.match(before)
    if match is None:
        return None
    signs, name, rest = match.groups()
    words = list(_WORD.finditer(rest))
    begun = words.pop()[0] if words and words[-1].end() == len(rest) else ""
    return Place(signs + name, [word[0] for word in words], begun)


def _result(place: Place, found: Sequence[Suggestion]) -> SimpleMatcherResult:
    from IPython.core.completer import SimpleCompletion

    # Front ends show the type beside the text: a terminal, and JupyterLab, where it would wrap at blanks.
    completions = [SimpleCompletion(one.text, type=one.about.replace(" ", _NO_BREAK)) for one in found]
    return {
        "completions": completions,
        "matched_fragment": place.begun,
        "suppress": bool(completions),
        "ordered": True,
    }


def suggestions(shell: InteractiveShell, place: Place, module: str) -> Iterator[Suggestion]:
    """Give what fits at the place, in the order to show it."""
    arguments = import_module(f"{module}_arguments")
    commands: Mapping[str, str] = getattr(arguments, "COMMANDS", {}) if place.magic[:2] != "%%" else {}
    magic, words = place.magic, list(place.words)
    if not words:
        yield from _fitting(place.begun, commands.items())
    elif words[0] in commands:
        magic = f"{magic} {words.pop(0)}"
    elif commands and module.endswith("jaxprof"):
        return
    parser: MagicParser = arguments.parser(magic)
    option, equals, value = place.begun.partition("=")
    if equals and option in parser.options():
        yield from _values(shell, parser, option, value, f"{option}=")
    elif words and (action := _awaiting(parser, words[-1])):
        yield from _values(shell, parser, action, place.begun, "")
    elif place.begun.startswith("-"):
        yield from _options(parser, place.begun, words)
    else:
        positional = "name" if not words or words[-1].startswith("-") else "after"
        if magic != "%jaxprof":
            yield from _named(shell, parser.takes.get(positional, ""), place.begun, "")
        if not place.begun:
            yield from _options(parser, "", words)


def _awaiting(parser: MagicParser, word: str) -> str:
    """Give the word if it is an option that takes a value, which stands next; else empty."""
    action = parser.action_of(word)
    return word if action is not None and action.nargs is None else ""


def _options(parser: MagicParser, begun: str, words: Sequence[str]) -> Iterator[Suggestion]:
    """Give the options that are not on the line yet; the opposite of a switch once it is begun."""
    for action in sorted(parser.actions, key=lambda action: "--help" in action.option_strings):
        given = not set(action.option_strings).isdisjoint(words)
        shown = action.option_strings[: 2 if len(begun) > 2 else 1]
        if given or parser.refused.intersection(action.option_strings):
            continue
        yield from _fitting(begun, [(option, action.help or "show the help") for option in shown])


def _values(
    shell: InteractiveShell, parser: MagicParser, option: str, begun: str, before: str
) -> Iterator[Suggestion]:
    """Give what an option takes; `before` stands before it in the same word."""
    action = parser.action_of(option)
    if action is None:
        return
    if action.choices is not None:
        found = [(f"{before}{choice}", action.help or "") for choice in action.choices]
        yield from _fitting(before + begun, found)
    else:
        yield from _named(shell, parser.takes.get(action.dest, ""), begun, before)


def _named(shell: InteractiveShell, values: Values, begun: str, before: str) -> Iterator[Suggestion]:
    """Give names of captures or variables; of a list with commas the last one is completed."""
    quote = begun[:1] if begun[:1] in ("'", '"') else ""
    first, comma, last = begun.removeprefix(quote).rpartition(",")
    if values in ("captures", "timings"):
        names = _capture_names(_TIMINGS if values == "timings" else None)
    elif values == "variables":
        names = {name: type(value).__name__ for name, value in _variables(shell).items()}
    else:
        return
    if values == "captures":  # one alone, and its name may hold a comma
        first, comma, last = "", "", begun.removeprefix(quote)
    for name, about in names.items():
        if name.startswith(last):
            whole = f"{first}{comma}{name}"
            yield Suggestion(before + (whole if whole.isidentifier() else _quoted(whole, quote)), about)


def _quoted(text: str, quote: str) -> str:
    """Write a text as one word of the line, in the quotes that it was begun with."""
    if not quote and re.fullmatch(r"[\w.,~+@%/:-]+", text):
        return text
    quote = quote or ("'" if '"' in text else '"')
    if quote == "'":
        return "'" + text.replace("'", "'\"'\"'") + "'"  # a shell's words know no other way
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _variables(shell: InteractiveShell) -> dict[str, object]:
    return {
        name: value
        for name, value in shell.user_ns.items()
        if not name.startswith("_") and name not in shell.user_ns_hidden
    }


def _capture_names(kind: str | None) -> dict[str, str]:
    """Give the names of the newest captures, and of what kind and when they are."""
    from jupyterlab_jaxprof.captures import Store

    found: dict[str, str] = {}
    for row in Store.default().list(limit=_CAPTURES, kind=kind).rows:
        if row.record is not None:
            when = row.record.created[:16].replace("T", " ")
            found.setdefault(row.name, f"{row.kind}, {when} UTC")
    return found


def _fitting(begun: str, found: Iterable[tuple[str, str]]) -> Iterator[Suggestion]:
    for text, about in found:
        if text.startswith(begun):
            yield Suggestion(text, about)
