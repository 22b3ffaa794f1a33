"""Where secrets stand in the texts of a report: environments of processes, command lines, addresses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from jupyterlab_jaxprof.environment.secrets import is_secret, is_telling

from .messages import Texts, is_text, varint

#: What is in the name of a secret; whether the whole name is one's is for is_secret to tell.
_HINTS = (
    *(b"TOKEN", b"SECRET", b"PASS", b"CREDENTIAL", b"KEY", b"PRIVATE"),
    *(b"COOKIE", b"AUTH", b"PWD", b"DSN", b"SAS"),
)
_BEFORE = re.compile(rb"[\w.-]*\Z")
_AFTER = re.compile(rb"[\w.-]*")
_NAME = re.compile(rb"(?:--?)?[\w.-]+")
_LONGEST_NAME = 128
_IN_ADDRESS = re.compile(rb"://[^/\s:@\0]{1,64}:([^/\s@\0]{1,256})@")
_LONGEST = 1 << 17
_BYTES = 2
_NEXT_FIELD = 1 << 3


@dataclass(frozen=True)
class _Secret:
    name: str
    start: int
    value: bytes


@dataclass
class Found:
    """The secrets of a file: their names, and the values that are known wherever they stand."""

    names: set[str] = field(default_factory=lambda: set())
    values: set[bytes] = field(default_factory=lambda: set())

    def take(self, name: str, value: bytes) -> None:
        """Remember a secret."""
        self.names.add(name)
        text = value.decode("utf-8", "replace")
        if is_telling(text):
            self.values.add(value)


def blanked(plain: bytes, found: Found, keep: Collection[str] = ()) -> bytes:
    """Give the text with a `*` for each byte of a secret; what is found so is remembered."""
    spans = list(_spans(plain, found, keep))
    for value in found.values:
        start = plain.find(value)
        while start >= 0:
            spans.append((start, start + len(value)))
            start = plain.find(value, start + len(value))
    if not spans:
        return plain
    changed = bytearray(plain)
    for start, end in spans:
        changed[start:end] = b"*" * (end - start)
    return bytes(changed)


def _spans(plain: bytes, found: Found, keep: Collection[str]) -> Iterator[tuple[int, int]]:
    texts = Texts(plain)
    for hint in _hints(plain):
        start, end = _word(plain, hint)
        secret = _assigned(plain, texts, start, end) if plain[end : end + 1] == b"=" else None
        secret = secret or _named(plain, start, hint)
        if secret is not None and secret.name not in keep and secret.value.strip(b"*"):
            found.take(secret.name, secret.value)
            yield secret.start, secret.start + len(secret.value)
    for match in _IN_ADDRESS.finditer(plain):
        if match.group(1).strip(b"*"):
            found.take("a password in an address", match.group(1))
            yield match.span(1)


def _hints(plain: bytes) -> Iterator[tuple[int, int]]:
    upper = plain.upper()
    for hint in _HINTS:
        start = upper.find(hint)
        while start >= 0:
            yield start, start + len(hint)
            start = upper.find(hint, start + 1)


def _word(plain: bytes, hint: tuple[int, int]) -> tuple[int, int]:
    """Give where the word around a hint stands; bytes of no text beside it may look like a part of it."""
    before = _BEFORE.search(plain, max(0, hint[0] - _LONGEST_NAME), hint[0])
    after = _AFTER.match(plain, hint[1], hint[1] + _LONGEST_NAME)
    assert before is not None
    assert after is not None
    return before.start(), after.end()


def _assigned(plain: bytes, texts: Texts, start: int, end: int) -> _Secret | None:
    """Give the value of `NAME=value` in an environment, or of `--name=value` in a command line."""
    value = end + 1
    closing = plain.find(b"\0", value, value + _LONGEST)
    if start > 0 and plain[start - 1] == 0 and closing >= 0 and is_text(plain[value:closing]):
        return _secret(plain[start:end], value, plain[value:closing])
    text = texts.at(end)
    if text is None:
        return None
    first = plain.rfind(b"\0", text[0], end) + 1 or text[0]
    name = plain[first:end]
    if not _NAME.fullmatch(name):
        return None
    closing = plain.find(b"\0", value, text[1])
    return _secret(name, value, plain[value : closing if closing >= 0 else text[1]])


def _named(plain: bytes, start: int, hint: tuple[int, int]) -> _Secret | None:
    """Give the text after one that is a name: in a table of variables, or after `--token`."""
    for first in range(max(2, start), hint[0] + 1):
        end = first + plain[first - 1]  # the length of a text is the byte before
        name = plain[first:end]
        if not hint[1] <= end < len(plain) or not _NAME.fullmatch(name):
            continue
        tag, before = plain[end], plain[first - 2]
        length, value = varint(plain, end + 1, len(plain))
        follows = tag == before if name.startswith(b"-") else tag == before + _NEXT_FIELD
        if tag & 7 == _BYTES and follows and 0 < length <= len(plain) - value:
            content = plain[value : value + length]
            if is_text(content):
                return _secret(name, value, content)
    return None


def _secret(name: bytes, start: int, value: bytes) -> _Secret | None:
    text = name.decode("ascii", "replace")
    return _Secret(text.lstrip("-"), start, value) if is_secret(text) else None
