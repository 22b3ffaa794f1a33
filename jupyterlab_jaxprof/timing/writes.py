"""Implicit writes to the device: NumPy arrays and Python numbers that the host passes into JAX's operations.

They happen in C++, out of Python's sight. JAX's transfer guard at the level "log" writes a line to file
descriptor 2 for each. That descriptor leads to a file meanwhile; how far it has been written when the next
line of the user's code begins tells which line each transfer belongs to. Everything else that was written
there is passed on at the end.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import CodeType
from typing import Any

from jupyterlab_jaxprof.timing.lines import LineFollower

_LOGGED = re.compile(
    rb"^[^\n]*host-to-device transfer: ?(?:aval=ShapedArray\((\w+)\[([\d,]*)\][^\n]*)?[^\n]*\n+", re.MULTILINE
)
_GUARD = "jax_transfer_guard_host_to_device"


@dataclass(frozen=True)
class Write:
    """An implicit transfer to the device, at a line of the user's code; its bytes where JAX tells them."""

    line: int | None
    size_bytes: int | None


class WriteObserver:
    """Observes the implicit writes of this thread while it is open; afterwards `writes` has them.

    `notices` says what could not be seen: nothing can where the user has set a stricter guard, where file
    descriptor 2 is closed, or where the C++ log is silenced (TF_CPP_MIN_LOG_LEVEL).
    """

    def __init__(self, codes: Sequence[CodeType]) -> None:
        self.writes: list[Write] = []
        self.notices: list[str] = []
        self._codes = codes
        self._marks: list[tuple[int, int | None]] = []
        self._stack = ExitStack()
        self._log = self._original = -1

    def __enter__(self) -> WriteObserver:
        import jax

        if getattr(jax.config, _GUARD, None) not in (None, "allow"):
            self.notices.append(
                "What is written to the device was not followed: your own transfer guard "
                f"({_GUARD}) is in force, and is left alone."
            )
            return self
        try:
            self._redirect()
        except (OSError, ValueError) as error:
            self._close()
            self.notices.append(f"What is written to the device was not followed: {error}.")
            return self
        probe = _probe()
        self._stack.enter_context(jax.transfer_guard_host_to_device("log"))
        probe()
        if self._position() == 0:
            self.notices.append(
                "What is written to the device could not be followed, since JAX's C++ log is silent. Set "
                "TF_CPP_MIN_LOG_LEVEL=0 before the kernel starts."
            )
        self._on_line = _marker(self._log, self._position(), self._marks)
        lines = self._stack.enter_context(LineFollower(self._codes, self._on_line))
        if not lines.follows:
            self.notices.append(
                "The lines that write to the device are not told: a debugger or another tool follows them."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._log < 0:
            return
        self._on_line(None, None)
        try:
            sys.stderr.flush()
        finally:
            os.dup2(self._original, 2)
        content = os.pread(self._log, self._position(), 0)
        self._close()
        start = self._marks[0][0]
        rest = _LOGGED.sub(b"", content[:start])
        for end, line in self._marks[1:]:
            part, start = content[start:end], end
            self.writes += [Write(line, _size_bytes(found)) for found in _LOGGED.finditer(part)]
            rest += _LOGGED.sub(b"", part)
        if rest:
            os.write(2, rest)

    def _redirect(self) -> None:
        sys.stderr.flush()
        self._log, path = tempfile.mkstemp(prefix="jaxprof-transfers-")
        os.unlink(path)  # noqa: PTH108 - the open descriptor is all that's needed
        self._original = os.dup(2)
        os.dup2(self._log, 2)

    def _close(self) -> None:
        for descriptor in (self._log, self._original):
            if descriptor >= 0:
                os.close(descriptor)
        self._log = self._original = -1

    def _position(self) -> int:
        return os.lseek(self._log, 0, os.SEEK_CUR)


def _marker(
    log: int, marked: int, marks: list[tuple[int, int | None]]
) -> Callable[[CodeType | None, int | None], None]:
    """Give what is called before each line: it marks how far the line before has written.

    A closure, for it runs at every line of a measured cell: it takes half the time of a method.
    """
    marks.append((marked, None))
    current: int | None = None
    lseek = os.lseek

    def mark(code: CodeType | None, line: int | None) -> None:
        nonlocal current, marked
        position = lseek(log, 0, 1)  # SEEK_CUR
        if position != marked:
            marked = position
            marks.append((position, current))
        current = line

    return mark


def _size_bytes(logged: re.Match[bytes]) -> int | None:
    if logged[1] is None:
        return None
    import numpy as np

    try:
        size_bytes = np.dtype(logged[1].decode()).itemsize
    except TypeError:  # a dtype of JAX's own
        return None
    for length in logged[2].split(b","):
        size_bytes *= int(length) if length else 1
    return size_bytes


@functools.cache
def _probe() -> Callable[[], Any]:
    """Make a call that writes a number to the device, as a user's cell does."""
    import jax
    import numpy as np

    def jaxprof_probe(x: Any) -> Any:
        return x

    number = np.zeros((), np.float32)
    with jax.transfer_guard("allow"), jax.log_compiles(False), jax.disable_jit(False):
        compiled = jax.jit(jaxprof_probe).lower(number).compile()

    def call() -> Any:
        with jax.disable_jit(False):
            return compiled(number)

    return call
