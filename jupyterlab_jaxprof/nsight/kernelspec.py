"""The kernelspec by which Jupyter starts this Python's kernel under nsys."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir, jupyter_path

from jupyterlab_jaxprof.environment import nsys
from jupyterlab_jaxprof.environment.nsys import Installation

from .flags import FlagError
from .launch_flags import TRACE, checked_trace

NAME = "python3-nsys"
DISPLAY_NAME = "Python 3 (Nsight Systems)"
#: Says in the kernelspec's metadata that it is ours.
_OURS = "jaxprof"
_FILE = "kernel.json"
_LOGOS = ("logo-32x32.png", "logo-64x64.png", "logo-svg.svg")


class KernelspecError(RuntimeError):
    """The kernelspec can't be made or removed; the message is a sentence."""


@dataclass(frozen=True)
class Made:
    """A kernelspec that was written, and the nsys that would start its kernels today."""

    name: str
    display_name: str
    directory: Path
    trace: str
    installation: Installation

    def told(self, command: str) -> str:
        """Say what was made, how to choose it, and how `command` removes it."""
        name = "" if self.name == NAME else f" --name {self.name}"
        return (
            f"Made the kernel '{self.display_name}' in {self.directory}.\n"
            f"nsys ({self.installation.path}, {self.installation.version_text or 'version not known'}) "
            f"starts it, and can trace {self.trace.replace(',', ', ')}; nothing is recorded until a cell "
            "asks for it.\n"
            "Choose it in JupyterLab's launcher, or for an open notebook by Kernel > Change Kernel; "
            "JupyterLab lists it within seconds (reload the page if not). In it, %%nsys --in-kernel records "
            "a cell, and %nsys start and %nsys stop what runs between them.\n"
            f"{command} --remove{name} removes it.\n"
        )


def install(
    name: str = NAME, display_name: str = DISPLAY_NAME, trace: str = TRACE, *, in_environment: bool = False
) -> Made:
    """Write the kernelspec, to the user's directory or to the environment's; raises KernelspecError."""
    _check_name(name)
    if sys.platform != "linux":
        raise KernelspecError("nsys records kernels on Linux only.")
    if importlib.util.find_spec("ipykernel") is None:
        raise KernelspecError(
            f"{sys.executable} has no ipykernel, which the kernel would be: pip install ipykernel."
        )
    installation = _installation()
    try:
        trace = checked_trace(trace, installation)
    except FlagError as error:
        raise KernelspecError(str(error)) from None
    data = Path(sys.prefix, "share", "jupyter") if in_environment else Path(jupyter_data_dir())
    directory = data / "kernels" / name
    _check_free(directory, name)
    from ipykernel.kernelspec import get_kernel_dict  # what the plain kernel has: encryption, the debugger

    plain = get_kernel_dict()
    spec = {
        **plain,
        "argv": [
            sys.executable,
            "-P",
            "-m",
            f"{__package__}.launcher",
            f"--trace={trace}",
            "-f",
            "{connection_file}",
        ],
        "display_name": display_name,
        "metadata": {**plain.get("metadata", {}), _OURS: {"trace": trace}},
    }
    try:
        _write(directory, spec)
    except OSError as error:
        raise KernelspecError(
            f"{directory} can't be written: {error.strerror or error}. "
            + ("Leave out --sys-prefix" if in_environment else "Give --sys-prefix")
            + " to write it elsewhere."
        ) from None
    return Made(name, display_name, directory, trace, installation)


def remove(name: str = NAME) -> list[Path]:
    """Remove our kernelspecs of this name wherever Jupyter finds them; raises KernelspecError."""
    _check_name(name)
    found = [directory for root in jupyter_path("kernels") if (directory := Path(root, name)).is_dir()]
    ours = [directory for directory in found if _is_ours(directory)]
    if not ours:
        others = sorted({one.name for root in jupyter_path("kernels") for one in _ours_in(Path(root))})
        what = f"{found[0]} was not made by jupyterlab-jaxprof" if found else f"there is no kernelspec {name}"
        raise KernelspecError(what + (f"; there is {', '.join(others)} (--name NAME)." if others else "."))
    for directory in ours:
        try:
            shutil.rmtree(directory)
        except OSError as error:
            raise KernelspecError(f"{directory} can't be removed: {error.strerror or error}.") from None
    return ours


def done(
    command: str,
    *,
    name: str | None,
    display_name: str | None,
    trace: str | None,
    osrt: bool,
    in_environment: bool,
    removes: bool,
) -> str:
    """Do what `command` asks for with its options (None: the default), and say what was done.

    Raises KernelspecError.
    """
    if removes:
        removed = remove(name or NAME)
        return "".join(f"Removed {directory}. Kernels that run go on.\n" for directory in removed)
    traced = (trace or TRACE) + (",osrt" if osrt else "")
    made = install(name or NAME, display_name or DISPLAY_NAME, traced, in_environment=in_environment)
    return made.told(command)


def _installation() -> Installation:
    installation = nsys.best()
    if installation is None:
        raise KernelspecError(f"there is no nsys (NVIDIA Nsight Systems) on this machine. {nsys.HOW_TO_GET}")
    if not installation.usable:
        raise KernelspecError(f"{installation.problem} {installation.remedy}")
    return installation


def _check_name(name: str) -> None:
    """Jupyter's rule for kernelspecs' names, which stand in addresses."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or name.strip(".") == "":
        raise KernelspecError(
            f"--name takes letters, digits, dots, dashes and underscores, and '{name}' has others."
        )


def _check_free(directory: Path, name: str) -> None:
    """Refuse to replace what is somebody else's, or another Python's."""
    if not os.path.lexists(directory):
        return
    if not _is_ours(directory):
        raise KernelspecError(
            f"{directory} is there already, and was not made by jupyterlab-jaxprof. Give another --name than "
            f"{name}."
        )
    executable = str((_read(directory).get("argv") or [""])[0])
    if executable != sys.executable and Path(executable).exists():
        raise KernelspecError(
            f"{directory} starts another Python ({executable}). Give this one's another --name and "
            "--display-name, or remove that one first (--remove)."
        )


def _write(directory: Path, spec: Mapping[str, Any]) -> None:
    """Put a complete directory into place: Jupyter looks there at any time."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".jaxprof-", dir=directory.parent) as scratch:
        new = Path(scratch, "new")
        new.mkdir(0o755)
        (new / _FILE).write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        logos = importlib.util.find_spec("ipykernel")
        for name in _LOGOS:
            with suppress(OSError):  # a kernel without a picture works as well
                shutil.copyfile(Path(str(logos and logos.origin)).parent / "resources" / name, new / name)
        if directory.exists():
            directory.rename(Path(scratch, "old"))
        new.rename(directory)


def _is_ours(directory: Path) -> bool:
    metadata = _read(directory).get("metadata")
    return isinstance(metadata, dict) and _OURS in metadata


def _ours_in(root: Path) -> list[Path]:
    with suppress(OSError):
        return [directory for directory in root.iterdir() if directory.is_dir() and _is_ours(directory)]
    return []


def _read(directory: Path) -> dict[str, Any]:
    """Read a kernelspec; empty where it is none."""
    try:
        spec: Any = json.loads((directory / _FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return spec if isinstance(spec, dict) else {}
