"""The Python stack while JAX compiles: the call that led to it, and what has been compiled.

JAX reports neither; both are read from the local names of its own functions. Where a version of JAX names
them otherwise, there is no call to be seen, and compiles are known by their names and arguments alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

#: What a program needs, by our names and by those of XLA's statistics.
_MEMORY = {
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "temporary_bytes": "temp_size_in_bytes",
    "alias_bytes": "alias_size_in_bytes",
    "code_bytes": "generated_code_size_in_bytes",
    "peak_bytes": "peak_memory_in_bytes",
}
_COMPILE_DEPTH = 12  # frames from a listener up to where JAX compiles

_CALL_OPTIONS = (
    "donate_argnums",
    "donate_argnames",
    "device",
    "backend",
    "keep_unused",
    "inline",
    "compiler_options_kvs",
    "in_shardings_leaves",
    "out_shardings_leaves",
)


@dataclass(frozen=True)
class Call:
    """A call of a jitted function. It holds the user's arrays: read it at once, and don't keep it."""

    function: Callable[..., Any]
    options: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    transformed: bool

    def statics(self) -> dict[str, Any]:
        """Give the static arguments, by name where the function has one for them."""
        numbers: tuple[int, ...] = getattr(self.options, "static_argnums", ())
        named: tuple[str, ...] = getattr(self.options, "static_argnames", ())
        names = _parameter_names(self.function)
        statics = {
            names[number] if 0 <= number < len(names) else f"argument {number}": self.args[number]
            for number in (n + len(self.args) if n < 0 else n for n in numbers)
            if 0 <= number < len(self.args)
        }
        return statics | {name: self.kwargs[name] for name in named if name in self.kwargs}

    def dynamic(self) -> list[Any]:
        """Give the leaves of the other arguments: arrays, numpy arrays, Python numbers."""
        import jax

        numbers: tuple[int, ...] = getattr(self.options, "static_argnums", ())
        named: tuple[str, ...] = getattr(self.options, "static_argnames", ())
        static = {n + len(self.args) if n < 0 else n for n in numbers}
        args = [value for number, value in enumerate(self.args) if number not in static]
        kwargs = {name: value for name, value in self.kwargs.items() if name not in named}
        return jax.tree.leaves((args, kwargs))

    def jit_options(self) -> dict[str, str]:
        """Give the options of the jit that bear on what is compiled, as text."""
        return {
            name: str(getattr(self.options, name))[:200]
            for name in _CALL_OPTIONS
            if hasattr(self.options, name)
        }


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a callable without a signature
        return []


def call_on_stack(frame: FrameType | None) -> Call | None:
    """Find the innermost call of a jitted function on the stack; None where JAX shows none."""
    transformed = False
    while frame is not None:
        if frame.f_code.co_filename.endswith("pjit.py"):
            names = frame.f_locals
            options = names.get("jit_info", names.get("ji"))
            function, args, kwargs = names.get("fun"), names.get("args"), names.get("kwargs")
            if (
                options is not None
                and callable(function)
                and isinstance(args, tuple)
                and isinstance(kwargs, dict)
            ):
                return Call(
                    function,
                    options,
                    cast("tuple[Any, ...]", args),
                    cast("dict[str, Any]", kwargs),
                    transformed,
                )
        elif frame.f_code.co_name == "process_primitive":  # grad, vmap and the like run the function
            transformed = True
        frame = frame.f_back
    return None


def memory_on_stack(frame: FrameType | None) -> dict[str, int] | None:
    """Find how much memory a program just compiled needs, in bytes; None where it isn't told."""
    depth = 0
    while frame is not None and frame.f_code.co_name != "_cached_compilation":
        frame, depth = frame.f_back, depth + 1
        if depth > _COMPILE_DEPTH:
            return None
    executable = frame.f_locals.get("xla_executable") if frame is not None else None
    if executable is None or not hasattr(executable, "get_compiled_memory_stats"):
        return None
    stats = executable.get_compiled_memory_stats()
    return {
        key: int(value) for key, name in _MEMORY.items() if (value := getattr(stats, name, None)) is not None
    }
