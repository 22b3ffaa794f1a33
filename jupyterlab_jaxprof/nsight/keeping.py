"""What nsys recorded becomes a capture: moved to its place, read, diagnosed, published."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Draft, Record, Status, disk
from jupyterlab_jaxprof.tracing import Outcome, Source
from jupyterlab_jaxprof.tracing.contents import diagnosed, read_later
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts
from jupyterlab_jaxprof.tracing.trace import publish

from .gather import Gathered
from .scrub import Scrubbed, scrub

TWICE = "Interrupted twice; nothing was kept."
#: In place of names of variables: nothing is removed from the report.
ALL_VARIABLES = "all"
_REPORT, _STREAM = ".nsys-rep", ".qdstrm"
_MOST_NAMES = 5
_LARGE_BYTES = 50_000_000


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
    keep_env: Collection[str] = (),
) -> Record | None:
    """Remove secrets from what was kept, diagnose it, and publish the draft.

    Raises StoreError when it can't be written. `keep_env` names the variables whose values may stay. An
    interrupt ends the reading, the second of all gives the capture up: None, and nothing is published.
    """
    if ALL_VARIABLES not in keep_env:
        outcome.notices += _scrubbed(path, keep_env, say, held)
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


def _scrubbed(
    path: Path, keep_env: Collection[str], say: Callable[[str], None], held: HeldInterrupts
) -> list[str]:
    """Remove secrets from a report; gives sentences on what was removed, and on what may be left."""
    doing = "Removing secrets from the report"
    say(f"{doing} ...")
    large = path.stat().st_size > _LARGE_BYTES
    try:
        with held.let_through():
            done = scrub(
                path,
                os.environ,
                frozenset(keep_env),
                lambda part: say(f"{doing}: {part:.0%}") if large else None,
            )
    except KeyboardInterrupt:
        done = Scrubbed(problem="it was interrupted")
    except OSError as error:
        done = Scrubbed(problem=error.strerror or str(error))
    if done.problem:
        return [
            f"{path.name} may hold secrets of this machine's processes, in their environments and command "
            f"lines, and they could not all be removed: {done.problem}. Don't hand it on."
        ]
    if not done.names:
        return []
    more = len(done.names) - _MOST_NAMES
    listed = ", ".join(done.names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return [
        f"nsys had recorded what may be secrets of this machine's processes ({listed}): their values were "
        "removed from the report. One under a name that tells nothing is not found."
    ]


def _devices_notices(devices: Sequence[Mapping[str, Any]]) -> list[str]:
    platforms = {str(device.get("platform")) for device in devices}
    if platforms and platforms <= {"cpu"}:
        return [
            "JAX ran on the CPU. Nsight Systems records what NVIDIA's GPUs do: this report holds the ranges "
            "of the steps and little else."
        ]
    return []
