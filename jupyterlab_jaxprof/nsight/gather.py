"""What nsys left: the report, or the stream that a report is made of."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyterlab_jaxprof.environment.nsys import Installation

REPORT_MAGIC = b"NVIDIA Tegra Profiler Report "
STREAM_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream "
_IMPORT_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Gathered:
    """A report, or a stream that could not be made into one, or neither; `problem` is a sentence or empty."""

    report: Path | None = None
    stream: Path | None = None
    problem: str = ""


def gather(
    places: Sequence[Path], output: Path, installation: Installation, others: Sequence[Installation] = ()
) -> Gathered:
    """Find the report that nsys was told to write to `output`, or make it of the stream that is there.

    nsys writes elsewhere when it can't write there, and leaves a stream where it finds no importer; all with
    exit status 0.
    """
    report = _newest(places, "*.nsys-rep", REPORT_MAGIC)
    if report is not None:
        return Gathered(report)
    stream = _newest(places, "*.qdstrm", STREAM_MAGIC)
    if stream is None:
        return Gathered()
    importers = [one.importer for one in (installation, *others) if one.importer is not None]
    if not importers:
        return Gathered(
            None,
            stream,
            f"{installation.path} recorded, but the program that makes its reports (QdstrmImporter) is not "
            "found beside it. Install Nsight Systems complete with its host part; until then nsys-ui can "
            "import the .qdstrm file that is kept.",
        )
    report = output.with_suffix(".nsys-rep")
    failures: list[str] = []
    for importer in dict.fromkeys(importers):
        said = _import(importer, stream, report)
        if _begins(report, REPORT_MAGIC):
            return Gathered(report)
        failures.append(f"{importer} could not make a report of what {installation.path} recorded{said}.")
    return Gathered(
        None,
        stream,
        f"{failures[0]} The two must be of one version: install Nsight Systems anew, or import the .qdstrm "
        "file that is kept in nsys-ui.",
    )


def _import(importer: Path, stream: Path, report: Path) -> str:
    try:
        done = subprocess.run(
            [str(importer), f"--input-file={stream}", f"--output-file={report}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_IMPORT_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # a notebook's interrupt goes to all of the kernel's group
        )
    except subprocess.TimeoutExpired:
        return f" within {_IMPORT_TIMEOUT_S // 60} minutes"
    except OSError as error:
        return f", since it does not start ({error.strerror or error})"
    lines = [line.strip() for line in (done.stdout + done.stderr).replace("\r", "\n").splitlines()]
    said = [line for line in lines if line and "%" not in line]
    return f" and said '{said[-1][:200]}'" if said else ""


def _newest(places: Sequence[Path], pattern: str, magic: bytes) -> Path | None:
    found = [
        path for place in places for path in place.rglob(pattern) if path.is_file() and _begins(path, magic)
    ]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False
