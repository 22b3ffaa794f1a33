"""Whether a class statement can be run again without doing anything but define the class.

What a statement calls while it runs is looked up: functions of the libraries that make classes and arrays
may be called, those of the notebook when their code calls nothing else. So no file is opened, nothing is
sent, and no variable of the notebook is changed a second time. (`print` may be called: it does no harm.)
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupyterlab_jaxprof.nsight.carry.names import names_in, nested_codes


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PACKAGES = _words(
    "abc attr attrs base64 beartype bisect chex cmath collections contextlib copy dataclasses datetime "
    "decimal distrax einops enum equinox flax fractions functools haiku hashlib heapq inspect itertools "
    "jax jaxlib jaxtyping json logging math ml_dtypes ntpath numbers numpy operator optax pathlib penzai "
    "platform posixpath pydantic quax random re statistics string struct textwrap threading time "
    "treescope typeguard types typing typing_extensions uuid warnings weakref"
)
_BUILTINS = _words(
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict dir divmod "
    "enumerate filter float format frozenset getattr hasattr hash hex id int isinstance issubclass iter "
    "len list map max memoryview min next object oct ord pow print property range repr reversed round set "
    "setattr slice sorted staticmethod str sum super tuple type vars zip"
)
#: What reaches the outer world, under whatever it is called.
_REACHING_OUT = _words(
    "FileHandler basicConfig dump initialize memmap mkdir open popen remove rename rmdir run save savetxt "
    "savez savez_compressed send sendall shutdown start start_server start_trace stop_trace system tofile "
    "touch unlink urlopen write write_bytes write_text writelines"
)
_CHANGING = _words(
    "__setitem__ add append clear discard extend insert pop popitem remove setdefault sort update"
)
_CONSTRUCTING = ("__new__", "__init__", "__post_init__", "__init_subclass__", "__set_name__", "__prepare__")


def effect_of(node: ast.ClassDef, names: Mapping[str, Any]) -> str | None:
    """Say what a class statement does beside defining the class, as a clause; None when nothing."""
    return _Checker(names).statement(node)


class _Checker:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._checked: set[int] = set()

    def statement(self, node: ast.ClassDef) -> str | None:
        for expression, called in _run_at_once(node):
            found = self._expression(expression, called)
            if found is not None:
                return found
        for base in [*node.bases, *(keyword.value for keyword in node.keywords)]:
            found = self._class_hooks(self._resolve(base))
            if found is not None:
                return found
        return None

    def _expression(self, node: ast.AST, called: bool) -> str | None:
        """Look at what an expression calls, and at the notebook's functions that it hands on to be called."""
        if isinstance(node, ast.Attribute) and called and node.attr in _REACHING_OUT:
            return f"it calls {ast.unparse(node)}"
        if called and isinstance(node, ast.Name | ast.Attribute):
            return self._called(self._resolve(node), ast.unparse(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                found = self._expression(inner.func, called=True) if _is_dotted(inner.func) else None
                if (
                    found is None
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr in _REACHING_OUT
                ):
                    found = f"it calls {ast.unparse(inner.func)}"
                for argument in [*inner.args, *(keyword.value for keyword in inner.keywords)]:
                    value = self._resolve(argument) if _is_dotted(argument) else None
                    if found is None and isinstance(value, types.FunctionType):
                        found = self._called(value, ast.unparse(argument))
                if found is not None:
                    return found
        return None

    def _resolve(self, node: ast.expr) -> Any:
        """The object that a dotted name stands for; None when that can't be told without running anything."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            return _member(self._resolve(node.value), node.attr)
        return None

    def _called(self, target: Any, written: str) -> str | None:
        if target is None or id(target) in self._checked:
            return None
        self._checked.add(id(target))
        if isinstance(target, types.FunctionType) and target.__globals__ is self._names:
            return self._code(target.__code__, written)
        if isinstance(target, type) and target.__module__ == "__main__":
            return self._class_hooks(target) or self._functions(
                target, ("__new__", "__init__", "__post_init__")
            )
        module = getattr(target, "__module__", None) or getattr(type(target), "__module__", "")
        name = getattr(target, "__name__", written)
        if module == "builtins":
            return None if name in _BUILTINS or _is_exception(target) else f"it calls {written}"
        if module == "__main__":  # jitted, partial and the like
            inside = getattr(target, "__wrapped__", None) or getattr(target, "func", None)
            return self._called(inside, written)
        if str(module).partition(".")[0].lstrip("_") in _PACKAGES and name not in _REACHING_OUT:
            return None
        return f"it calls {written}"

    def _class_hooks(self, base: Any) -> str | None:
        """Look at what a class of the notebook does whenever a class is derived from it."""
        if not isinstance(base, type):
            return None
        for kind in base.__mro__:
            if kind.__module__ == "__main__":
                found = self._functions(kind, ("__init_subclass__", "__set_name__"))
                if found is None and type(kind).__module__ == "__main__":
                    found = self._functions(type(kind), _CONSTRUCTING)
                if found is None and issubclass(kind, type):
                    found = self._functions(kind, _CONSTRUCTING)
                if found is not None:
                    return found
        return None

    def _functions(self, cls: type, names: Sequence[str]) -> str | None:
        for name in names:
            function = getattr(vars(cls).get(name), "__func__", vars(cls).get(name))
            if isinstance(function, types.FunctionType) and function.__globals__ is self._names:
                found = self._called(function, f"{cls.__name__}.{name}")
                if found is not None:
                    return found
        return None

    def _code(self, code: types.CodeType, written: str) -> str | None:
        """Look at a function of the notebook: everything that it names may be called."""
        reads = names_in(code).all
        data = {name for name in reads if _is_changeable(self._names.get(name))}
        for name, attributes in _chains(code):
            value = self._names.get(name, getattr(builtins, name, None))
            if name in data and attributes and attributes[0] in _CHANGING:
                return f"{written} changes {name}"
            for attribute in attributes:
                value = _member(value, attribute)
            if callable(value):
                found = self._called(value, ".".join((name, *attributes)))
                if found is not None:
                    return found
        found = _effect_in(code, bool(data))
        return None if found is None else f"{written} {found}"


def _run_at_once(node: ast.ClassDef) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions that a class statement evaluates, and whether what they name is called."""
    for decorator in node.decorator_list:
        yield decorator, True
        if isinstance(decorator, ast.Call):
            yield decorator, False
    yield from ((base, False) for base in node.bases)
    yield from ((keyword.value, keyword.arg == "metaclass") for keyword in node.keywords)
    pending: list[ast.AST] = list(reversed(node.body))
    while pending:
        inner = pending.pop()
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from ((decorator, True) for decorator in inner.decorator_list)
                yield from ((decorator, False) for decorator in inner.decorator_list)
                defaults = [*inner.args.defaults, *(value for value in inner.args.kw_defaults if value)]
                yield from ((default, False) for default in defaults)
            case ast.ClassDef():
                yield from _run_at_once(inner)
            case ast.expr():
                yield inner, False
            case _:
                pending += ast.iter_child_nodes(inner)


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))


