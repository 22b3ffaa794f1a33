"""Where Nsight Systems is installed: each nsys, its version, and the importer that makes its reports."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .command import KILLED, output_once
from .versions import numbers

#: Where NVIDIA's and Debian's packages put it.
PLACES = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/target-linux-*/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
    "/usr/lib/*-linux-gnu/nsight-systems/target-linux-*/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
)
HOW_TO_GET = (
    "On Debian enable the component non-free and install nsight-systems; on Ubuntu, in NVIDIA's containers "
    "and on Colab install nsight-systems-cli from NVIDIA's CUDA repository; or add the directory of an nsys "
    "that is there to PATH."
)
#: What a program under nsys names the strings that it registers before all others; each has its handle too.
PADDING = "jaxprof-string"
_VERSION = re.compile(r"\d{4}\.\d+[\w.-]*")
_IMPORTER = "QdstrmImporter"
#: Debian's package has the importer here, where its own nsys does not look.
_DEBIAN_HOST = "/usr/lib/nsight-systems/host-linux-*"


@dataclass(frozen=True)
class Installation:
    """One nsys.

    `version` is empty where it tells none. `importer` makes a report of the stream that a recording leaves
    (`.qdstrm`); nsys runs it by itself where `imports` is true, else it must be run afterwards. `problem` is
    a sentence, empty where all is well; an installation that is not `usable` does not run at all.
    """

    path: Path
    version: tuple[int, ...]
    version_text: str
    importer: Path | None
    imports: bool
    failure: str
    problem: str

    @property
    def remedy(self) -> str:
        """What to do about an nsys that does not run; sentences."""
        if self.failure.startswith(KILLED):
            return "Try again; should that not help, look whether the machine has memory left."
        return HOW_TO_GET

    @property
    def usable(self) -> bool:
        """Whether it runs."""
        return not self.failure


def installations() -> tuple[Installation, ...]:
    """Find every nsys, those that work and the newest first; the one on PATH before its equals."""
    found: dict[Path, Installation] = {}
    for path in _candidates():
        found.setdefault(path.resolve(), _inspect(path))
    return tuple(sorted(found.values(), key=lambda one: (one.usable, one.version), reverse=True))


def best() -> Installation | None:
    """Give the newest nsys that works, else one that does not; None where there is none."""
    return next(iter(installations()), None)


def _candidates() -> Iterator[Path]:
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if directory and (path := shutil.which("nsys", path=directory)):
            yield Path(path)
    for pattern in PLACES:
        places = sorted(
            Path("/").glob(pattern.lstrip("/")), key=lambda place: numbers(str(place)), reverse=True
        )
        yield from (place for place in places if os.access(place, os.X_OK))


def _inspect(path: Path) -> Installation:
    try:
        status = path.stat()
    except OSError as error:
        return _installation(path, "", error.strerror or str(error))
    return _inspected(path, status.st_mtime_ns, status.st_size)


def _inspected(path: Path, modified_ns: int, size_bytes: int) -> Installation:
    """Ask an nsys for its version, once for each state of its file."""
    said, failure = output_once(str(path), "--version", state=(modified_ns, size_bytes))
    version = _VERSION.search(said) if failure is None else None
    return _installation(path, version.group() if version else "", failure or "")


def _installation(path: Path, version_text: str, failure: str) -> Installation:
    importer, imports, problem = find_importer(path)
    if failure:
        problem = f"{path} does not run: {failure}."
    return Installation(
        path=path,
        version=numbers(version_text)[:4],
        version_text=version_text,
        importer=importer,
        imports=imports,
        failure=failure,
        problem=problem,
    )


def find_importer(path: Path) -> tuple[Path | None, bool, str]:
    """Find the program that makes the report of an nsys; also whether nsys finds it, and what is amiss.

    Without it nsys leaves a `.qdstrm` file where the report should be, and still exits with 0.
    """
    tools = path.resolve().parent
    if not tools.name.startswith("target-linux"):
        return None, True, ""  # laid out in a way that is not known here: nothing can be said
    in_compute = sorted(tools.parent.glob("linux-desktop-*"))
    beside = sorted(tools.parent.glob("host-linux*"))
    elsewhere = sorted(Path("/").glob(_DEBIAN_HOST.lstrip("/"))) if tools.is_relative_to("/usr/lib") else []
    importers = [place / _IMPORTER for place in (*beside, *in_compute, *elsewhere)]
    importer = next((place for place in importers if os.access(place, os.X_OK)), None)
    if in_compute and ctypes.util.find_library("dw") is None:
        what = f"The importer of {path} lacks libdw.so.1: nsys leaves a .qdstrm file, and no report."
        return importer, False, what
    if not in_compute and not beside:
        what = f"The importer of {path} is not beside it: nsys leaves a .qdstrm file, and no report."
        return importer, False, what
    return importer, True, ""
