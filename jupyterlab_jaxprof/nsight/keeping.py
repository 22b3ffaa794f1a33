"""What nsys recorded becomes a capture: moved to its place, read, diagnosed, published."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Draft, Record, Status, disk
from jupyterlab_jaxprof.tracing import Outcome, Source
from jupyterlab_jaxprof.tracing.contents import diagnosed, read_later
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts
from jupyterlab_jaxprof.tracing.trace import publish

from .gather import Gathered

TWICE = "Interrupted twice; nothing was kept."
_REPORT, _STREAM = ".nsys-rep", ".qdstrm"


def keep(draft: Draft, gathered: Gathered) -> Path | None:
    """Move the report, or the stream, from the working directory to where it stays in the draft."""
    found = gathered.report or gathered.stream
    if found is None:
        return None
    path = draft.directory / f"{draft.session}{_REPORT if gathered.report is not None else _STREAM}"
    shutil.move(found, path)
    disk.restrict(path, disk.FILE_MODE)
    return path


def publish_report(
    draft: Draft,
    path: Path,
    outcome: Outcome,
    source: Source,
    environment: Mapping[str, Any],
    *,
    say: Callable[[str], None],
    held: HeldInterrupts,
) -> Record | None:
    """Diagnose what was kept, and publish the draft; raises StoreError when it can't be written.

    An interrupt ends the reading, the second of all gives the capture up: None, and nothing is published.
    """
    examined, problem = None, ""
    if path.suffix != _STREAM:
        say("Reading the report ...")
        try:
            with held.let_through():
                examined, problem = diagnosed([path], draft.reference, say=say)
        except KeyboardInterrupt:
            problem = f"Interrupted while it was read; the report is kept. {read_later(draft.reference)}"
    if held.count > 1:
        outcome.worsen(Status.INTERRUPTED, TWICE)
        return None
    outcome.notices += [problem] if problem else []
    outcome.notices += _devices_notices(environment.get("devices") or ())
    return publish(draft, outcome, source, environment, examined)


def _devices_notices(devices: Sequence[Mapping[str, Any]]) -> list[str]:
    platforms = {str(device.get("platform")) for device in devices}
    if platforms and platforms <= {"cpu"}:
        return [
            "JAX ran on the CPU. Nsight Systems records what NVIDIA's GPUs do: this report holds the ranges "
            "of the steps and little else."
        ]
    return []
