"""A magic's body as code: compiled as a part of the cell that the user wrote, every line at its number."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError

from jupyterlab_jaxprof.cell.place import Place

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(frozen=True)
class Program:
    """A compiled body. Its units run in turn; the value of the last is the cell's value."""

    units: tuple[CodeType, ...]
    nodes: tuple[ast.stmt, ...] = ()

    @property
    def needs_await(self) -> bool:
        """Whether running it takes an event loop."""
        return any(self.awaits(code) for code in self.units)

    @staticmethod
    def awaits(code: CodeType) -> bool:
        """Whether a unit gives a coroutine, which is to be awaited."""
        return bool(code.co_flags & inspect.CO_COROUTINE)


def compile_body(shell: InteractiveShell, body: str, place: Place) -> Program:
    """Compile a body as IPython compiles a cell, and let tracebacks show its lines.

    Line magics, `!` commands, `?`, the user's AST transformers, top-level await and `ast_node_interactivity`
    are what they are in a plain cell. Raises SyntaxError with the cell's own file name and line. A body
    without code gives a program without units.
    """
    above, text = _to_python(shell, body, place)
    nodes: list[ast.stmt] = shell.transform_ast(_parse(shell, above, text, place)).body
    interactivity = "none" if _ends_with_semicolon(text) else shell.ast_node_interactivity
    place.show(above + text)
    return Program(_compile(shell, nodes, interactivity, place), tuple(nodes))


def check(shell: InteractiveShell, head: str, body: str) -> bool:
    """Whether a body awaits at its top level, told without running anything, the AST transformers neither.

    `head` is the cell's text above the body. Raises SyntaxError as the cell's own.
    """
    with contextlib.suppress(SyntaxError):
        return _check(shell, Place("<cell>", head), body)
    typed = head + body
    place = Place(shell.compile.cache(typed, shell.execution_count, raw_code=typed), head)
    return _check(shell, place, body)  # raises again, of a file whose lines can be shown


def _check(shell: InteractiveShell, place: Place, body: str) -> bool:
    above, text = _to_python(shell, body, place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are shown when the body is compiled to be run
        units = _compile(shell, _parse(shell, above, text, place).body, "last_expr", place)
    return Program(units).needs_await


def needs_await(shell: InteractiveShell, body: str) -> bool:
    """Whether a body awaits at its top level. A body that does not compile awaits nothing."""
    try:
        return check(shell, "", body)
    except (SyntaxError, ValueError, UsageError):
        return False


def _ends_with_semicolon(text: str) -> bool:
    """Whether the last token, comments aside, is a semicolon: IPython's sign to show no value."""
    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string.strip() and token.type != tokenize.COMMENT:
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        return False
    return last == ";"


def _to_python(shell: InteractiveShell, body: str, place: Place) -> tuple[str, str]:
    """The cell as Python: the lines above the code as comments and blank lines, and the code."""
    lines = body.splitlines(keepends=True)
    blank = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    above = place.commented_head + "\n" * blank
    if blank == len(lines):
        return above, ""
    try:
        return above, shell.transform_cell("".join(lines[blank:]))  # it would drop the blank lines
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno += above.count("\n")
        error.filename = place.filename
        raise


def _parse(shell: InteractiveShell, above: str, text: str, place: Place) -> ast.Module:
    return cast(ast.Module, shell.compile.ast_parse(above + text, place.filename))


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
