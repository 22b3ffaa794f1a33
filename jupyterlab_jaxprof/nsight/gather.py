"""What nsys left: the report, or the stream that a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyterlab_jaxprof.environment.importer import REPORT_MAGIC, STREAM_MAGIC, begins, make_report
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

_IMPORT_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Gathered:
    """A report, or a stream that could not be made into one, or neither; `problem` is a sentence or empty."""

    report: Path | None = None
    stream: Path | None = None
    problem: str = ""


def gather(
    places: Sequence[Path],
    output: Path,
    installation: Installation,
    others: Sequence[Installation] = (),
    on_part: Callable[[float], None] = lambda part: None,
) -> Gathered:
    """Find the report that nsys was told to write to `output`, or make it of the stream that is there.

    `on_part` is told how much of it is made (0 to 1). nsys writes elsewhere when it can't write there, and
    leaves a stream where it finds no importer; all with exit status 0.
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
        said = _import(importer, stream, report, on_part)
        if begins(report, REPORT_MAGIC):
            return Gathered(report)
        failures.append(f"{importer} could not make a report of what {installation.path} recorded{said}.")
    return Gathered(
        None,
        stream,
        f"{failures[0]} What was recorded is kept as a .qdstrm file, which nsys-ui can import; the importer "
        "must be of the version that recorded.",
    )


def gather_held(
    held: HeldInterrupts,
    places: Sequence[Path],
    output: Path,
    installation: Installation,
    others: Sequence[Installation],
    on_part: Callable[[float], None] = lambda part: None,
) -> Gathered:
    """Gather as above; an interrupt meanwhile ends that, and leaves what there is."""
    try:
        with held.let_through():
            return gather(places, output, installation, others, on_part)
    except KeyboardInterrupt:
        return unfinished(places)


def unfinished(places: Sequence[Path]) -> Gathered:
    """Give what there is when no more is waited for: the stream rather than a report half made of it."""
    stream = _newest(places, "*.qdstrm", STREAM_MAGIC)
    if stream is None:
        return Gathered(_newest(places, "*.nsys-rep", REPORT_MAGIC))
    return Gathered(
        None,
        stream,
        "Interrupted while the report was made: what nsys recorded is kept as a .qdstrm file, which %jaxprof "
        "report and nsys-ui read.",
    )


def _import(importer: Path, stream: Path, report: Path, on_part: Callable[[float], None]) -> str:
    """Make the report; gives a clause on what came of it."""
    try:
        said = make_report(importer, stream, report, on_part, _IMPORT_TIMEOUT_S).splitlines()
    except TimeoutError:
        return ": it told nothing for minutes, and was ended"
    except OSError as error:
        return f", since it does not start ({error.strerror or error})"
    return f" and said '{said[-1][:200]}'" if said else ""


def _newest(places: Sequence[Path], pattern: str, magic: bytes) -> Path | None:
    found = [
        path for place in places for path in place.rglob(pattern) if path.is_file() and begins(path, magic)
    ]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)
