"""What an Nsight report holds of a program's HLO: for each operation its JAX scope and source line.

XLA registers four texts for each instruction when it makes a program, each the first time that it occurs: the
name of its range, the instruction itself (`loop_add_fusion = f32[8]{0} fusion(...), calls=fused_add,
metadata={op_name="jit(f)/add" stack_frame_id=5}`), its source (one line a frame, innermost last), and what it
calls. The report keeps them in that order, those from before recording backwards and here and there apart: so
a source counts only where all around it fits. Reports that hold the ranges' payloads tell the source by them.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

_INSTRUCTION = re.compile(r"(?P<name>[\w.\-]+) = ")
_METADATA = re.compile(r'metadata=\{op_name="(?P<scope>[^"]*)"[^}]*?(?: stack_frame_id=(?P<frame>\d+))?\}')
_FUNCTION = re.compile(r"(jit|pjit|pmap|xmap|shard_map)\(([^()]*)\)")
_CALLED = re.compile(r"(?:calls|to_apply)=([\w.\-]+)")
_FRAME = re.compile(
    r"(?P<depth>-+) (?P<path>[^\n]+?):(?P<line>\d+)(?::\d+)?\[[^\n\]]*\](?: (?P<scope>\S[^\n]*))?"
)
_NUMBER = re.compile(r"[._]\d+$")


@dataclass(frozen=True)
class Operation:
    """One HLO operation; what is not known is empty."""

    name: str
    scope: str = ""
    source: str = ""


class HloTexts:
    """The operations of all modules that the report's texts tell of."""

    def __init__(self, strings: Mapping[int, str], sources: Mapping[str, str] | None = None) -> None:
        """`sources` has the source of operations whose number (`unique_hlo_op_id`) a payload told it for."""
        self._told = sources or {}
        self._found: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self._sources: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._by_base: dict[tuple[str, str], set[str]] = defaultdict(set)
        for number, text in strings.items():
            name = _INSTRUCTION.match(text)
            metadata = _METADATA.search(text) if name else None
            if name is not None and metadata is not None:
                source = _source_beside(strings, number, name["name"])
                self._add(name["name"], metadata["scope"], metadata["frame"] or "", source)

    def operation(self, module: str, name: str, scope: str = "", number: str = "") -> Operation:
        """Describe an operation of a module; `scope` is what its range says, and counts if it says enough.

        XLA gives a range the scope that all operations of its fusion share, which may be the function alone;
        then the scope of the fusion's result is told.
        """
        known = self._found.get((module, name), set())
        scopes = {scope for scope, _frame in known}
        if len(scopes) == 1 and "/" not in scope:
            scope = next(iter(scopes))
        if told := self._told.get(number):
            return Operation(name, scope, source_line(told, scope))
        sources = {source for _scope, frame in known if frame for source in self._sources[module, frame]}
        return Operation(name, scope, next(iter(sources)) if len(sources) == 1 else "")

    def of_kernel(self, module: str, kernel: str, shared: bool) -> Operation | None:
        """Find the operation that XLA named a kernel after; None where there is none (a library's kernel).

        Equal fusions share one kernel, so a `shared` one (run more than once a launch of its graph) gets of
        scope and source only what all operations of such a name have in common.
        """
        named = [
            name for name in self._by_base.get((module, base_name(kernel)), ()) if kernel_name(name) == kernel
        ]
        if len(named) != 1:
            return None
        if not shared:
            return self.operation(module, named[0])
        like = [self.operation(module, name) for name in self._by_base[module, base_name(kernel)]]
        sources = {one.source for one in like}
        scope = _common_scope([one.scope for one in like])
        return Operation(named[0], scope, next(iter(sources)) if len(sources) == 1 else "")

    def _add(self, name: str, scope: str, frame: str, text: str) -> None:
        module = module_of(scope)
        self._found[module, name].add((scope, frame))
        self._by_base[module, base_name(kernel_name(name))].add(name)
        if frame and (source := source_line(text, scope)):
            self._sources[module, frame].add(source)


def kernel_name(operation: str) -> str:
    """Give XLA's name for the kernel of an operation: `loop_add_fusion.2` becomes `loop_add_fusion_2`."""
    return re.sub(r"\W", "_", operation)


def module_of(scope: str) -> str:
    """Give the HLO module of a scope: `jit_train_step` for `jit(train_step)/mul`; empty if not told."""
    match = _FUNCTION.match(scope)
    return "_".join((match.group(1), re.sub(r"[^\w.\-]", "_", match.group(2)))) if match else ""


def is_source(text: str) -> bool:
    """Tell whether a text is one of sources."""
    return text.startswith("\n- ")


def _source_beside(strings: Mapping[int, str], number: int, name: str) -> str:
    """Give the source that was registered with the instruction of this number; empty if that isn't sure."""
    called = _CALLED.search(strings[number])
    for step in (1, -1):
        source = strings.get(number + step, "")
        title, beyond = strings.get(number - step, ""), strings.get(number + 2 * step, "")
        if not is_source(source) or not re.match(rf"Thunk:#[^#]*\bhlo_op={re.escape(name)}[,#]", title):
            continue
        if called is None or beyond.startswith(f"\n{called.group(1)} {{"):
            return source
    return ""


def source_line(text: str, scope: str) -> str:
    """Give the line of a source that an operation stands for, as `file.py:12`; empty if there are several.

    A fusion's source has the lines of all that is in it, each with the end of its scope: then the line is the
    one that goes with `scope`.
    """
    frames = [_FRAME.fullmatch(line) for line in html.unescape(text).strip().splitlines()]
    found = [frame for frame in frames if frame is not None]
    if len(found) < len(frames):
        return ""
    depths = [len(frame["depth"]) for frame in found] + [0]
    leaves = [
        frame
        for frame, depth, next_depth in zip(found, depths, depths[1:], strict=False)
        if frame["scope"] or next_depth <= depth
    ]
    own = [frame for frame in leaves if frame["scope"] and f"/{scope}".endswith(f"/{frame['scope']}")]
    lines = {f"{PurePath(frame['path']).name}:{frame['line']}" for frame in own or leaves}
    return next(iter(lines)) if len(lines) == 1 else ""


def base_name(operation: str) -> str:
    """Give the name of an operation or a kernel without its number."""
    return _NUMBER.sub("", operation)


def _common_scope(scopes: Iterable[str]) -> str:
    parts = [scope.split("/") for scope in scopes]
    common: list[str] = []
    for together in zip(*parts, strict=False):
        if len(set(together)) > 1:
            break
        common.append(together[0])
    return "/".join(common)
