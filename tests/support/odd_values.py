"""Strategies for what is odd: texts, numbers and JSON values that have broken programs before."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

#: Texts that mean something to a shell, a path, HTML, a format, a log or a terminal.
TELLING = (
    "", " ", "a", "0", "-1", "--", "-", "~", "~nobody", ".", "..", "../..", "/", "//", "a/b", "a\\b",
    "C:\\x", "{}", "{0}", "%s", "%(x)s", "%", "%%", "$HOME", "${x}", "$(id)", "`id`", "'", '"', "''", '"""',
    "\\", "\\n", "\n", "\r\n", "\t", "\0", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\u202e",
    "\ufeff", "\u200b", "é", "e\u0301", "ß", "İ",
    "ı", "日本語", "🙂", "👩\u200d👩\u200d👧", "\U0010ffff", "\ud800",
    "\udfff", "\udc80", "٣", "²", "½", "１", "NaN", "nan", "inf", "-inf", "1e999", "1_000", "0x10", "1e3",
    "None", "null", "true", "<img onerror=alert(1)>", "</script>", "&lt;", "]]>", "javascript:alert(1)",
    "con", "x" * 300, "(" * 60, "[" * 60, "a=" * 40, "," * 40, "9" * 40,
)  # fmt: skip

NUMBERS = (
    0, 1, -1, 2, 7, 127, 128, 255, 256, 1000, 65535, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32,
    (1 << 53) - 1, 1 << 53, (1 << 53) + 1, 10**15, 10**18, (1 << 62), (1 << 63) - 1, 1 << 63, -(1 << 63),
    (1 << 64) - 1, -(1 << 53), -(1 << 62),
)  # fmt: skip


def pool(make: Callable[[Random], T], size: int = 4000) -> st.SearchStrategy[T]:
    """Choose among many values made beforehand: hypothesis draws once for each, and not twenty times."""
    chance = Random(1)
    return st.sampled_from([make(chance) for _ in range(size)])


def odd_text(chance: Random) -> str:
    """Make a text: a telling one, or a few characters of any kind."""
    if chance.random() < 0.6:
        return chance.choice(TELLING)
    return "".join(
        chr(chance.choice((chance.randrange(32, 127), chance.randrange(0x11_0000)))) for _ in range(5)
    )


def odd_number(chance: Random) -> float:
    """Make a number: telling, small, huge, or not finite."""
    if chance.random() < 0.5:
        return chance.choice(NUMBERS)
    return chance.choice([0.0, -0.0, 1.5, -3.0, 5e-324, 1e300, -1e300, 1e15, math.inf, -math.inf, math.nan])


def odd_json(chance: Random, depth: int = 3) -> Any:
    """Make a value of JSON."""
    kind = chance.randrange(8 if depth else 5)
    if kind < 2:
        return odd_text(chance)
    if kind < 4:
        return odd_number(chance)
    if kind == 4:
        return chance.choice([None, True, False])
    if kind == 5:
        return [odd_json(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return {odd_text(chance): odd_json(chance, depth - 1) for _ in range(chance.randrange(4))}
    return [odd_json(chance, 0)] * chance.choice([1, 2, 100])


def odd_change(chance: Random) -> tuple[int, int, Any]:
    """Make a change for `changed_json`: which value, how, and the new one."""
    return chance.randrange(1 << 62), chance.choice([0, 0, 0, 0, 1, 2, 3]), odd_json(chance)


def changed_json(value: Any, change: tuple[int, int, Any]) -> None:
    """Change one value somewhere below `value`, an object: replace it, delete it, add one, repeat a list."""
    way, how, new = change
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        way, pick = divmod(way, len(keys))
        key = keys[pick]
        inner = value[key]
        way, deeper = divmod(way, 4)
        if isinstance(inner, (dict, list)) and inner and deeper:
            value = inner
            continue
        break
    if how == 1:
        del value[key]
    elif how == 2 and isinstance(value, dict):
        value[str(new)[:20]] = new
    elif how == 3 and isinstance(value, list):
        value[:] = value * 50
    else:
        value[key] = new


def mutated(content: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Change bytes: for each (place, kind, bytes) overwrite, insert, cut out, cut short or repeat there."""
    body = bytearray(content)
    for place, kind, new in changes:
        at = place % (len(body) + 1)
        if kind == 0:
            body[at : at + len(new)] = new
        elif kind == 1:
            body[at:at] = new
        elif kind == 2:
            del body[at : at + 1 + len(new) * 7]
        elif kind == 3:
            del body[at:]
        else:
            body[at:at] = body[at : at + 1 + len(new) * 16]
    return bytes(body)


def byte_changes(most: int = 6, *, in_place: bool = False) -> st.SearchStrategy[list[tuple[int, int, bytes]]]:
    """What `mutated` takes; rarely a file that is cut short, for that alone hides all else.

    `in_place` is for files of pages, in which nothing can move.
    """
    kinds = st.sampled_from([0] * 9 + [3] if in_place else [0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4])
    return st.lists(st.tuples(st.integers(0, 1 << 20), kinds, st.binary(max_size=6)), max_size=most)
