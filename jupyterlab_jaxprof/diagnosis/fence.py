"""This project's own fence, which waits for all that a cell enqueued: it counts nowhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jupyterlab_jaxprof.timeline.intervals import NONE, Intervals, union, union_of
from jupyterlab_jaxprof.timeline.model import Timeline

_FENCE = "jaxprof_fence"


def without_fence(timeline: Timeline) -> tuple[Timeline, Intervals]:
    """Give the timeline without the fence's rows, and when the fence ran, on the host or on a device."""
    numbers = [number for number, text in enumerate(timeline.texts) if _FENCE in text]
    if not numbers:
        return timeline, NONE
    named = np.zeros(len(timeline.texts), dtype=np.bool_)
    named[numbers] = True
    ops, ranges, compiles = timeline.ops, timeline.ranges, timeline.compiles
    fence_ops, fence_ranges = named[ops.module], named[ranges.name] | named[ranges.detail]
    if not (fence_ops.any() or fence_ranges.any() or named[compiles.function].any()):
        return timeline, NONE
    launched = np.isin(timeline.calls.correlation, ops.correlation[fence_ops & (ops.correlation != 0)])
    when = union_of(ops.start_ns[fence_ops], ops.duration_ns[fence_ops]) | union_of(
        ranges.start_ns[fence_ranges], ranges.duration_ns[fence_ranges]
    )
    new_row = np.cumsum(~fence_ops) - 1
    collectives = timeline.collectives.take(~fence_ops[timeline.collectives.op])
    return replace(
        timeline,
        ops=ops.take(~fence_ops),
        ranges=ranges.take(~fence_ranges),
        calls=timeline.calls.take(~launched),
        compiles=compiles.take(~named[compiles.function]),
        collectives=replace(collectives, op=new_row[collectives.op]),
    ), union(when.start_ns, when.end_ns)
