"""A plan of what to carry, and its writing to a folder."""

from __future__ import annotations

import ast
import io
import json
import linecache
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jupyterlab_jaxprof.nsight.carry.arrays import Arrays, Replacement
from jupyterlab_jaxprof.nsight.carry.modules import were
from jupyterlab_jaxprof.nsight.carry.names import names_of_body
from jupyterlab_jaxprof.nsight.carry.pickler import Pickler
from jupyterlab_jaxprof.nsight.carry.planner import Planner, Unit
from jupyterlab_jaxprof.nsight.carry.rebuild import numbered
from jupyterlab_jaxprof.nsight.carry.refusal import CarryError
from jupyterlab_jaxprof.nsight.carry.sources import Sources
from jupyterlab_jaxprof.nsight.carry.surroundings import (
    last_of_all,
    settings_with_devices,
    surroundings,
    transfers_allowed,
)

STEPS, PICKLES = "steps.json", "pickles"
_SPARE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Options:
    """What the user asked for beside the plain carrying.

    `drop`: variables that are left out. `set_up`: the Python texts of cells that the child process runs
    before the body; what they bind is not carried. `shapes_only`: arrays of `large_bytes` and more, and
    deleted ones, become "zeros" or, where their type is floating, "random" numbers from 0 to 1.
    """

    drop: frozenset[str] = frozenset()
    set_up: tuple[str, ...] = ()
    shapes_only: Literal["", "zeros", "random"] = ""
    large_bytes: int = 1024 * 1024


@dataclass(frozen=True)
class Plan:
    """All that goes to the child process. It holds the arrays themselves, not copies, until it is written.

    `variables` are the notebook's that are carried, `rebinds` those names that the body binds anew, by more
    than an import: they do not come back. `size_bytes` is what `write` takes on disk.
    """

    variables: tuple[str, ...]
    rebinds: tuple[str, ...]
    classes: Mapping[int, type]
    _steps: str
    _pickles: bytes
    _arrays: Arrays

    @property
    def size_bytes(self) -> int:
        """What the plan takes on disk."""
        return len(self._pickles) + len(self._steps) + self._arrays.size_bytes

    def write(self, folder: Path, progress: Callable[[int, int], None] = lambda done, all_: None) -> None:
        """Write it all into a folder that is empty or does not exist; readable by the user alone.

        `progress` is called with the bytes written so far and all bytes. Raises CarryError when the disk is
        too small, OSError for what else the disk refuses.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        total = self.size_bytes
        free = shutil.disk_usage(folder).free
        if free < total + _SPARE_BYTES:
            smaller = (
                ", or send zeros in place of big arrays with --shapes-only" if free >= _SPARE_BYTES else ""
            )
            raise CarryError(
                sentence=f"A capture here needs {_megabytes(total + _SPARE_BYTES)} ({_megabytes(total)} for "
                f"the variables that the cell needs, the rest for nsys's files), and the disk of {folder} "
                f"has {_megabytes(free)} free. Free some{smaller}."
            )
        (folder / PICKLES).write_bytes(self._pickles)
        (folder / STEPS).write_text(self._steps)
        done = len(self._pickles) + len(self._steps)
        progress(done, total)

        def on_bytes(more: int) -> None:
            nonlocal done
            done += more
            progress(done, total)

        with transfers_allowed():
            self._arrays.write(folder, on_bytes)


def plan(
    namespace: Mapping[str, Any],
    body: str | Sequence[ast.stmt],
    *,
    sources: Sources | None = None,
    options: Options | None = None,
) -> Plan:
    """Plan what a body needs from the notebook, transitively. Runs nothing and writes nothing.

    `namespace` is the notebook's own (`shell.user_ns`), `body` Python: its text or its statements, magics
    transformed. Raises CarryError with every variable that can't be carried, and SyntaxError.
    """
    options = options or Options()
    statements = ast.parse(body).body if isinstance(body, str) else list(body)
    names = names_of_body(statements)
    replacement = Replacement(options.shapes_only, options.large_bytes) if options.shapes_only else None
    planner = Planner(namespace, sources or Sources(), options.drop, options.set_up, replacement)
    stream, arrays = io.BytesIO(), Arrays(replacement)
    first = surroundings(), settings_with_devices()
    with transfers_allowed():
        units = planner.order(names.reads)
        steps = _pickle_all(units, planner, planner.pickler(stream, arrays), options, first)
    said = {
        "steps": steps,
        "files": {name: text for name in sorted(planner.files) if (text := _text(name)) is not None},
        "needs_ipython": "get_ipython" in planner.unseen,
        "needs_display": "display" in planner.unseen,
    }
    return Plan(
        variables=tuple(sorted(str(key) for kind, key in units if kind == "variable")),
        rebinds=tuple(sorted(names.assigns & set(namespace))),
        classes={
            **{definition.number: definition.cls for definition in planner.definitions.found},
            **numbered(planner.definitions.by_value),
        },
        _steps=json.dumps(said),
        _pickles=stream.getvalue(),
        _arrays=arrays,
    )


def _pickle_all(
    units: Sequence[Unit], planner: Planner, pickler: Pickler, options: Options, first: tuple[Any, Any]
) -> list[dict[str, Any]]:
    """Pickle all in its order; gives the steps in which the child process reads it."""
    steps: list[dict[str, Any]] = [{"do": "surroundings"}, {"do": "settings"}]
    for settings in first:
        pickler.dump(settings)
    for unit in units:
        if unit[0] in ("variable", "change", "registration"):
            pickler.dump(planner.payload(unit))
        steps.append(_step(unit, planner, options))
    pickler.dump(planner.definitions.by_value)
    steps.append({"do": "by-value"})
    pickler.dump(last_of_all())
    return [*steps, {"do": "last"}, {"do": "modules", "were": were(planner.modules())}]


def _step(unit: Unit, planner: Planner, options: Options) -> dict[str, Any]:
    """One step of the child process, in plain values."""
    kind, key = unit
    if kind == "variable":
        name = str(key)
        return {"do": "variable", "name": name, "type": type(planner.namespace[name]).__qualname__}
    if kind == "set-up":
        number = int(key)
        return {"do": "run", "text": options.set_up[number], "filename": f"<set-up cell {number + 1}>"}
    if kind == "class":
        statement = planner.definitions.found[int(key)].statement
        return {
            "do": "define",
            "number": key,
            "name": statement.node.name,
            "text": statement.text,
            "filename": statement.filename,
            "flags": statement.flags,
        }
    return {"do": "class", "name": planner.nodes[unit].chain[-1]}


def _text(filename: str) -> str | None:
    """The text of a cell, for tracebacks; None for a file, which the child process reads itself."""
    if Path(filename).is_file():
        return None
    return "".join(linecache.getlines(filename)) or None


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
