"""Unpacking a zip that somebody gave: nothing outside its directory, and no more than there is room for."""

from __future__ import annotations

import lzma
import re
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path

from jupyterlab_jaxprof.captures.record import is_relative_path

from .find import ReportError

_MAX_FILES = 10_000
#: A trace packs to a tenth or so. What would grow by more than this is no trace, but made to fill a disk.
_MAX_GROWTH = 200
_ALWAYS_BYTES = 100_000_000
_KEPT_FREE_BYTES = 200_000_000
_COPY_BYTES = 1 << 20
_DEEPEST = 64
_UNIX_SYSTEM = 3
#: All that zipfile raises for damage, and for what it can't read.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, EOFError, ValueError),
)


def is_archive(path: Path) -> bool:
    """Tell whether a file is a zip, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    except OSError:
        return False


def unpack(path: Path, directory: Path) -> None:
    """Unpack the zip into `directory`, which is empty; raises ReportError."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
            _check(path, entries, shutil.disk_usage(directory).free)
            for entry in entries:
                target = directory / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                # zipfile gives no more bytes than the entry declares, and checks their sum
                with archive.open(entry) as source, target.open("xb") as file:
                    shutil.copyfileobj(source, file, _COPY_BYTES)
    except _DAMAGE as error:
        raise ReportError(
            f"{path} is no whole zip archive ({error}): it may be cut short. Download or copy it again."
        ) from error
    except OSError as error:
        raise ReportError(f"{path} can't be unpacked: {error.strerror or error}.") from error


def _check(path: Path, entries: list[zipfile.ZipInfo], free_bytes: int) -> None:
    """Refuse what would go elsewhere than into its directory, or would fill the disk."""
    if len(entries) > _MAX_FILES:
        raise ReportError(f"{path} holds {len(entries):,} files, which no capture does.")
    for entry in entries:
        mode = entry.external_attr >> 16 if entry.create_system == _UNIX_SYSTEM else 0
        is_plain = stat.S_IFMT(mode) in (0, stat.S_IFREG)
        is_inside = is_relative_path(entry.filename) and not re.search(r"\\|^\w:", entry.filename)
        if not is_inside or not is_plain or entry.filename.count("/") > _DEEPEST:
            raise ReportError(
                f"{path} holds {entry.filename[:80]!r}, which would not stay in its directory: it is no "
                "archive of a capture, and nothing of it was unpacked."
            )
        if entry.flag_bits & 1:
            raise ReportError(f"{path} is encrypted: unpack it first, then give the directory.")
    total_bytes = sum(entry.file_size for entry in entries)
    if total_bytes > _ALWAYS_BYTES + _MAX_GROWTH * path.stat().st_size:
        raise ReportError(
            f"{path} would grow from {path.stat().st_size / 1e6:,.1f} to {total_bytes / 1e6:,.0f} MB, as no "
            "capture does. Nothing of it was unpacked."
        )
    if total_bytes > free_bytes - _KEPT_FREE_BYTES:
        raise ReportError(
            f"{path} needs {total_bytes / 1e6:,.0f} MB on the disk of the store, and {free_bytes / 1e6:,.0f} "
            "MB are free. Delete captures, or make room otherwise."
        )
