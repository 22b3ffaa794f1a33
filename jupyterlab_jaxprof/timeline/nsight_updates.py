"""Which operation each node of a CUDA graph is for, told by how XLA updates the graph before it launches it.

A graph that was made before recording began shows no more where its kernels come from. But when its buffers
have moved, XLA sets the parameters of its nodes anew, one after the other in the order in which they were
made, each within the range of its operation. An update of all nodes thus names them all.

What a library launches (cuBLAS, say) is captured into a graph of its own, which is one node of the larger one
and is set as one; the nodes in it are numbered after all of the larger, in the order of their graphs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .nsight_activity import Activity, Calls
from .nsight_database import IntegerColumn

UPDATE = re.compile(r"cu(?:da)?GraphExec\w*NodeSetParams\w*")
_CHILD = re.compile(r"cu(?:da)?GraphExecChildGraphNodeSetParams\w*")
_CAPTURE = re.compile(r"cu(?:da)?StreamBeginCapture\w*")
_MEMORY = re.compile(r"cu(?:da)?Mem(?:set|cpy)\w*")


class Updates:
    """The updates of graphs, by the launch that follows on the same thread."""

    def __init__(self, calls: Calls, names: Sequence[str], launches: IntegerColumn) -> None:
        self._calls = calls

        def named(pattern: re.Pattern[str]) -> NDArray[np.bool_]:
            return np.isin(calls.name, [n for n, name in enumerate(names) if pattern.fullmatch(name)])

        self._of_graphs, self._captures = named(_CHILD), np.flatnonzero(named(_CAPTURE))
        self._enqueued = np.flatnonzero(calls.launches | named(_MEMORY))
        rows = np.flatnonzero(named(UPDATE))
        rows = rows[np.lexsort((calls.start[rows], calls.thread[rows]))]
        launches = launches[np.lexsort((calls.start[launches], calls.thread[launches]))]
        launch_of = np.full(len(rows), -1, dtype=np.int64)
        for thread in np.unique(calls.thread[rows]):
            own = np.flatnonzero(calls.thread[rows] == thread)
            there = launches[calls.thread[launches] == thread]
            place = np.searchsorted(calls.start[there], calls.start[rows[own]])
            known = place < len(there)
            launch_of[own[known]] = there[place[known]]
        by_launch = np.argsort(launch_of, kind="stable")
        self.rows, self._launches = rows[by_launch], launch_of[by_launch]

    def before(self, launch: int) -> IntegerColumn:
        """Give the calls that set a node before this launch, in time."""
        first, last = np.searchsorted(self._launches, [launch, launch + 1])
        return self.rows[first:last]

    def of_nodes(self, launch: int, nodes: IntegerColumn) -> IntegerColumn | None:
        """Give for each node of a graph (in order) the call that set it before this launch.

        None where not all of them were set.
        """
        rows = self.before(launch)
        alone = ~self._of_graphs[rows]
        inner = np.repeat(rows[~alone], [self._captured(row) for row in rows[~alone].tolist()])
        setting = np.concatenate([rows[alone], inner])
        if len(setting) != len(nodes):
            return None
        if len(inner) and not np.array_equal(nodes[: alone.sum()] & 0xFFFFFFFF, np.flatnonzero(alone)):
            return None
        return setting

    def _captured(self, row: int) -> int:
        """Count what was captured into the graph that this call sets: the last captured on its thread."""
        calls = self._calls

        def starts(of: IntegerColumn) -> IntegerColumn:
            own = of[calls.thread[of] == calls.thread[row]]
            return calls.start[own[calls.start[own] < calls.start[row]]]

        begins = starts(self._captures)
        return int(np.count_nonzero(starts(self._enqueued) > begins.max())) if len(begins) else 0


def graphs(activity: Activity, rows: IntegerColumn) -> list[IntegerColumn]:
    """Group rows by the graph that they are nodes of."""
    key = (activity.process[rows] << 32) + activity.graph[rows]
    order = np.argsort(key, kind="stable")
    borders = np.flatnonzero(np.diff(key[order])) + 1
    return [rows[part] for part in np.split(order, borders)] if len(rows) else []
