"""From an Nsight report to its SQLite export, by the installed nsys, in a directory that nobody else sees.

nsys exits with 0 in many a failure, and reuses an older export that lies beside a report. So the export is
made anew, elsewhere, and what counts is the file that comes out.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..environment import nsys
from ..environment.command import followed, output_once
from ..environment.importer import REPORT_MAGIC, STREAM_MAGIC, begins, make_report
from ..environment.temporary import TemporaryDirectory
from ..environment.versions import numbers
from .model import ReadError, Timeline
from .nsight import read_export
from .nsight_database import SQLITE_MAGIC

#: Told now and then while a report is worked on: what is done, and which part of it (0 to 1).
Progress = Callable[[str, float], None]
_TIME_LIMIT_S = 1800.0
_HELP_TIMEOUT_S = 20
#: The report's own version stands near its end, before the build's number, which its first line also has.
_TAIL_BYTES = 1 << 20


def read_report(
    path: Path, progress: Progress | None = None, time_limit_s: float = _TIME_LIMIT_S
) -> Timeline:
    """Read a report (`.nsys-rep`), or the stream that a recording leaves (`.qdstrm`), by exporting it first.

    Raises ReadError where that fails: no nsys, a report of a newer one, damage, no space.
    """
    with exported(path, progress, time_limit_s) as export:
        return read_export(export, path)


@contextmanager
def exported(
    path: Path, progress: Progress | None = None, time_limit_s: float = _TIME_LIMIT_S
) -> Generator[Path]:
    """Export a report; the export is there within the `with` statement."""
    told = progress or _untold
    begin = _check_report(path)
    installations = _installations(path, begin)
    deadline = time.monotonic() + time_limit_s
    try:
        directory = TemporaryDirectory()
    except OSError as error:
        raise ReadError(f"There is no place for the export of {path}: {error.strerror or error}.") from error
    with directory:
        is_stream = begin.startswith(STREAM_MAGIC)
        problem: ReadError | None = None
        for number, installation in enumerate(installations):
            own = directory.path / str(number)
            own.mkdir()
            try:
                report = _import(path, own, installation, told, deadline) if is_stream else path
                export = _export(path, report.absolute(), own, installation, told, deadline)
                break
            except ReadError as error:
                problem = problem or error
                shutil.rmtree(own, ignore_errors=True)
        else:
            assert problem is not None
            raise problem
        yield export


def _export(
    path: Path, report: Path, place: Path, installation: nsys.Installation, told: Progress, deadline: float
) -> Path:
    """Have one nsys export a report; raises ReadError, which speaks of `path`."""
    export = place / "export.sqlite"
    command = [str(installation.path), "export", "--type=sqlite", f"--output={export}"]
    if not _help(installation.path, installation.version_text):
        raise ReadError(
            f"{path} can't be exported: {installation.path} does not even tell its options (nsys export "
            "--help)."
        )
    if _has_flag(installation, "--force-overwrite"):
        command.append("--force-overwrite=true")
    if _has_flag(installation, "--include-blobs"):
        command.append("--include-blobs=true")  # the payloads of XLA's ranges
    told("Exporting", 0.0)
    with _sentences(path, installation.path):
        said = followed(
            [*command, str(report)],
            place,
            lambda part: told("Exporting", part),
            deadline - time.monotonic(),
        )
    if not begins(export, SQLITE_MAGIC):
        raise ReadError(_export_failure(path, installation, said, place))
    return export


def _untold(_what: str, _part: float) -> None:
    """Take what nobody wants to be told."""


def needed_version(path: Path) -> str:
    """Give the version of nsys that wrote a report, as `2025.3.1`; empty where the report does not tell."""
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        tail = file.read()
    build = re.match(re.escape(REPORT_MAGIC) + rb"(\w+)\.", head)
    versions = rb"(20\d\d\.\d+(?:\.\d+)*)"
    if build is not None and (found := re.findall(versions + rb":." + re.escape(build.group(1)), tail)):
        return found[-1].decode()
    found = re.findall(versions + rb"[\w.-]*:.\1", tail)
    return found[-1].decode() if found else ""


def _check_report(path: Path) -> bytes:
    """Give a report's first bytes, or say why it is none."""
    try:
        with path.open("rb") as file:
            begin = file.read(64)
    except OSError as error:
        raise ReadError(f"{path} can't be read: {error.strerror or error}.") from error
    if not begin:
        raise ReadError(f"{path} is empty: its writing was cut off. Record it again.")
    if not begin.startswith((REPORT_MAGIC, STREAM_MAGIC)):
        raise ReadError(f"{path} is no report of Nsight Systems, or is damaged at its beginning.")
    return begin


