"""A magic for tests: `%%probe` runs its cell through the cell room and nothing else.

`%load_ext tests.support.probe` registers it beside the package's own magics, as a line in their table would.
"""

from __future__ import annotations

from jupyterlab_jaxprof.cell import Cell, Run
from jupyterlab_jaxprof.magics.registry import TABLE, Magic, load, unload

HELP = "%%probe: run the cell below it."
PROBE = Magic("probe", "Run a cell.", __name__, ("cell",), aliases=("probe_too",))

#: Facts about the runs so far, without their values and errors: nothing of a cell is kept here.
runs: list[Run] = []


async def cell_magic(shell, line, body):
    __tracebackhide__ = True
    cell = Cell.from_magic(shell, "probe", line, body)
    run = await cell.run()
    runs.append(Run(None, None, run.started_ns, run.returned_ns, run.done_ns, run.interrupted, run.notices))
    return run.result()


def load_ipython_extension(shell):
    unload(shell)
    load(shell, (*TABLE, PROBE))
