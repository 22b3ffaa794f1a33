"""The magics. Each has a module of its own here, imported when the magic is first used."""

from __future__ import annotations

from jupyterlab_jaxprof.magics.registry import MagicStatus, load, status, unload

__all__ = ["MagicStatus", "load", "status", "unload"]
