"""Imports run downwards only, and nothing imports jax before it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jupyterlab_jaxprof"
NAME = PACKAGE.name

# What each room may import from the others: docs/architecture.md
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": {"magics", "timing", "captures", "server"},
    "magics": {"cell", "timing", "tracing", "nsight", "reports", "cards", "captures", "environment"},
    "cli": {"tracing", "nsight", "reports", "cards", "captures", "environment"},
    "timing": {"cell", "cards", "captures", "environment"},
    "cell": set(),
    "tracing": {"reports", "timeline", "captures", "environment"},
    "reports": {"diagnosis", "timeline", "cards", "captures", "environment"},
    "diagnosis": {"timeline"},
    "timeline": {"environment"},
    "cards": {"captures", "environment"},
    "captures": set(),
    "environment": set(),
    "server": {"captures", "environment"},
    "nsight": {"cell", "timing", "tracing", "reports", "captures", "environment"},
}
PRIVATE_INTERFACES = {
    "tracing/profiler.py": {"jax"},
    "cell/barrier.py": {"jax"},
    "timing/monitoring.py": {"jax"},
    "nsight/carry/internals.py": {"jax"},
    "server/viewers/xprof_app.py": {"xprof"},
    "server/viewers/tensorboard_app.py": {"tensorboard"},
}
# Rooms that compute in numpy; whoever uses one imports it where it is used, not at a kernel's start.
NUMPY_ROOMS = {"timeline", "diagnosis"}
HEAVY = {"jax", "jaxlib", "numpy", "xprof", "tensorboard", "pandas"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "labextension" not in path.parts)


def imported(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """The full dotted names that a module imports, relative imports resolved."""
    tree = ast.parse(path.read_text())
    package = (NAME, *path.relative_to(PACKAGE).with_suffix("").parts)[:-1]
    for node in top_level(tree) if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            parts = [*base, *(node.module.split(".") if node.module else ())]
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run at import: not inside functions, not under `if TYPE_CHECKING`."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def room(dotted: str) -> str | None:
    """The room of ours that a dotted name lies in; None for other packages."""
    parts = dotted.split(".")
    if parts[0] != NAME:
        return None
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "__init__"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    assert own in MAY_IMPORT, f"{own} is not a room of docs/architecture.md"
    allowed = MAY_IMPORT[own] | {own}
    upwards = {name for name in imported(path) if (other := room(name)) and other not in allowed}
    assert not upwards, f"{own} may import only {sorted(allowed)}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_are_not_imported_at_import_time(path: Path) -> None:
    allowed = PRIVATE_INTERFACES.get(str(path.relative_to(PACKAGE)), set())
    names = set(imported(path, top_level_only=True))
    if path.relative_to(PACKAGE).parts[0] in NUMPY_ROOMS:
        allowed = allowed | {"numpy"}
    else:
        assert not {name for name in names if room(name) in NUMPY_ROOMS}
    assert {name.split(".")[0] for name in names} & HEAVY <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_private_interfaces_stand_in_their_own_modules(path: Path) -> None:
    allowed = PRIVATE_INTERFACES.get(str(path.relative_to(PACKAGE)), set())
    private = {
        name.split(".")[0]
        for name in imported(path)
        if name.split(".")[0] in HEAVY and any(part.startswith("_") for part in name.split("."))
    }
    assert private <= allowed
    if "server" in path.relative_to(PACKAGE).parts[0]:
        assert not {name for name in imported(path) if name.split(".")[0] in {"jax", "jaxlib"}}


def test_no_circular_imports_between_modules() -> None:
    names = {".".join((NAME, *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in modules()}
    graph = {
        name: {
            target
            for dotted in imported(path, top_level_only=True)
            for target in (dotted, dotted.rpartition(".")[0])
            if target in names and target != name
        }
        for name, path in names.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())
