"""The place of a magic's body in the cell that the user wrote."""

from __future__ import annotations

import ast
import linecache
import sys
from dataclasses import dataclass
from pathlib import PurePath
from types import FrameType
from typing import TYPE_CHECKING

from jupyterlab_jaxprof.cell.notebook import line_was_added

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(frozen=True)
class Place:
    """Where a body stands: the file name of its cell, and the cell's text above it.

    A line that the front end added above the cell for one run is none of the cell's text.
    """

    filename: str
    head: str

    @property
    def commented_head(self) -> str:
        """The head as Python: its magics as comments, and no blank line at the top for IPython to drop."""
        lines = self.head.splitlines(keepends=True)
        return "".join(line if line.startswith("#") else f"#{line}" for line in lines)

    @property
    def told(self) -> dict[str, str | int]:
        """Give what a record keeps: the file name's last part, and the body's first line in that file."""
        return {"file": PurePath(self.filename).name, "line": self.head.count("\n") + 1}

    def show(self, text: str) -> None:
        """Let tracebacks and `inspect.getsource` read `text` as the cell's file."""
        lines = [line + "\n" for line in text.splitlines()]
        linecache.cache[self.filename] = (len(text), None, lines, self.filename)


def locate(shell: InteractiveShell, magic_line: str, body: str) -> Place:
    """Find the cell that is running, and the place of `body` in it.

    IPython compiles `%%magic` and its body to one call with strings. The running cell's frame tells the file
    name and the line of that call; the call's own text tells what the user wrote. A body that is no part of a
    cell (code that calls `run_cell_magic` itself) gets a file of its own.
    """
    frame = _cell_frame(shell)
    if frame is not None:
        filename = frame.f_code.co_filename
        typed = _typed_text(filename, frame.f_lineno)
        if typed is not None and typed.endswith(f"\n{body}"):
            return Place(filename, "" if line_was_added(shell, body) else typed.removesuffix(body))
    return _alone(shell, frame, f"{magic_line}\n", body)


def place_of_line(shell: InteractiveShell, body: str) -> Place:
    """Give a place of its own to the code that stands in a line magic's line."""
    return _alone(shell, _cell_frame(shell), "", body)


def _alone(shell: InteractiveShell, frame: FrameType | None, head: str, body: str) -> Place:
    text = head + body
    number = shell.execution_count if frame is None else _cell_number(shell, frame)
    return Place(shell.compile.cache(text, number, raw_code=text), head)


def _cell_frame(shell: InteractiveShell) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and shell.compile.format_code_name(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return frame


def _typed_text(filename: str, call_line: int) -> str | None:
    """What the user typed into a cell that consists of one cell magic, or None when it is not such a cell."""
    lines = linecache.getlines(filename)
    text = "".join(lines)
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return None
    match statements:
        case [ast.Expr(value=ast.Await(value=ast.Call() as call)) | ast.Expr(value=ast.Call() as call)]:
            strings = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        case _:
            return None
    head = "".join(lines[: call_line - 1])
    match [value for value in strings if isinstance(value, str)]:
        case [name, line, body]:
            return f"{head}%%{name} {line}".rstrip(" ") + f"\n{body}"
        case _:
            return None


def _cell_number(shell: InteractiveShell, frame: FrameType) -> int:
    """The n of a cell's `In[n]`. IPython counts up before or after a cell runs, depending on its version."""
    numbers: dict[str, int] = getattr(shell.compile, "_filename_map", {})
    return numbers.get(frame.f_code.co_filename, shell.execution_count)
