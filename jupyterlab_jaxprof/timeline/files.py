"""Which files of a path given make up one run, and of which kind each is. Errors are sentences."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .model import ReadError

#: Directories looked through for traces; a greater tree is no run's.
_MOST_DIRECTORIES = 20_000
#: A report's ending, by how much has been made of what was recorded: a stream, a report, its export.
_REPORTS = (".qdstrm", ".nsys-rep", ".sqlite")
_MAGIC = {
    b"\x1f\x8b": "is compressed by gzip: unpack it first (gunzip)",
    b"\xfd7zXZ": "is compressed by xz: unpack it first (unxz)",
    b"BZh": "is compressed by bzip2: unpack it first (bunzip2)",
    b"PK\x03\x04": "is a zip archive: unpack it first (unzip), then give the directory",
    b"\x89PNG": "is a picture",
    b"%PDF": "is a PDF",
    b"\x7fELF": "is a program",
}


class Kind(StrEnum):
    """What wrote a file."""

    XPLANE = "xplane"
    SQLITE = "sqlite"
    REPORT = "nsys-rep"


@dataclass(frozen=True)
class Found:
    """The files to read, each once, in order; `notices` are sentences about those that were passed over."""

    files: list[tuple[Path, Kind]]
    notices: list[str]


def find(paths: Iterable[Path]) -> Found:
    """Find the files of one run. Raises ReadError."""
    found: dict[Path, tuple[Path, Kind]] = {}
    notices: list[str] = []
    for path in paths:
        for file in _files_of(path, notices):
            found.setdefault(file.resolve(), (file, _kind(file)))
    if not found:
        raise ReadError("There is nothing to read: give a trace (*.xplane.pb), a report, or a directory.")
    if len({kind is Kind.XPLANE for _, kind in found.values()}) > 1:
        raise ReadError(
            f"{_listed(file for file, _ in found.values())} can't be read as one run: traces of JAX and "
            "reports of Nsight Systems go by different clocks. Read one kind at a time."
        )
    return Found(list(found.values()), notices)


def _files_of(path: Path, notices: list[str]) -> list[Path]:
    try:
        if path.is_dir():
            return _in_directory(path, notices)
        if not path.exists():
            raise ReadError(f"{path} does not exist. Give a trace (*.xplane.pb), a report, or a directory.")
    except OSError as error:
        raise ReadError(f"{path} can't be read: {error.strerror or error}.") from None
    return [path]


def _in_directory(directory: Path, notices: list[str]) -> list[Path]:
    """The files of the one run below a directory; adds a notice of what else lies there."""
    traces: dict[Path, list[Path]] = {}
    reports: list[Path] = []
    unreadable: list[Path] = []
    for count, (place, below, names) in enumerate(os.walk(directory)):
        if count >= _MOST_DIRECTORIES:
            raise ReadError(
                f"{directory} holds more than {_MOST_DIRECTORIES:,} directories: give the session's own, "
                "<logdir>/plugins/profile/<session>."
            )
        below.sort()
        for name in sorted(names):
            file = Path(place, name)
            if name.endswith(".xplane.pb"):
                traces.setdefault(file.parent, []).append(file)
            elif name.endswith(_REPORTS):
                reports.append(file)
            elif name.endswith(".xplane.pb.unreadable"):
                unreadable.append(file)
    if len(traces) > 1:
        raise ReadError(
            f"{directory} holds the traces of {len(traces)} sessions, which are no one run: give one of "
            f"{_listed(traces)}."
        )
    reports = _without_exports(reports)
    if traces:
        if reports:
            notices.append(
                f"Not read, though it lies in {directory} too: {_listed(reports)}. "
                "A report of Nsight Systems goes by another clock than a trace: give it by itself."
            )
        return next(iter(traces.values()))
    if len(reports) > 1:
        raise ReadError(f"{directory} holds {len(reports)} reports: give one of {_listed(reports)}.")
    if not reports:
        damaged = f" Of {_listed(unreadable)} no viewer can read anything." if unreadable else ""
        raise ReadError(
            f"{directory} holds no trace (*.xplane.pb) and no report (*.nsys-rep, *.qdstrm, *.sqlite)."
            f"{damaged} JAX writes a trace when it is stopped: was it?"
        )
    return reports


def _without_exports(reports: list[Path]) -> list[Path]:
    """Leave out each stream and report of which more has been made since: that holds the same."""
    present = set(reports)

    def is_made_into_more(file: Path) -> bool:
        later = _REPORTS[_REPORTS.index(file.suffix) + 1 :]
        made = [other for ending in later if (other := file.with_suffix(ending)) in present]
        return any(other.stat().st_mtime >= file.stat().st_mtime for other in made)

    return [file for file in reports if not is_made_into_more(file)]


def _listed(paths: Iterable[Path]) -> str:
    listed = [str(path) for path in paths]
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(listed[:5]) + more


def _check_is_file(file: Path) -> None:
    """Refuse a pipe, which whoever opened it would wait for, and in which no place can be found again."""
    mode = file.stat().st_mode
    if stat.S_ISREG(mode):
        return
    what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise ReadError(
        f"{file} is {what}, and a trace or report is read from a file: write it to one first "
        "(xz -dc x.xplane.pb.xz > x.xplane.pb)."
    )


def _kind(file: Path) -> Kind:
    """Tell a file's kind by its first bytes, which a name can't change, else by its name."""
    try:
        _check_is_file(file)
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise ReadError(f"{file} can't be read: {error.strerror or error}.") from None
    if head.startswith(b"SQLite format 3\0"):
        return Kind.SQLITE
    if head.startswith((b"NVIDIA Tegra Pro", b"U3w[END]NVIDIA N")):  # a report; the stream that it is made of
        return Kind.REPORT
    for magic, sentence in _MAGIC.items():
        if head.startswith(magic):
            raise ReadError(f"{file} {sentence}.")
    if file.suffix in (".nsys-rep", ".qdstrm"):
        return Kind.REPORT
    if file.suffix == ".sqlite":
        return Kind.SQLITE
    if file.suffix == ".qdrep":
        raise ReadError(
            f"{file} is a report of Nsight Systems before 2021.4: export it (nsys export -t sqlite)."
        )
    return Kind.XPLANE
