"""Transfers between host and device that the user's code asks for without saying so, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Literal

from jupyterlab_jaxprof.timing.places import Places
from jupyterlab_jaxprof.timing.reads import ReadObserver
from jupyterlab_jaxprof.timing.writes import WriteObserver


@dataclass
class Transfer:
    """The transfers of one kind at one line.

    `way` is how a read is written in the code (float, item, print, ...), "argument" for a write. `size_bytes`
    adds up what JAX tells, and is None where it tells nothing; of `unsized` ones it does not (of a write it
    does while the call that writes is compiled, and no more in calls that it knows already). `waited_ns`
    (reads alone) is the time from asking for the value to having it, in which the work enqueued before is
    waited for. `line` is None outside of the user's code.
    """

    direction: Literal["read", "write"]
    way: str
    line: int | None
    file: str | None
    count: int = 0
    size_bytes: int | None = None
    unsized: int = 0
    waited_ns: int = 0

    def add(self, size_bytes: int | None, waited_ns: int = 0) -> None:
        """Count one more."""
        self.count += 1
        if size_bytes is None:
            self.unsized += 1
        else:
            self.size_bytes = (self.size_bytes or 0) + size_bytes
        self.waited_ns += waited_ns

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "direction": self.direction,
            "way": self.way,
            "line": self.line,
            "file": self.file,
            "count": self.count,
            "bytes": self.size_bytes,
            "unsized": self.unsized,
            "waited_ms": self.waited_ns / 1e6,
        }


class TransferRecorder:
    """Records the transfers while it is open; afterwards `transfers` has them, the longest waits first.

    `codes` is the user's code, whose lines writes are attributed to.
    """

    def __init__(self, places: Places, codes: Sequence[CodeType]) -> None:
        self._places = places
        self._found: dict[tuple[str, str, int | None], Transfer] = {}
        self._writes = WriteObserver(codes)
        self._stack = ExitStack()

    def __enter__(self) -> TransferRecorder:
        with ExitStack() as stack:
            stack.enter_context(self._writes)
            stack.enter_context(ReadObserver(self._on_read))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for write in self._writes.writes:
            self._at("write", "argument", write.line, None).add(write.size_bytes)

    @property
    def transfers(self) -> list[Transfer]:
        """What was found."""
        return sorted(
            self._found.values(), key=lambda found: (-found.waited_ns, -found.count, found.line or 0)
        )

    @property
    def notices(self) -> list[str]:
        """Sentences about what could not be seen."""
        return self._writes.notices

    def _on_read(self, frame: FrameType, way: str, size_bytes: int, waited_ns: int) -> None:
        users = self._places.find_frame(frame)
        line = users.f_lineno if users is not None else None
        found = self._found.get(("read", way, line))
        if found is None:
            found = self._at("read", way, line, users.f_code.co_filename if users is not None else None)
        found.add(size_bytes, waited_ns)

    def _at(
        self, direction: Literal["read", "write"], way: str, line: int | None, file: str | None
    ) -> Transfer:
        key = (direction, way, line)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Transfer(direction, way, line, file)
        return found
