"""The pipes between the kernel and the program under nsys, and what is read from them."""

from __future__ import annotations

import codecs
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

_PART_BYTES = 65536


@dataclass(frozen=True)
class Descriptors:
    """The program's ends of the pipes, in the order of its arguments."""

    spec: int
    events: int
    life: int
    out: int
    err: int

    def all(self) -> tuple[int, ...]:
        """Give them in that order."""
        return self.spec, self.events, self.life, self.out, self.err


class Lines:
    """Cuts what is read into lines; `on_part` is given it as it comes."""

    def __init__(
        self, on_line: Callable[[str], None], on_part: Callable[[bytes], None] = lambda part: None
    ) -> None:
        self._on_line = on_line
        self._on_part = on_part
        self._rest = b""

    def take(self, part: bytes) -> None:
        """Take what was read; nothing at the end."""
        self._on_part(part)
        *lines, self._rest = (self._rest + part).split(b"\n")
        if not part and self._rest:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))


class Stream:
    """Passes text on as it comes, in whole characters."""

    def __init__(self, name: str, write: Callable[[str, str], None]) -> None:
        self._name = name
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, part: bytes) -> None:
        """Take what was read; nothing at the end."""
        text = self._decoder.decode(part, final=not part)
        if text:
            self._write(self._name, text)


class Pipes:
    """The pipes, and the file with what the program shall do."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._file = _private_file()  # it holds the variables that shall be nowhere
        self._file.write(json.dumps(spec).encode())
        self._file.flush()
        self._file.seek(0)
        self.events, events = os.pipe()
        life, self._life = os.pipe()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        for descriptor in (self.events, self.out, self.err):
            os.set_blocking(descriptor, False)
        self.theirs = Descriptors(self._file.fileno(), events, life, out, err)
        self._open = {self.events, self._life, self.out, self.err}
        self._open_theirs = {events, life, out, err}

    def close_theirs(self) -> None:
        """Close the ends that the program has now."""
        self._file.close()
        for descriptor in self._open_theirs:
            os.close(descriptor)
        self._open_theirs = set[int]()

    def acknowledge(self) -> None:
        """Let the program go on, which waits until what it displayed was taken."""
        with suppress(OSError):  # it has ended
            os.write(self._life, b".")

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for descriptor in self._open:
            os.close(descriptor)


def read(descriptor: int) -> bytes | None:
    """Read what there is: nothing at the end, None where there is nothing yet."""
    try:
        return os.read(descriptor, _PART_BYTES)
    except BlockingIOError:
        return None


def drain(descriptor: int, stream: Stream) -> None:
    """Pass on all that has been written so far."""
    while part := read(descriptor):
        stream.take(part)


def _private_file() -> IO[bytes]:
    """Open a file that has no name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("jaxprof"), "w+b")
    return tempfile.TemporaryFile()
