"""The machine and the versions that figures were measured with; nothing that names it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import psutil

from jupyterlab_jaxprof.environment import nsys

PACKAGES = {"JAX": "jax", "JupyterLab": "jupyterlab", "XProf": "xprof", "NumPy": "numpy"}


def describe() -> dict[str, str]:
    """A table of what bears on the figures, each row `name: value`."""
    rows = {
        "processor": f"{os.cpu_count()} cores{_model()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {_kernel()}",
        "Python": platform.python_version(),
    }
    for name, package in PACKAGES.items():
        with suppress(metadata.PackageNotFoundError):
            rows[name] = metadata.version(package)
    if (installation := nsys.best()) is not None:
        rows["nsys"] = installation.version_text
    with suppress(OSError, subprocess.CalledProcessError):
        command = ["chromium", "--version"]
        rows["Chromium"] = _number(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL))
    return rows


def load() -> float:
    """How many processes wanted a processor at the same time in the last minute, on average."""
    return os.getloadavg()[0]


def _model() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return f", {' '.join(found[1].split())}"
    return ""


def _kernel() -> str:
    """The kernel's version alone: what is built into its name may tell of a place."""
    return _number(platform.release())


def _number(text: str) -> str:
    found = re.search(r"\d+(\.\d+)+", text)
    return found[0] if found else text.strip()
