"""Where the command writes: a terminal, a pipe that may close, an encoding that may lack signs."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TextIO

from jupyterlab_jaxprof.captures.names import TURNING
from jupyterlab_jaxprof.cards import PLAIN, Paper, paper_of

#: For encodings without these signs, which LANG=C or an old terminal may have.
_PLAIN_SIGNS = {
    **dict(zip("▁▂▃▄▅▆▇█", "__--==##", strict=True)),
    **dict(zip("░▒▓▚·", ".:%x'", strict=True)),
    "─": "-", "–": "-", "…": "~", "µ": "u", "×": "x", "→": "->", "✓": "+", "✗": "x", "’": "'",
}  # fmt: skip
_ERRORS = "jaxprof.plain"
#: What a terminal obeys, or turns the direction of a line with; names from elsewhere may hold it.
_COMMANDS = re.compile(rf"[\0-\x08\x0b-\x1f\x7f-\x9f{''.join(sorted(TURNING))}]")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(character, "?") for character in text), error.end


codecs.register_error(_ERRORS, _plain)


class OutputError(OSError):
    """Standard output takes nothing: it is closed, or its disk is full. The message is a sentence."""


@dataclass
class Output:
    """Standard output and error of one run; each is None where the process was started without it.

    Nothing more is written once the reader of a pipe has gone. All else that is in the way of writing raises
    OutputError: what was asked for has not arrived.
    """

    out: TextIO | None
    err: TextIO | None
    paper: Paper
    is_open: bool = True

    @classmethod
    def of_process(cls) -> Output:
        """Take this process's own."""
        for stream in (sys.stdout, sys.stderr):
            # no stream, or one that a test or another program put there
            with suppress(AttributeError, ValueError):
                stream.reconfigure(errors=_ERRORS)  # pyright: ignore[reportAttributeAccessIssue]
        out: TextIO | None = sys.stdout
        return cls(out, sys.stderr, paper_of(out) if out is not None else PLAIN)

    def write(self, text: str) -> None:
        """Write text and end its line."""
        if not self.is_open:
            return
        if self.out is None:
            raise OutputError("Nothing can be written: standard output is closed.")
        self._send(self.out, text + "\n")

    def write_json(self, data: Any) -> None:
        """Write plain values as JSON."""
        text = json.dumps(data, ensure_ascii=not self._is_utf8(), indent=1)
        self.write(_COMMANDS.sub(lambda found: f"\\u{ord(found.group()):04x}", text))

    def complain(self, sentence: str) -> None:
        """Write a sentence to standard error."""
        with suppress(OSError, ValueError):  # then there is nobody to tell
            if self.err is not None:
                self.err.write(_COMMANDS.sub("\ufffd", sentence) + "\n")
                self.err.flush()

    def finish(self) -> None:
        """Write what is held back, so that the interpreter's end has nothing to complain of."""
        if self.out is not None and self.is_open:
            self._send(self.out, "")

    def _send(self, out: TextIO, text: str) -> None:
        try:
            out.write(text)
            out.flush()
        except BrokenPipeError:
            self._close(out)
        except (OSError, ValueError) as error:
            self._close(out)
            why = getattr(error, "strerror", None) or error
            raise OutputError(f"Standard output can't be written: {why}.") from error

    def _close(self, out: TextIO) -> None:
        """Let what is still to be written go nowhere (Python's own advice for SIGPIPE)."""
        self.is_open = False
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())

    def _is_utf8(self) -> bool:
        return (
            self.out is not None
            and (self.out.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
        )
