"""The kernel that runs under `nsys launch`: what it knows of that, and how it starts.

    main([SPEC, EVENTS, LIFE, OUT, ERR, ARGUMENT...])

The first five are inherited descriptors, as the program of `%%nsys` has them (`child.py`): what to do, where
to tell of the start, one whose end of file means that whoever looks after nsys is gone, and where the output
of the kernel goes, past nsys. The others are ipykernel's own arguments.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.nsight.child import DOMAIN, configuration, end_at_once
from jupyterlab_jaxprof.nsight.nvtx import Domain, NotAttached
from jupyterlab_jaxprof.nsight.padding import pad

#: Why this kernel does not run under nsys although it should; a sentence.
PROBLEM = "JAXPROF_NSYS_PROBLEM"
#: For ipykernel: its parent is nobody to look at. Whether we are alone is told by a pipe.
_NO_PARENT = {"JPY_PARENT_PID": "1"}


@dataclass(frozen=True)
class Launch:
    """How nsys runs this kernel: which nsys, its session, what it traces, and where its files are."""

    nsys: Path
    session: str
    trace: tuple[str, ...]
    temporary: Path
    environment: Mapping[str, str]
    """What nsys's commands are started with: nsys writes that into its reports."""
    domain: Domain | NotAttached
    """That of our ranges, or why there is none."""


_launch: Launch | None = None


def launch() -> Launch | None:
    """Tell how nsys runs this process; None where it does not, or was started by somebody else."""
    return _launch


def problem() -> str:
    """Say why this kernel runs without nsys although its kernelspec asks for it; empty where all is well."""
    return os.environ.get(PROBLEM, "")


def main(arguments: Sequence[str]) -> None:
    """Take the notebook's variables, then be a kernel until it ends."""
    spec_descriptor, events, life, out, err = map(int, arguments[:5])
    with suppress(OSError):  # the leader of a session has a group of its own already
        os.setpgid(0, 0)
    files = configuration()
    threading.Thread(target=_end_with, args=(life, files), daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, standard in ((out, 1), (err, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.set_inheritable(life, False)
    line = json.dumps({"event": "start", "pid": os.getpid(), "files": files})
    os.write(events, line.encode() + b"\n")
    os.close(events)
    with os.fdopen(spec_descriptor, "rb") as file:
        spec: dict[str, Any] = json.load(file)
    _begin(spec)
    sys.argv = ["ipykernel_launcher", *arguments[5:]]
    from ipykernel.kernelapp import launch_new_instance  # after the variables: it reads them

    launch_new_instance()


def _end_with(life: int, files: Sequence[str]) -> None:
    """End this process and its group once the other end of a pipe is gone."""
    while os.read(life, 1):
        continue
    end_at_once(files)


def _begin(spec: Mapping[str, Any]) -> None:
    """Set the variables that were kept from nsys, and what is known of nsys."""
    global _launch
    os.environ.update(spec["environment"] | _NO_PARENT)
    for name in spec["unset"]:
        os.environ.pop(name, None)
    if not os.environ.get("LD_PRELOAD"):  # what this kernel starts is not nsys's to look into
        os.environ.pop("LD_PRELOAD", None)
    _launch = Launch(
        nsys=Path(spec["nsys"]),
        session=spec["session"],
        trace=tuple(spec["trace"].split(",")),
        temporary=Path(spec["temporary"]),
        environment=spec["tools_environment"],
        domain=_domain(spec["trace"].split(",")),
    )


def _domain(traced: Sequence[str]) -> Domain | NotAttached:
    """Give the domain of our ranges, prepared before anything can load XLA."""
    try:
        domain = Domain(DOMAIN)
    except NotAttached as error:
        return error
    if "cuda" in traced:
        pad(domain)
    return domain
