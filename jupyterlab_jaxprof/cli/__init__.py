"""`jaxprof`: captures, traces and Nsight reports in a terminal, and in continuous integration."""

from __future__ import annotations

from .main import main

__all__ = ["main"]
