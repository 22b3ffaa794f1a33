"""One cell's body: compiled once, run in the user's namespace, waited for until all it enqueued has ended."""

from __future__ import annotations

from jupyterlab_jaxprof.cell.barrier import Barrier
from jupyterlab_jaxprof.cell.cell import Cell, Run
from jupyterlab_jaxprof.cell.driver import drive, drive_on_loop
from jupyterlab_jaxprof.cell.errors import described
from jupyterlab_jaxprof.cell.notebook import cell_id, kernel_id, line_was_added, notebook_name
from jupyterlab_jaxprof.cell.source import check, needs_await

__all__ = [
    "Barrier",
    "Cell",
    "Run",
    "cell_id",
    "check",
    "described",
    "drive",
    "drive_on_loop",
    "kernel_id",
    "line_was_added",
    "needs_await",
    "notebook_name",
]
