"""The Jupyter server extension: captures over REST, and the viewers' processes behind it.

Nothing here imports JAX: a Jupyter server must start without a GPU and must not take the GPU's memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyterlab_jaxprof.server.app import JaxProfApp

__all__ = ["JaxProfApp"]


def __getattr__(name: str) -> Any:
    """Import the application when asked for: the viewers' processes import this package without it."""
    if name == "JaxProfApp":
        from jupyterlab_jaxprof.server.app import JaxProfApp

        return JaxProfApp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _jupyter_server_extension_points() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
    from jupyterlab_jaxprof.server.app import JaxProfApp

    return [{"module": "jupyterlab_jaxprof.server", "app": JaxProfApp}]
