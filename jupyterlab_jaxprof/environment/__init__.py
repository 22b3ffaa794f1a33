"""What is installed and set here, and what of it is known to go wrong; without importing jax.

Both the Jupyter server and `%jaxprof doctor` report it. It runs `nvidia-smi` and `nsys --version`, each for
ten seconds at most, so a server calls it off its event loop.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from typing import Any

from . import jupyter, machine
from .known import SUBJECTS, problems
from .machine import xprof_problem
from .problem import Check, Problem, Remedy, export, problem, run
from .spoilers import spoilers
from .versions import XPROF_REQUIREMENT, XPROF_TESTED, conflicts, duplicates, own_version, versions

__all__ = [
    "SUBJECTS",
    "XPROF_REQUIREMENT",
    "XPROF_TESTED",
    "Check",
    "Problem",
    "Remedy",
    "export",
    "own_version",
    "problem",
    "problems",
    "report",
    "run",
    "spoilers",
    "variables",
    "versions",
    "xprof_problem",
]

# Only these are ever reported: others may hold secrets.
VARIABLES = re.compile(
    r"XLA_FLAGS|XLA_(PYTHON_)?CLIENT_\w+|JAX_\w+|JAXPROF_\w+|LD_PRELOAD|LD_LIBRARY_PATH|CUDA_VISIBLE_DEVICES|"
    r"NVIDIA_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|TF_(GPU_ALLOCATOR|FORCE_\w+|CPP_MIN_LOG_LEVEL)|TMPDIR"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)


def report() -> dict[str, Any]:
    """Describe this process's environment.

    Keys: `python`, `executable`, `platform`, `versions` (None: not installed), `tools` ({path, version} or
    None), `gpus` (as nvidia-smi tells; None: there is none, or it failed), `permissions`, `variables`,
    `jupyter`,
    `libraries`, `profilers`, `proxies`, `clock`, `duplicates`, and `problems`: {check, what, remedy, command,
    needed, note}, where `needed` says that something can't work before it is mended, `note` that it concerns
    only the tool that `what` begins with, and `command` is the one that mends it, or empty.
    """
    gpus, gpu_problems = machine.gpus()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "versions": versions(),
        "tools": machine.tools(),
        "gpus": gpus,
        "permissions": machine.permissions(),
        "variables": variables(os.environ),
        "jupyter": jupyter.facts(os.environ),
        "libraries": machine.libraries(os.environ),
        "profilers": machine.profilers(),
        "proxies": machine.proxies(os.environ),
        "clock": machine.clock(),
        "duplicates": duplicates(),
    }
    seen = {"gpu_problems": gpu_problems, "conflicts": [*conflicts()], "spoilers": [*spoilers(os.environ)]}
    return found | {"problems": problems(found | seen)}


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables that matter to a profile, and no other."""
    names = (name for name in sorted(environ) if VARIABLES.fullmatch(name) and not _SECRET.search(name))
    return {name: environ[name] for name in names}
