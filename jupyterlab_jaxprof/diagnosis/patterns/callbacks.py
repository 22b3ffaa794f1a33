"""Host callbacks inside a compiled program: the device waits until Python has answered."""

from __future__ import annotations

import re

import numpy as np

from jupyterlab_jaxprof.timeline.model import RangeKind

from ..analysis import Analysis
from ..finding import Finding
from ..gaps import Cause
from ..units import count, milliseconds, names, percent

ID = "host-callback"
_NAME = re.compile(r"((?:pure|io|debug)_callback|debug_print|python_(?:gpu|cpu)_callback)")
_WRITTEN = {
    "pure_callback": "`jax.pure_callback`",
    "io_callback": "`jax.experimental.io_callback`",
    "debug_callback": "`jax.debug.print` or `jax.debug.callback`",
    "debug_print": "`jax.debug.print`",
}


def find(analysis: Analysis) -> list[Finding]:
    """Tell how long devices waited for callbacks."""
    if not analysis.devices:
        return []
    lost_ns = analysis.idle_ns(Cause.CALLBACK)
    level = analysis.level(lost_ns)
    if level is None:
        return []
    host = analysis.hosts[analysis.devices[0].process]
    steps = analysis.step_count
    every = bool(steps) and analysis.in_every_step(host.callback.start_ns)
    when = "in every step" if every else count(len(host.callback), "time")
    kinds = _kinds(analysis)
    written = " and ".join(_WRITTEN.get(kind, f"`{kind}`") for kind in kinds) or "a callback"
    modules = _modules(analysis)
    return [
        Finding(
            id=ID,
            title=f"A host callback inside the compiled program holds the device up {when}: "
            f"{percent(analysis.share(lost_ns))} of the time",
            level=level,
            lost_ms=lost_ns / 1e6,
            share=analysis.share(lost_ns),
            evidence=[
                f"{written}{f' in {names(modules)}' if modules else ''}: "
                f"{count(len(host.callback), 'call')}, {milliseconds(host.callback.total_ns)} in all.",
                f"The device rested {milliseconds(lost_ns)} meanwhile"
                + (f", {milliseconds(lost_ns / steps)} a step (mean)." if steps else "."),
            ],
            ranges=analysis.longest(analysis.idle[0].of(Cause.CALLBACK), "waiting for the callback"),
            meaning="The device stops at the callback until its arguments have been copied to the host, "
            "Python has run, and the result has been copied back; the program can't be one CUDA graph "
            "either.",
            next=[
                "Compute it on the device with `jax.numpy` inside the program, if it can be.",
                "Return the value from the jitted function and handle it outside, some steps later.",
                "Call back less often: `jax.lax.cond(step % 100 == 0, ...)` around it; remove "
                "`jax.debug.print` from code that must be fast.",
            ],
        )
    ]


def _kinds(analysis: Analysis) -> list[str]:
    timeline, ranges = analysis.timeline, analysis.timeline.ranges
    numbers = np.flatnonzero(np.bincount(ranges.name[ranges.kind == RangeKind.RUNTIME]))
    found = (_NAME.search(timeline.text(int(number))) for number in numbers)
    return list(dict.fromkeys(match.group(1) for match in found if match))


def _modules(analysis: Analysis) -> list[str]:
    """The programs of the operations that came right after a callback's gap."""
    timeline, ops, use = analysis.timeline, analysis.timeline.ops, analysis.devices[0]
    gaps = analysis.idle[0].of(Cause.CALLBACK)
    after = np.searchsorted(ops.start_ns[use.rows], gaps.end_ns, side="left")
    rows = use.rows[np.unique(after[after < len(use.rows)])]
    numbers, counts = np.unique(ops.module[rows], return_counts=True)
    return [timeline.text(int(one)) for one in numbers[np.argsort(-counts)] if one][:2]
