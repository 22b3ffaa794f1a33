"""Timing and memory that can be believed: clocks and statistics, compiles, transfers, the timed result.

Importing this imports neither JAX nor NumPy: `watch` is called when a kernel starts, so that the history of
compiles begins with the first of them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timing.measurement import measure
    from jupyterlab_jaxprof.timing.repeats import Plan
    from jupyterlab_jaxprof.timing.result import TimedResult
    from jupyterlab_jaxprof.timing.scripts import time, timer

__all__ = ["Plan", "TimedResult", "measure", "time", "timer", "unwatch", "watch"]

_LAZY = {
    "Plan": "repeats",
    "TimedResult": "result",
    "measure": "measurement",
    "time": "scripts",
    "timer": "scripts",
}


def watch() -> None:
    """Begin the history of compiles, without importing JAX; again is no harm."""
    from jupyterlab_jaxprof.timing.taps import BACKENDS, LOWERINGS

    LOWERINGS.install()
    BACKENDS.install()
    if "jax.monitoring" in sys.modules:
        from jupyterlab_jaxprof.timing.compiles import LOG

        LOG.listen()


def unwatch() -> None:
    """End it, and leave JAX and its log as they were."""
    from jupyterlab_jaxprof.timing.taps import BACKENDS, LOWERINGS

    LOWERINGS.remove()
    BACKENDS.remove()
    compiles = sys.modules.get(f"{__name__}.compiles")
    if compiles is not None:
        compiles.LOG.unlisten()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