def _installations(path: Path, begin: bytes) -> list[nsys.Installation]:
    """Give those that run: of the version that recorded it first (it has worked here), then the newest."""
    found = nsys.installations()
    if not found:
        raise ReadError(
            f"{path} is a report of Nsight Systems, which only its own nsys can open, and there is none "
            f"here. {nsys.HOW_TO_GET} Or export it where there is one (nsys export --type sqlite) and give "
            "the .sqlite file."
        )
    usable = [one for one in found if one.usable]
    if not usable:
        raise ReadError(f"{path} can't be exported: {found[0].problem} {found[0].remedy}")
    text = _stream_version(path) if begin.startswith(STREAM_MAGIC) else needed_version(path)
    recorded = numbers(text)[:3]
    return sorted(usable, key=lambda one: not recorded or one.version[:3] != recorded)


def _import(
    stream: Path, place: Path, installation: nsys.Installation, told: Progress, deadline: float
) -> Path:
    """Make the report of a stream, which nsys leaves where it does not find its importer."""
    if installation.importer is None:
        raise ReadError(
            f"{stream} is what a recording leaves before its report is made, and the program for that "
            f"(QdstrmImporter) is not found beside {installation.path}. Install Nsight Systems complete with "
            "its host part, or import the file in nsys-ui."
        )
    report = place / "report.nsys-rep"
    told("Importing", 0.0)
    with _sentences(stream, installation.importer):
        said = make_report(
            installation.importer,
            stream,
            report,
            lambda part: told("Importing", part),
            deadline - time.monotonic(),
        )
    if not begins(report, REPORT_MAGIC):
        version = _stream_version(stream)
        raise ReadError(
            f"{stream} could not be made into a report by {installation.importer}"
            f"{_quoted(said)}. The importer must be of the version that recorded it"
            f"{f' ({version})' if version else ''}; a file that was cut off can't be imported."
        )
    return report


def _stream_version(stream: Path) -> str:
    with stream.open("rb") as file:
        begin = file.read(128)
    match = re.match(re.escape(STREAM_MAGIC) + rb"([\w.-]+)!", begin)
    return match.group(1).decode() if match else ""


def _help(path: Path, version: str) -> str:
    """What an nsys says of `export`; asked once."""
    return output_once(str(path), "export", "--help", state=version, timeout_s=_HELP_TIMEOUT_S)[0]


def _has_flag(installation: nsys.Installation, flag: str) -> bool:
    # An unknown flag ends nsys at once
    return re.search(rf"{flag}\b", _help(installation.path, installation.version_text)) is not None


@contextmanager
def _sentences(path: Path, program: Path) -> Generator[None]:
    """Say why a program made nothing of a file."""
    try:
        yield
    except TimeoutError:
        raise ReadError(
            f"{path}: {program} has not ended in time and was stopped. Export the report by hand (nsys "
            "export --type sqlite) and give the .sqlite file."
        ) from None
    except OSError as error:
        raise ReadError(f"{program} does not start: {error.strerror or error}.") from error


def _export_failure(path: Path, installation: nsys.Installation, said: str, place: Path) -> str:
    """Say why there is no export."""
    if "ersion not supported" in said:
        needed = needed_version(path)
        newer = f"at least {needed}" if needed else "a newer one"
        return (
            f"{path} was recorded by Nsight Systems {needed or 'of another version'}, and the installed nsys "
            f"({installation.version_text or 'version not known'}, {installation.path}) can't read it: "
            f"{newer} is needed. Install it, or export the report where it was recorded (nsys export --type "
            "sqlite) and give the .sqlite file."
        )
    room = shutil.disk_usage(place).free
    if "o space left" in said or room < 4 * path.stat().st_size:
        return (
            f"{path} could not be exported: there are only {room // 2**20} MiB free in {place.parent}. Make "
            "room there, or set TMPDIR to a directory that has some."
        )
    return (
        f"{path} could not be exported by {installation.path} ({installation.version_text}){_quoted(said)}. "
        "It may be damaged: try to open it in nsys-ui, or record it again."
    )


def _quoted(said: str) -> str:
    lines = said.splitlines()
    return f", which said: '{lines[-1][:200]}'" if lines else ""
