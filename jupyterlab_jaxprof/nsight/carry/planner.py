"""From a body's names to all that must travel, and the order in which the child process makes it again."""

from __future__ import annotations

import ast
import builtins
import io
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jupyterlab_jaxprof.nsight.carry.arrays import Arrays, Replacement
from jupyterlab_jaxprof.nsight.carry.definitions import Changes, Definitions, changes, registration_of
from jupyterlab_jaxprof.nsight.carry.names import BodyNames, names_of_body
from jupyterlab_jaxprof.nsight.carry.paths import path_to
from jupyterlab_jaxprof.nsight.carry.pickler import Needs, Pickler, why_not
from jupyterlab_jaxprof.nsight.carry.refusal import CarryError, Refusal
from jupyterlab_jaxprof.nsight.carry.sources import Sources

#: What is carried or run: a variable by its name; a class, what changed of it, a set-up cell by its number.
Unit = tuple[str, str | int]

_NOT_VARIABLES = frozenset(
    [
        "__name__",
        "__builtins__",
        "__builtin__",
        "__doc__",
        "__package__",
        "__loader__",
        "__spec__",
        "get_ipython",
        "exit",
        "quit",
    ]
)
_MOST_REFUSALS_OF_ONE = 5


@dataclass
class Node:
    """One unit: what must come before it (`first`), and what must be there before it is used (`then`)."""

    chain: tuple[str, ...]
    first: list[Unit] = field(default_factory=lambda: [])
    then: list[Unit] = field(default_factory=lambda: [])


class Planner:
    """Looks at all that a body leads to; pickles it only to see what it needs, and keeps nothing of that."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        sources: Sources,
        drop: frozenset[str],
        set_up: Sequence[str],
        replacement: Replacement | None,
    ) -> None:
        self.namespace = namespace
        self.definitions = Definitions(namespace, sources)
        self.nodes: dict[Unit, Node] = {}
        self.files: set[str] = set()
        self.unseen: set[str] = set()
        self._drop = drop
        self._replacement = replacement
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self._cells = [_names_of_cell(text) for text in set_up]
        self._makers = {name: number for number, cell in enumerate(self._cells) for name in cell.binds}
        self.set_up_objects = {
            id(namespace[name]): name
            for name in self._makers
            if name in namespace and _has_identity(namespace[name])
        }

    def order(self, reads: frozenset[str]) -> list[Unit]:
        """Give all units in the order in which they are to be made. Raises CarryError with every refusal."""
        pending = [unit for name in sorted(reads) for unit in self._unit_of(name, (name,))]
        for number, cell in enumerate(self._cells):
            chain = (f"set-up cell {number + 1}",)
            node = self.nodes[("set-up", number)] = Node(chain)
            for name in sorted(cell.reads):
                if self._makers.get(name, number) < number:
                    node.first.append(("set-up", self._makers[name]))
                elif name not in self._makers:
                    node.first += self._unit_of(name, (*chain, name))
            pending += node.first
        self._explore(pending)
        units = [] if self._refusals else _Order(self.nodes, self._refuse_circle).all()
        if self._refusals:
            raise CarryError(list(self._refusals.values()))
        return units

    def modules(self) -> list[types.ModuleType]:
        """The modules that the body and what it leads to name, and those of which they have a function."""
        found: dict[str, types.ModuleType] = {}
        for kind, key in self.nodes:
            if kind != "variable":
                continue
            value = self.namespace[str(key)]
            if isinstance(value, type | types.FunctionType):
                value = sys.modules.get(value.__module__)
            if isinstance(value, types.ModuleType) and vars(value) is not self.namespace:
                found[value.__name__] = value
        return list(found.values())

    def pickler(self, file: io.BytesIO, arrays: Arrays) -> Pickler:
        """Make the pickler of a stream."""
        return Pickler(file, self.namespace, arrays, self.definitions, self.set_up_objects)

    def payload(self, unit: Unit) -> Any:
        """What is pickled for a variable, or for what changed of a class."""
        kind, key = unit
        if kind == "variable":
            return self.namespace[str(key)]
        cls = (
            self.definitions.found[int(key)].cls if kind == "change" else self.definitions.by_value[int(key)]
        )
        changed = changes(self.definitions.found[int(key)]) if kind == "change" else Changes({}, {})
        return cls, changed.attributes, changed.defaults, registration_of(cls)

    def _unit_of(self, name: str, chain: tuple[str, ...]) -> list[Unit]:
        """The unit that makes a name, if anything must be carried for it."""
        if name in self._drop:
            return []
        if name in self._makers:
            return [("set-up", self._makers[name])]
        if name == "get_ipython" or (name == "display" and name not in self.namespace):
            self.unseen.add(name)
        if name in _NOT_VARIABLES or name not in self.namespace:
            return []
        value = self.namespace[name]
        if value is getattr(builtins, name, None) or _is_of_ipython(value):
            return []
        unit: Unit = ("variable", name)
        self.nodes.setdefault(unit, Node(chain))
        return [unit]

    def _is_known(self, name: str) -> bool:
        known = (self.namespace, self._makers, self._drop, _NOT_VARIABLES)
        return any(name in names for names in known) or hasattr(builtins, name)

    def _explore(self, pending: list[Unit]) -> None:
        looked_at: set[Unit] = {("set-up", number) for number in range(len(self._cells))}
        by_value = 0
        while pending or by_value < len(self.definitions.by_value):
            if not pending:
                cls = self.definitions.by_value[by_value]
                if registration_of(cls) is not None:
                    unit: Unit = ("registration", by_value)
                    self.nodes[unit] = Node((cls.__name__,))
                    pending.append(unit)
                by_value += 1
                continue
            unit = pending.pop()
            if unit in looked_at:
                continue
            looked_at.add(unit)
            node = self.nodes[unit]
            if unit[0] == "class":
                self._explore_class(int(unit[1]), node)
            else:
                self._explore_value(unit, node)
            pending += [*node.first, *node.then]

    def _explore_class(self, number: int, node: Node) -> None:
        definition = self.definitions.found[number]
        own = definition.cls.__name__
        self.files.add(definition.statement.filename)
        for name in sorted(definition.names.now - {own}):
            node.first += self._unit_of(name, _longer(node.chain, name))
            if not self._is_known(name):
                reason = f"its definition would have to run again, and it reads {name}, which is no more"
                self._refuse(_longer(node.chain, own), definition.cls, definition.cls, reason)
        for name in sorted(definition.names.later):
            node.then += self._unit_of(name, _longer(node.chain, name))
        change: Unit = ("change", number)
        self.nodes[change] = Node(node.chain, first=[("class", number)])
        node.then.append(change)

    def _explore_value(self, unit: Unit, node: Node) -> None:
        needs = self._needs_of(unit, node.chain)
        if needs is None:
            return
        self.files |= needs.files
        for number in sorted(needs.classes):
            name = self.definitions.found[number].cls.__name__
            self.nodes.setdefault(("class", number), Node(_longer(node.chain, name)))
            node.first.append(("class", number))
        node.first += [("set-up", self._makers[name]) for name in sorted(needs.set_up)]
        for name in sorted(needs.names):
            node.then += self._unit_of(name, _longer(node.chain, name))

    def _needs_of(self, unit: Unit, chain: tuple[str, ...]) -> Needs | None:
        """Pickle a unit for its needs alone; None, with its refusals noted, when it can't be."""
        payload = self.payload(unit)
        broken: dict[int, Any] = {}
        while len(broken) < _MOST_REFUSALS_OF_ONE:
            pickler = self.pickler(io.BytesIO(), Arrays(self._replacement))
            pickler.broken = broken
            try:
                pickler.dump(payload)
            except Exception as error:  # noqa: BLE001 - objects of any library fail in any way
                culprit = pickler.last
                self._refuse(chain, payload, culprit, why_not(error))
                if id(culprit) in broken or culprit is payload:
                    return None
                broken[id(culprit)] = culprit
            else:
                return None if broken else pickler.needs
        return None

    def _refuse(self, chain: tuple[str, ...], payload: Any, culprit: Any, reason: str) -> None:
        name, path = chain[-1], path_to(culprit, payload)
        kind = f"class {culprit.__name__}" if isinstance(culprit, type) else type(culprit).__qualname__
        self._refusals.setdefault((name, kind + reason), Refusal(name, kind, reason, chain, path))

    def _refuse_circle(self, unit: Unit) -> None:
        chain = self.nodes[unit].chain
        reason = "it needs itself before it can be made: its definition reads what is made of it"
        self._refusals.setdefault((chain[-1], reason), Refusal(chain[-1], unit[0], reason, chain))


