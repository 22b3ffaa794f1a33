"""A comment behind a magic's line, as Python has them; IPython gives it to the magic with the rest."""

from __future__ import annotations


def without_comment(line: str) -> str:
    """Leave out a `#` with a blank (or nothing) around it, and what follows, but for one within quotes.

    `run #1` and `color=#fff` stay what they are.
    """
    quote = ""
    escaped = False
    for index, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and not (line[index - 1 : index] + line[index + 1 : index + 2]).strip():
            return line[:index].rstrip()
    return line
