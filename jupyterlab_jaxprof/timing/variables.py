"""The environment variables that JAX reads when it starts its devices, and whether they came too late.

JAX reads them when it starts the devices' backend, at its first use. Set after that they do nothing, and
nothing says so.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NAMES = (
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "TF_GPU_ALLOCATOR",
)
"""Those that decide how JAX takes a device's memory."""

STARTING = (*NAMES, "XLA_FLAGS", "JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES")
"""All that have no effect once the devices' backend has started."""


class VariableWatch:
    """Remembers the variables as they were when JAX read them."""

    def __init__(self) -> None:
        self._read: dict[str, str] | None = None

    def on_record(self, record: logging.LogRecord) -> None:
        """Hear that a backend starts."""
        if str(record.msg).startswith("Initializing backend"):
            self._read = _now()

    def late(self, names: Sequence[str] = NAMES) -> dict[str, tuple[str | None, str | None]]:
        """Give those of `names` that were set too late: what JAX has read, and what they are now."""
        before = self.read()
        if before is None:
            return {}
        now = _now()
        return {
            name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)
        }

    def problems(self) -> list[str]:
        """Say so of each variable of memory that was set too late, and what to do."""
        return [
            f"{what} Restart the kernel and set it before JAX is imported." for what in self.sentences(NAMES)
        ]

    def sentences(self, names: Sequence[str] = STARTING) -> list[str]:
        """Say so of each of `names` that was set too late."""
        said: list[str] = []
        for name, (before, now) in self.late(names).items():
            change = f"is set to {now!r} now" if now is not None else "was removed"
            had = "not set" if before is None else repr(before)
            said.append(
                f"{name} {change}, but JAX read it when its first operation ran, and it was {had} then: the "
                "change does nothing."
            )
        return said

    def read(self) -> dict[str, str] | None:
        """Give the variables that were set when JAX read them; None when it hasn't yet."""
        if self._read is None and backend_has_started():
            return _at_start_of_process()  # it had started before we watched
        return self._read

    def to_dict(self) -> dict[str, Any]:
        """Give the variables that are set, and those set too late, as plain values."""
        now = {name: value for name, value in _now().items() if name in NAMES}
        return {"set": now, "late": {name: list(values) for name, values in self.late().items()}}


def _now() -> dict[str, str]:
    return _chosen(os.environ)


def _chosen(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in STARTING if name in environment}


def _at_start_of_process() -> dict[str, str]:
    try:
        content = Path("/proc/self/environ").read_bytes()
    except OSError:  # not on Linux: nothing is known, so nothing is said
        return _now()
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    return _chosen(
        {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
    )


def backend_has_started() -> bool:
    """Whether JAX has started its devices in this process; asking starts nothing."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


VARIABLES = VariableWatch()


def on_record(record: logging.LogRecord) -> None:
    """Take what taps.py hears."""
    VARIABLES.on_record(record)