class _Order:
    """Puts units into an order in which each comes after what must be there first."""

    def __init__(self, nodes: Mapping[Unit, Node], on_circle: Any) -> None:
        self._nodes = nodes
        self._on_circle = on_circle
        self._active: set[Unit] = set()
        self._done: dict[Unit, None] = {}
        self._closures: dict[Unit, frozenset[Unit]] = {}

    def all(self) -> list[Unit]:
        for unit in self._nodes:
            self._visit(unit)
        return list(self._done)

    def _visit(self, unit: Unit) -> None:
        if unit in self._done:
            return
        if unit in self._active:
            self._on_circle(unit)
            return
        self._active.add(unit)
        node = self._nodes[unit]
        for first in node.first:
            self._visit(first)
        for then in node.then:  # as far as that is possible now: what a definition calls may use it at once
            if then not in self._active and not self._needed_first(then) & self._active:
                self._visit(then)
        self._active.discard(unit)
        self._done[unit] = None

    def _needed_first(self, unit: Unit) -> frozenset[Unit]:
        """All that must come before a unit, itself included."""
        if unit not in self._closures:
            self._closures[unit] = frozenset({unit})  # ends circles
            inner = [self._needed_first(first) for first in self._nodes[unit].first]
            self._closures[unit] = frozenset({unit}).union(*inner)
        return self._closures[unit]


def _longer(chain: tuple[str, ...], name: str) -> tuple[str, ...]:
    return chain if chain[-1] == name else (*chain, name)


def _names_of_cell(text: str) -> BodyNames:
    return names_of_body(ast.parse(text).body)


def _is_of_ipython(value: Any) -> bool:
    """Whether a value is what IPython puts in the place of a builtin: the child process has the builtin."""
    return (
        isinstance(value, types.FunctionType)
        and value.__globals__.get("__name__") == "IPython.core.interactiveshell"
    )


def _has_identity(value: Any) -> bool:
    if isinstance(value, type):
        return value.__module__ == "__main__"
    return not isinstance(value, types.ModuleType)
