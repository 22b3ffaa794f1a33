"""Profile JAX on NVIDIA GPUs from a notebook cell.

This module holds what IPython and Jupyter look for. It imports nothing heavy, for every kernel of the
environment imports it when it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from jupyterlab_jaxprof.captures import Capture
    from jupyterlab_jaxprof.timing import Plan, TimedResult, time, timer

__all__ = [
    "Capture",
    "Plan",
    "TimedResult",
    "__version__",
    "load_ipython_extension",
    "time",
    "timer",
    "unload_ipython_extension",
]

__version__: str


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Add the magics to a shell; called by `%load_ext jupyterlab_jaxprof` and when a kernel starts.

    The history of what JAX compiles begins here, without importing JAX.
    """
    from jupyterlab_jaxprof import timing
    from jupyterlab_jaxprof.magics import load

    load(ipython)
    timing.watch()


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Take the magics out of a shell and put back what they replaced."""
    from jupyterlab_jaxprof import timing
    from jupyterlab_jaxprof.magics import unload

    unload(ipython)
    timing.unwatch()


def _jupyter_labextension_paths() -> list[dict[str, str]]:  # pyright: ignore[reportUnusedFunction]
    return [{"src": "labextension", "dest": "jupyterlab-jaxprof"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
    from jupyterlab_jaxprof.server import JaxProfApp

    return [{"module": "jupyterlab_jaxprof.server", "app": JaxProfApp}]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("jupyterlab-jaxprof")
        except metadata.PackageNotFoundError:  # a source tree that is not installed; Jupyter's servers ask
            return "unknown"
    if name == "Capture":
        from jupyterlab_jaxprof.captures import Capture

        return Capture
    if name in ("TimedResult", "Plan", "time", "timer"):
        from jupyterlab_jaxprof import timing

        return getattr(timing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
