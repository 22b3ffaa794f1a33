"""Global names that code reads: of a body, and of the functions and classes that it leads to.

Names are read from compiled code, so that attributes are told from globals and a function needs no source.
What is looked up by a string (`eval`, `globals()[...]`) is not seen.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

_READS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME", "DELETE_GLOBAL"})
_STORES = frozenset({"STORE_NAME", "STORE_GLOBAL"})
_RUN_AT_ONCE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_NAMES = re.compile(r"[^\W\d]\w*")
_IN_COMMANDS = re.compile(r"[{$]\s*([^\W\d]\w*)")


@dataclass(frozen=True)
class Names:
    """Names that code reads while it runs (`now`), and those that the functions in it read when called."""

    now: frozenset[str]
    later: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Both."""
        return self.now | self.later


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> Names:
    """Give the global names that code reads. A name that it binds before is not read."""
    now, later, bound = set[str](), set[str](), set[str]()
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS and instruction.argval not in bound:
            now.add(instruction.argval)
        elif instruction.opname in _STORES and not is_function:
            bound.add(instruction.argval)
    for nested in nested_codes(code):
        names = names_in(nested)
        runs_now = not nested.co_flags & inspect.CO_OPTIMIZED or nested.co_name in _RUN_AT_ONCE
        if runs_now or nested.co_name.startswith("<generic parameters"):
            now |= names.now
            later |= names.later
        else:
            later |= names.all
    return Names(frozenset(now), frozenset(later - now))


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Give the code that is directly nested in code."""
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


@dataclass(frozen=True)
class BodyNames:
    """Names that a body reads from the notebook, those that it binds anew, and those of them that it binds by
    more than an import."""

    reads: frozenset[str]
    binds: frozenset[str]
    assigns: frozenset[str]


def names_of_body(statements: Iterable[ast.stmt]) -> BodyNames:
    """Give what a body reads before it has surely bound it, and what it binds.

    Names in the text of IPython's magics and commands (`!ls {folder}`) count as read.
    """
    body = list(statements)
    reader = _Reader()
    reader.block(body, set())
    reads, binds = reader.reads, _bound_by(body)
    if "get_ipython" in reads:
        reads |= {name for top in body for node in ast.walk(top) for name in _names_for_ipython(node)}
    assigns = _bound_by(body, imports=False)
    return BodyNames(frozenset(reads), frozenset(binds), frozenset(assigns))


def _names_for_ipython(node: ast.AST) -> Iterator[str]:
    """The names in the text of a magic or a command; that of a magic may be Python, as in `%time f(x)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=called)):
            pattern = _NAMES if called.startswith("run_") else _IN_COMMANDS
        case _:
            return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield from pattern.findall(inner.value)


class _Reader:
    """Walks a body in the order in which it runs, knowing what is surely bound."""

    def __init__(self) -> None:
        self.reads: set[str] = set()

    def block(self, statements: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Read statements one after the other; gives what is bound after them."""
        bound = set(bound)
        for statement in statements:
            bound = self._statement(statement, bound)
        return bound

    def _statement(self, node: ast.stmt, bound: set[str]) -> set[str]:
        match node:
            case ast.For() | ast.AsyncFor():
                self._expressions([node.iter], bound)
                inside = bound | _targets([node.target])
                self.block(node.body, inside)
                self.block(node.orelse, bound)
                return bound
            case ast.While():
                self._expressions([node.test], bound)
                self.block(node.body, bound)
                self.block(node.orelse, bound)
                return bound
            case ast.If():
                self._expressions([node.test], bound)
                return self.block(node.body, bound) & self.block(node.orelse, bound)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._expressions([item.context_expr], bound)
                    bound = bound | _targets([item.optional_vars] if item.optional_vars else [])
                return self.block(node.body, bound)
            case ast.Try() | ast.TryStar():
                after = self.block(node.body, bound)
                for handler in node.handlers:
                    self._expressions([handler.type] if handler.type else [], bound)
                    self.block(handler.body, bound | ({handler.name} if handler.name else set()))
                self.block(node.orelse, after)
                return self.block(node.finalbody, bound)
            case ast.Delete():
                self._leaf(node, bound)
                return bound - _targets(node.targets)
            case ast.Match():
                self._leaf(node, bound)
                return bound
            case _:
                self._leaf(node, bound)
                return bound | _bound_by([node])

    def _expressions(self, expressions: Iterable[ast.expr], bound: set[str]) -> None:
        for expression in expressions:
            self._leaf(ast.Expr(expression), bound)

    def _leaf(self, node: ast.stmt, bound: set[str]) -> None:
        module = ast.fix_missing_locations(ast.Module([node], []))
        try:
            code = compile(module, "<body>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError:  # a `return` or `break` out of its place: the body fails when it is compiled
            return
        self.reads |= names_in(code).all - bound


def _targets(targets: Iterable[ast.expr]) -> set[str]:
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _bound_by(statements: Iterable[ast.stmt], *, imports: bool = True) -> set[str]:
    """Names that statements may bind in the scope they stand in."""
    bound: set[str] = set()
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
                pending += node.decorator_list
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                walrus = (inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
                bound |= {inner.target.id for inner in walrus}
                continue
            case ast.Name(ctx=ast.Store()):
                bound.add(node.id)
            case ast.Import() | ast.ImportFrom():
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names if imports}
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case _:
                pass
        pending += ast.iter_child_nodes(node)
    return bound - {"*"}