def _member(value: Any, name: str) -> Any:
    """An attribute of a module or a class, looked up without running code of the user's."""
    if isinstance(value, types.ModuleType):
        return getattr(value, name, None)
    if isinstance(value, type):
        return next((vars(kind)[name] for kind in value.__mro__ if name in vars(kind)), None)
    return None


def _is_changeable(value: Any) -> bool:
    return isinstance(value, list | dict | set | bytearray) or (
        value is not None
        and type(value).__module__ == "__main__"
        and not isinstance(value, type | types.FunctionType | enum.Enum)
    )


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _effect_in(code: types.CodeType, reads_data: bool) -> str | None:
    """Say what code does to the outer world by an instruction of its own."""
    for instruction in dis.get_instructions(code):
        match instruction.opname:
            case "STORE_GLOBAL" | "DELETE_GLOBAL":
                return f"changes {instruction.argval}"
            case "STORE_SUBSCR" | "DELETE_SUBSCR" if reads_data:
                return "changes a variable of the notebook"
            case "IMPORT_NAME" if str(instruction.argval).partition(".")[0] not in _PACKAGES:
                return f"imports {instruction.argval}"
            case "LOAD_ATTR" | "LOAD_METHOD" if instruction.argval in _REACHING_OUT:
                return f"calls {instruction.argval}"
            case _:
                pass
    for nested in nested_codes(code):
        found = _effect_in(nested, reads_data)
        if found is not None:
            return found
    return None


def _chains(code: types.CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The dotted names that code reads: the global's name, and the attributes that follow it."""
    name: str | None = None
    attributes: list[str] = []
    for instruction in dis.get_instructions(code):
        if name is not None and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.append(str(instruction.argval))
            continue
        if name is not None:
            yield name, tuple(attributes)
        name, attributes = None, []
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            name = str(instruction.argval)
    for nested in nested_codes(code):
        yield from _chains(nested)
