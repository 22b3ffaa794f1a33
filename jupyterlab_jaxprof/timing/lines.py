"""Following the user's code line by line: a call before each of its lines, and for no other code's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from jupyterlab_jaxprof.timing.monitoring import free_tool

#: Called with the code and the number of the line that is about to run.
OnLine = Callable[[CodeType, int], object]


def all_codes(codes: Sequence[CodeType]) -> Iterator[CodeType]:
    """Give code objects and those of the functions that are defined in them."""
    for code in codes:
        yield code
        yield from all_codes([inner for inner in code.co_consts if isinstance(inner, CodeType)])


class LineFollower:
    """Follows the lines of some code objects while it is open.

    From Python 3.12 on by `sys.monitoring`, at some 0.5 us a line. On 3.11 by `sys.settrace`, which costs
    each call of any Python function, and not at all where a debugger has set that: `follows` tells then.
    """

    def __init__(self, codes: Sequence[CodeType], on_line: OnLine) -> None:
        self._codes = set(all_codes(codes))
        self._ids = {id(code) for code in self._codes}  # a code object's own hash takes microseconds
        self._on_line = on_line
        self._tool: int | None = None
        self.follows = False

    def __enter__(self) -> LineFollower:
        self._tool = free_tool()
        self.follows = self._tool is not None or (not hasattr(sys, "monitoring") and sys.gettrace() is None)
        if self._tool is not None:
            monitoring: Any = sys.monitoring  # pyright: ignore[reportAttributeAccessIssue] - 3.12 and later
            monitoring.use_tool_id(self._tool, "jupyterlab-jaxprof")
            monitoring.register_callback(self._tool, monitoring.events.LINE, self._on_line)
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, monitoring.events.LINE)
        elif self.follows:
            sys.settrace(self._traced)
        return self

    def __exit__(self, *_: object) -> None:
        if self._tool is not None:
            monitoring: Any = sys.monitoring  # pyright: ignore[reportAttributeAccessIssue]
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, 0)
            monitoring.register_callback(self._tool, monitoring.events.LINE, None)
            monitoring.free_tool_id(self._tool)
        elif self.follows and sys.gettrace() == self._traced:
            sys.settrace(None)

    def _traced(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._traced_line if id(frame.f_code) in self._ids else None

    def _traced_line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self._on_line(frame.f_code, frame.f_lineno)
        return self._traced_line


def pause() -> Any:
    """Stop following by `sys.settrace`, and give what it goes on with; None where it isn't ours."""
    follower = sys.gettrace()
    if follower is None or type(getattr(follower, "__self__", None)) is not LineFollower:
        return None
    sys.settrace(None)
    return follower
