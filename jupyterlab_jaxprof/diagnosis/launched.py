"""What the devices do for the host's ranges: that which was launched within them, whenever it runs."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from .analysis import Analysis

#: Threads on which the runtime launches what other threads have asked for.
_OF_RUNTIME = re.compile(r"XlaLauncher|py_xla|pjrt")


class Launches:
    """The operations of the window whose launch is known."""

    def __init__(self, analysis: Analysis) -> None:
        timeline = analysis.timeline
        ops, calls = timeline.ops, timeline.calls
        rows = np.concatenate([np.zeros(0, dtype=np.intp), *(use.rows for use in analysis.devices)])
        known = np.flatnonzero(calls.correlation > 0)
        known = known[np.argsort(calls.correlation[known], kind="stable")]
        place = np.searchsorted(calls.correlation[known], ops.correlation[rows])
        place = np.minimum(place, max(len(known) - 1, 0))
        found = ops.correlation[rows] > 0
        if len(known):
            found &= calls.correlation[known][place] == ops.correlation[rows]
            call = known[place[found]]
        else:
            found[:] = False
            call = known[:0]
        self.all_known = bool(np.all(found))
        self._duration_ns = ops.duration_ns[rows[found]]
        self._time_ns, self._thread = calls.start_ns[call], calls.thread[call]
        self._process = np.array([one.process for one in timeline.threads], dtype=np.int64)
        self._of_runtime = np.array(
            [_OF_RUNTIME.search(one.name) is not None for one in timeline.threads], dtype=np.bool_
        )

    def within_ns(
        self, thread: NDArray[np.integer], start_ns: NDArray[np.float64], end_ns: NDArray[np.float64]
    ) -> float:
        """Add up the operations that were launched within ranges, on their threads or for them."""
        inside = np.zeros(len(self._duration_ns), dtype=np.bool_)
        if not len(inside):
            return 0.0
        for one in np.unique(thread).tolist():
            own = np.flatnonzero(thread == one)
            own = own[np.argsort(start_ns[own], kind="stable")]
            last_end_ns = np.maximum.accumulate(end_ns[own])
            place = np.searchsorted(start_ns[own], self._time_ns, side="right") - 1
            open_ns = np.where(place >= 0, last_end_ns[place], -np.inf)
            same = self._thread == one
            same |= self._of_runtime[self._thread] & (self._process[self._thread] == self._process[one])
            inside |= same & (self._time_ns < open_ns)
        return float(self._duration_ns[inside].sum())
