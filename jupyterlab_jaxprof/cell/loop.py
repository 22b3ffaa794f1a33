"""A body that runs many times in a row, at the cost of a `for` statement: some 20 ns a run.

Executing the body's code each time would cost five times as much, which counts for a short body.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Generator
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.cell.source import Program

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# A cell's code keeps its names in the user's namespace, the loop's own among them while it runs.
_RUNS, _RUN = "_jaxprof_runs", "_jaxprof_run"


def compile_loop(shell: InteractiveShell, program: Program) -> CodeType | None:
    """Compile a body as the body of a loop, shown values left out.

    None when it can't stand in one: `from __future__` belongs at the top, and Python nests blocks 20 deep.
    """
    loop = ast.For(
        target=ast.Name(_RUN, ast.Store()),
        iter=ast.Name(_RUNS, ast.Load()),
        body=list(program.nodes),
        orelse=[],
        lineno=1,
        col_offset=0,
    )
    compiler: Any = shell.compile  # its type names text only; it takes syntax trees as well
    try:
        with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0):
            return compiler(
                ast.fix_missing_locations(ast.Module([loop], [])), program.units[0].co_filename, "exec"
            )
    except SyntaxError:
        return None


@contextmanager
def loop_names(names: dict[str, Any], loops: int) -> Generator[None]:
    """Put what the compiled loop needs into the namespace, for `loops` runs, and take it out at the end."""
    names[_RUNS] = itertools.repeat(None, loops)
    try:
        yield
    finally:
        for name in (_RUNS, _RUN):
            names.pop(name, None)
