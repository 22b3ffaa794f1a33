"""Strings that keep the importer of nsys 2025.3 from giving up a process's events: `Domain.pad` says why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .nvtx import Domain

#: Before XLA's own strings, and after each program that it makes while nsys records: more than there are of
#: XLA's own, and than there are other texts in a report (names of threads, mostly).
_FIRST, _AGAIN = 11_000, 2_000
_MADE = "backend_compile_duration"


def pad(domain: Domain) -> None:
    """Register the first strings; to be called before XLA is loaded, where there is a GPU."""
    domain.pad(_FIRST)


def pad_after_compiles(domain: Domain, *, while_: Callable[[], bool] = lambda: True) -> bool:
    """Register more after each program that XLA makes, while `while_` holds; False without JAX."""
    if "jax" not in sys.modules:
        return False
    from jax import monitoring

    def made(event: str, duration_secs: float, **_: Any) -> None:
        if event.endswith(_MADE) and while_():
            domain.pad_again(_AGAIN)

    monitoring.register_event_duration_secs_listener(made)
    return True
