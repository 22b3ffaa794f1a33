"""Where the command writes: a terminal, a pipe that may close, an encoding that may lack signs."""

from __future__ import annotations

import codecs
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TextIO

from jupyterlab_jaxprof.cards import Paper, paper_of

#: For encodings without these signs, which LANG=C or an old terminal may have.
_PLAIN_SIGNS = {
    **dict(zip("▁▂▃▄▅▆▇█", "__--==##", strict=True)),
    **dict(zip("░▒▓▚·", ".:%x'", strict=True)),
    "─": "-", "–": "-", "…": "~", "µ": "u", "×": "x", "→": "->", "✓": "+", "✗": "x", "’": "'",
}  # fmt: skip
_ERRORS = "jaxprof.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(character, "?") for character in text), error.end


codecs.register_error(_ERRORS, _plain)


@dataclass
class Output:
    """Standard output and error of one run. Nothing more is written once the reader of a pipe has gone."""

    out: TextIO
    err: TextIO
    paper: Paper
    is_open: bool = True

    @classmethod
    def of_process(cls) -> Output:
        """Take this process's own."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):  # a stream that a test or another program put there
                stream.reconfigure(errors=_ERRORS)  # pyright: ignore[reportAttributeAccessIssue]
        return cls(sys.stdout, sys.stderr, paper_of(sys.stdout))

    def write(self, text: str) -> None:
        """Write text and end its line."""
        if not self.is_open:
            return
        try:
            self.out.write(text + "\n")
            self.out.flush()
        except BrokenPipeError:
            self._close()

    def write_json(self, data: Any) -> None:
        """Write plain values as JSON."""
        self.write(json.dumps(data, ensure_ascii=not self._is_utf8(), indent=1))

    def complain(self, sentence: str) -> None:
        """Write a sentence to standard error."""
        with suppress(BrokenPipeError):
            self.err.write(sentence + "\n")
            self.err.flush()

    def finish(self) -> None:
        """Write what is held back, so that the interpreter's end has nothing to complain of."""
        try:
            self.out.flush()
        except BrokenPipeError:
            self._close()

    def _close(self) -> None:
        """Let what is still to be written go nowhere (Python's own advice for SIGPIPE)."""
        self.is_open = False
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())

    def _is_utf8(self) -> bool:
        return (self.out.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
