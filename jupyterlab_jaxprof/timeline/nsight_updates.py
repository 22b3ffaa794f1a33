"""Which operation each node of a CUDA graph is for, told by how XLA updates the graph before it launches it.

A graph that was made before recording began shows no more where its kernels come from. But when its buffers
have moved, XLA sets the parameters of its nodes anew, one after the other in the order in which they were
made, each within the range of its operation. An update of all nodes thus names them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .nsight_activity import Activity, Calls
from .nsight_database import IntegerColumn

UPDATE = re.compile(r"cu(?:da)?GraphExec\w*NodeSetParams\w*")


class Updates:
    """The updates of graphs, by the launch that follows on the same thread."""

    def __init__(self, calls: Calls, names: Sequence[str], launches: IntegerColumn) -> None:
        kinds = [number for number, name in enumerate(names) if UPDATE.fullmatch(name)]
        rows = np.flatnonzero(np.isin(calls.name, kinds))
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

    def counts(self, launches: IntegerColumn) -> IntegerColumn:
        """Tell how many nodes were set before each launch."""
        return np.searchsorted(self._launches, launches, side="right") - np.searchsorted(
            self._launches, launches
        )


def graphs(activity: Activity, rows: IntegerColumn) -> list[IntegerColumn]:
    """Group rows by the graph that they are nodes of."""
    key = (activity.process[rows] << 32) + activity.graph[rows]
    order = np.argsort(key, kind="stable")
    borders = np.flatnonzero(np.diff(key[order])) + 1
    return [rows[part] for part in np.split(order, borders)] if len(rows) else []
