"""The flags of nsys's other way: `nsys launch` starts a kernel, `nsys start` and `nsys stop` record it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jupyterlab_jaxprof.environment.nsys import Installation

from .flags import FlagError, cant_trace, gpu_metrics, known_flags, traceable

TRACE = "cuda,nvtx"


def launch_flags(installation: Installation, trace: str, session: str) -> list[str]:
    """Give the arguments of `nsys launch` up to the program: what it traces is decided here, for good.

    Raises FlagError where this nsys can't do it.
    """
    chosen = {
        "session-new": session,
        "trace": trace,
        "cuda-graph-trace": "node",
        "wait": "primary",
        "show-output": "false",  # what a kernel prints goes past nsys, and not into the report
    }
    if "osrt" in trace:
        chosen["resolve-symbols"] = "false"  # the symbols of JAX's libraries would make a gigabyte
    return _known(installation, "launch", chosen, needed=("session-new", "trace"))


def start_flags(
    installation: Installation, session: str, output: Path, *, metrics: bool, sample: bool
) -> list[str]:
    """Give the arguments of `nsys start`; raises FlagError where this nsys can't do it."""
    chosen = {
        "session": session,
        "sample": "process-tree" if sample else "none",
        "cpuctxsw": "process-tree" if sample else "none",
        "stats": "false",
        "export": "none",
        "force-overwrite": "true",
        "output": str(output),
    }
    if sample:
        chosen["resolve-symbols"] = "false"
    if metrics:
        known = known_flags(installation.path, installation.version_text, "start")
        chosen |= gpu_metrics(known, installation)
    return _known(installation, "start", chosen, needed=("session", "output"))


def checked_trace(trace: str, installation: Installation) -> str:
    """Give what is to be traced as `nsys launch` takes it; raises FlagError for what it can't trace."""
    names = list(dict.fromkeys(name for part in trace.split(",") if (name := part.strip())))
    known = traceable(installation.path, installation.version_text, "launch")
    for name in names:
        if name == "none" or not re.fullmatch(r"[a-z][\w-]*", name) or (known and name not in known):
            raise cant_trace(name, known, installation)
    if not names:
        raise FlagError("there is nothing to trace: write names as nsys has them, --trace cuda,nvtx,osrt.")
    if "nvtx" not in names:
        names.append("nvtx")  # our steps are such ranges
    return ",".join(names)


def _known(
    installation: Installation, command: str, chosen: Mapping[str, str], needed: tuple[str, ...]
) -> list[str]:
    """Leave out what this nsys does not know: an unknown flag would end it."""
    known = known_flags(installation.path, installation.version_text, command)
    missing = [name for name in needed if known and name not in known]
    if missing:
        raise FlagError(
            f"'nsys {command}' of {installation.path} ({installation.version_text}) has no --{missing[0]}: "
            "install Nsight Systems 2022.4 or newer."
        )
    return [f"--{name}={value}" for name, value in chosen.items() if not known or name in known]
