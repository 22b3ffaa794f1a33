"""The texts of the notebook's cells, and in them the statements that define its classes."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.nsight.carry.names import nested_codes

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_FUTURE_FLAGS = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
#: Where a wrapped method keeps the function: descriptors, functools, and the wrappers of JAX's libraries.
_INSIDE = ("__func__", "__wrapped__", "func", "fget", "fset", "fdel", "method", "fun")


@dataclass(frozen=True)
class Statement:
    """One `class` statement, decorators included, as a text that compiles with the cell's line numbers."""

    filename: str
    text: str
    node: ast.ClassDef
    flags: int

    def compile(self) -> types.CodeType:
        """Compile it as the notebook did."""
        return compile(self.text, self.filename, "exec", self.flags, dont_inherit=True)


class Sources:
    """Finds the statement that made a class: in the file that its methods tell, else in the cells.

    The newest cell that fits counts. `cells` are the texts in the order they ran, as the user typed them;
    `transform` makes Python of such a text, and is not called before a search; `flags` are the notebook's
    `from __future__` imports.
    """

    def __init__(
        self, cells: Sequence[str] = (), transform: Callable[[str], str] = str, flags: int = 0
    ) -> None:
        self._cells = list(cells)
        self._transform = transform
        self._flags = flags & _FUTURE_FLAGS

    @classmethod
    def from_shell(cls, shell: InteractiveShell) -> Sources:
        """Take the cells of an IPython shell's history, those with cell magics included."""
        history = shell.history_manager
        cells = [] if history is None else list(history.input_hist_raw)
        return cls(cells, shell.transform_cell, shell.compile.flags)

    def statement(self, wanted: type) -> Statement | None:
        """Give the statement that made a class; None when no text fits what the class is."""
        live = _functions_of(wanted)
        flags = next((found.co_flags & _FUTURE_FLAGS for found in live.values()), self._flags)
        for filename, line in _places(wanted, live):
            for node in _classes(_tree(filename), wanted.__name__):
                if _first_line(node) <= line <= (node.end_lineno or 0):
                    return _statement(filename, linecache.getlines(filename), node, flags)
        for number in reversed(range(len(self._cells))):
            text, tree = self._cell(number)
            for node in reversed(list(_classes(tree, wanted.__name__))):
                found = _statement(f"<cell {number}>", text.splitlines(keepends=True), node, flags)
                if found is not None and _fits(found, wanted, live):
                    return found
        return None

    @functools.cache  # noqa: B019 - as long as this object is
    def _cell(self, number: int) -> tuple[str, ast.Module | None]:
        typed = self._cells[number]
        if typed.lstrip().startswith("%%"):  # its body is Python, or does not parse as such
            first, _, typed = typed.lstrip().partition("\n")
            typed = f"# {first}\n{typed}"
        try:
            text = self._transform(typed)
            return text, ast.parse(text)
        except Exception:  # noqa: BLE001 - transformers are the user's own; a cell that is no Python defines nothing
            return "", None


def same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two pieces of code do the same, wherever they stand."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same_constant, one.co_consts, other.co_consts))
    )


def _same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        return same_code(one, other)
    return type(one) is type(other) and repr(one) == repr(other)


def body_of_class(code: types.CodeType, name: str) -> types.CodeType | None:
    """The code of a class's body within the code of its statement."""
    for nested in nested_codes(code):
        if nested.co_name == name and not nested.co_flags & inspect.CO_OPTIMIZED:
            return nested
        if nested.co_name.startswith("<generic parameters"):
            found = body_of_class(nested, name)
            if found is not None:
                return found
    return None


def functions_in(value: Any) -> Iterator[types.FunctionType]:
    """The functions of Python within a class's attribute, through the wrappers around them."""
    pending, seen = [value], set[int]()
    while pending:
        found = pending.pop()
        if id(found) in seen or len(seen) > 50:
            continue
        seen.add(id(found))
        if isinstance(found, types.FunctionType):
            yield found
        attributes = getattr(found, "__dict__", {})
        for name in _INSIDE:
            inside = attributes.get(name) if isinstance(attributes, Mapping) else None
            if inside is None and isinstance(
                found, classmethod | staticmethod | property | functools.partialmethod
            ):
                inside = getattr(found, name, None)
            if callable(inside) or isinstance(inside, classmethod | staticmethod | property):
                pending.append(inside)


def _functions_of(cls: type) -> dict[str, types.CodeType]:
    """The code of a class's own methods, by their names in the class statement."""
    found: dict[str, types.CodeType] = {}
    for value in list(vars(cls).values()):
        for function in functions_in(value):
            code = function.__code__
            if code.co_qualname == f"{cls.__qualname__}.{code.co_name}":
                found.setdefault(code.co_name, code)
    return found


def _places(cls: type, live: Mapping[str, types.CodeType]) -> Iterator[tuple[str, int]]:
    """The file and a line of a class, as its methods have them."""
    for code in live.values():
        if linecache.getlines(code.co_filename):
            yield code.co_filename, code.co_firstlineno


def _tree(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None


def _classes(tree: ast.Module | None, name: str) -> Iterator[ast.ClassDef]:
    """The class statements of a name at the top level of a cell, below `if`, `with` and the like included."""
    pending: list[ast.AST] = list(reversed(tree.body)) if tree is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef):
            if node.name == name:
                yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler)
            ]


def _first_line(node: ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _statement(filename: str, lines: Sequence[str], node: ast.ClassDef, flags: int) -> Statement | None:
    first, last = _first_line(node), node.end_lineno or node.lineno
    text = "".join(lines[first - 1 : last])
    if node.col_offset == 0:  # noqa: SIM108 - the comment tells why
        above = "\n" * (first - 1)
    else:  # below an `if` or the like
        above = "\n" * (first - 2) + "if True:\n"
    try:
        tree = ast.parse(above + text)
    except SyntaxError:  # it shares a line with another statement
        return None
    found = next(_classes(tree, node.name), None)
    return None if found is None else Statement(filename, above + text, found, flags)


def _fits(statement: Statement, cls: type, live: Mapping[str, types.CodeType]) -> bool:
    """Whether nothing of a class contradicts that a statement has made it."""
    try:
        body = body_of_class(statement.compile(), cls.__name__)
    except SyntaxError:
        return False
    if body is None:
        return False
    for code in nested_codes(body):
        if code.co_name in live and not same_code(code, live[code.co_name]):
            return False
    written = {code.co_name for code in nested_codes(body) if not code.co_name.startswith("<")}
    annotated = {
        node.target.id
        for node in statement.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    annotations: Any = vars(cls).get("__annotations__", {})
    return set(live) <= written and annotated == set(annotations)
