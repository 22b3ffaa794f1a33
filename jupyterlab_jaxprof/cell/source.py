"""A magic's body as code: compiled as a part of the cell that the user wrote, every line at its number."""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import sys
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_NOT_CODE = {
    tokenize.ENDMARKER,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.COMMENT,
    tokenize.INDENT,
    tokenize.DEDENT,
}


@dataclass(frozen=True)
class Place:
    """Where a body stands: the file name of its cell, and how many lines of the cell are above it."""

    filename: str
    lines_above: int


@dataclass(frozen=True)
class Program:
    """A compiled body. Its units run in turn; the value of the last is the cell's value."""

    units: tuple[CodeType, ...]
    filename: str

    @property
    def needs_await(self) -> bool:
        """Whether running it takes an event loop."""
        return any(self.awaits(code) for code in self.units)

    @staticmethod
    def awaits(code: CodeType) -> bool:
        """Whether a unit gives a coroutine, which is to be awaited."""
        return bool(code.co_flags & inspect.CO_COROUTINE)


def compile_body(shell: InteractiveShell, body: str, place: Place) -> Program:
    """Compile a body as IPython compiles a cell.

    Line magics, `!` commands, `?`, the user's AST transformers, top-level await and `ast_node_interactivity`
    are what they are in a plain cell. Raises SyntaxError with the cell's own file name and line. A body
    without code gives a program without units.
    """
    text, tree = _parse(shell, body, place)
    nodes: list[ast.stmt] = shell.transform_ast(tree).body
    interactivity = "none" if ends_with_semicolon(text) else shell.ast_node_interactivity
    return Program(_compile(shell, nodes, interactivity, place), place.filename)


def check(shell: InteractiveShell, head: str, body: str) -> bool:
    """Whether a body awaits at its top level, told without running anything, the AST transformers neither.

    `head` is the cell's text above the body. Raises SyntaxError as the cell's own.
    """
    place = Place("<cell>", head.count("\n"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are shown when the body is compiled to be run
            _, tree = _parse(shell, body, place)
            units = _compile(shell, tree.body, "last_expr", place)
    except SyntaxError as error:
        error.filename = shell.compile.cache(head + body, shell.execution_count, raw_code=head + body)
        raise
    return Program(units, place.filename).needs_await


def needs_await(shell: InteractiveShell, body: str) -> bool:
    """Whether a body awaits at its top level. A body that does not compile awaits nothing."""
    try:
        return check(shell, "", body)
    except (SyntaxError, ValueError, UsageError):
        return False


def ends_with_semicolon(text: str) -> bool:
    """Whether the last token, comments aside, is a semicolon: IPython's sign to show no value."""
    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in _NOT_CODE:
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        return False
    return last == ";"


def locate(shell: InteractiveShell, magic_line: str, body: str) -> Place:
    """Find the cell that is running and the place of `body` in it, and let tracebacks show the typed lines.

    IPython compiles `%%magic` and its body to one call with two strings. The running cell's frame tells the
    file name and the line of that call; the call's own text tells what the user wrote. A body that is no
    part of a cell (code that calls `run_cell_magic` itself) gets a file of its own.
    """
    frame = _cell_frame(shell)
    if frame is not None:
        filename = frame.f_code.co_filename
        typed = _typed_text(filename, frame.f_lineno)
        if typed is not None and typed.endswith(body):
            _remember(filename, typed)
            return Place(filename, typed[: len(typed) - len(body)].count("\n"))
    text = f"{magic_line}\n{body}"
    number = cell_number(shell, frame)
    return Place(shell.compile.cache(text, number, raw_code=text), 1)


def cell_number(shell: InteractiveShell, frame: FrameType | None = None) -> int:
    """The number n of the running cell's `In[n]`; of the next cell when none is running."""
    numbers: dict[str, int] = getattr(shell.compile, "_filename_map", {})
    if frame is not None and frame.f_code.co_filename in numbers:
        return numbers[frame.f_code.co_filename]
    return shell.execution_count


def is_cell_file(shell: InteractiveShell, filename: str) -> bool:
    """Whether a file name stands for a cell of this shell."""
    return shell.compile.format_code_name(filename) is not None


def _cell_frame(shell: InteractiveShell) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not is_cell_file(shell, frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _typed_text(filename: str, call_line: int) -> str | None:
    """What the user typed into a cell that consists of one cell magic, or None when it is not such a cell."""
    lines = linecache.getlines(filename)
    text = "".join(lines)
    if call_line <= len(lines) and lines[call_line - 1].startswith("%%"):
        return text  # found and remembered before
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


def _remember(filename: str, text: str) -> None:
    lines = [line + "\n" for line in text.splitlines()]
    linecache.cache[filename] = (len(text), None, lines, filename)


def _parse(shell: InteractiveShell, body: str, place: Place) -> tuple[str, ast.Module]:
    """The body as Python text, and its syntax tree, whose line numbers are the cell's."""
    lines = body.splitlines(keepends=True)
    blank = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if blank == len(lines):
        return "", ast.Module([], [])
    text = shell.transform_cell("".join(lines[blank:]))  # it would drop the blank lines at the top
    padded = "\n" * (place.lines_above + blank) + text
    tree = cast(ast.Module, shell.compile.ast_parse(padded, place.filename))
    return text, tree


def _compile(
    shell: InteractiveShell, nodes: list[ast.stmt], interactivity: str, place: Place
) -> tuple[CodeType, ...]:
    compiler: Any = shell.compile  # its type names text only; it takes syntax trees as well
    with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0):
        return tuple(compiler(tree, place.filename, mode) for tree, mode in _parts(nodes, interactivity))


def _parts(
    nodes: list[ast.stmt], interactivity: str
) -> Iterator[tuple[ast.Module | ast.Interactive | ast.Expression, str]]:
    """Split statements into what `compile` takes, following IPython's `ast_node_interactivity`.

    "single" code shows the value of every expression in it through the display hook; "eval" code returns its
    value, which the magic then returns and IPython shows.
    """
    if interactivity == "last_expr_or_assign":
        nodes = [*nodes, *_assigned_name(nodes)]
    if not nodes:
        return
    if interactivity == "all":
        yield ast.Interactive(nodes), "single"
        return
    *first, last = nodes
    shown = interactivity != "none" and isinstance(last, ast.Expr)
    if shown or interactivity == "last":
        if first:
            yield ast.Module(first, []), "exec"
        if isinstance(last, ast.Expr):
            yield ast.Expression(last.value), "eval"
        else:
            yield ast.Interactive([last]), "single"
    else:
        yield ast.Module(nodes, []), "exec"


def _assigned_name(nodes: list[ast.stmt]) -> list[ast.stmt]:
    """An expression that reads the name which the last statement assigns to, if it assigns to just one."""
    match nodes[-1:]:
        case [ast.Assign(targets=[ast.Name() as target])]:
            pass
        case [ast.AugAssign(target=ast.Name() as target) | ast.AnnAssign(target=ast.Name() as target)]:
            pass
        case _:
            return []
    value = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return [ast.copy_location(ast.Expr(value), target)]
