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

from . import machine
from .known import problems
from .machine import xprof_problem
from .spoilers import spoilers
from .versions import XPROF_REQUIREMENT, XPROF_TESTED, conflicts, own_version, versions

__all__ = [
    "XPROF_REQUIREMENT",
    "XPROF_TESTED",
    "own_version",
    "problems",
    "report",
    "spoilers",
    "variables",
    "versions",
    "xprof_problem",
]

# Only these are ever reported: others may hold secrets.
VARIABLES = re.compile(
    r"XLA_FLAGS|XLA_(PYTHON_)?CLIENT_\w+|JAX_\w+|JAXPROF_\w+|LD_PRELOAD|LD_LIBRARY_PATH|CUDA_VISIBLE_DEVICES|"
    r"NVIDIA_VISIBLE_DEVICES|TF_GPU_ALLOCATOR|TMPDIR"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)


def report() -> dict[str, Any]:
    """Describe this process's environment.

    Keys: `python`, `executable`, `platform`, `versions` (None: not installed), `tools` ({path, version} or
    None), `gpus` (as nvidia-smi tells; None: there is none, or it failed), `permissions`, `variables`, and
    `problems`: {what, remedy, needed, note}, where `needed` says that something can't work before it is
    mended, and `note` that it concerns only the tool that `what` begins with.
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
    }
    return found | {"problems": [*gpu_problems, *conflicts(), *spoilers(os.environ), *problems(found)]}


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables that matter to a profile, and no other."""
    names = (name for name in sorted(environ) if VARIABLES.fullmatch(name) and not _SECRET.search(name))
    return {name: environ[name] for name in names}
