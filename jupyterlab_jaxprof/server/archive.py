"""A zip made while it is read: no temporary copy, one chunk in memory, of any size (Zip64)."""

from __future__ import annotations

import io
import os
import time
import zipfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

READ_BYTES = 1 << 20
# Deflating these again costs time and saves nothing.
COMPRESSED_SUFFIXES = (".gz", ".xz", ".bz2", ".zst", ".zip", ".nsys-rep", ".png", ".jpg")


@dataclass(frozen=True)
class Entry:
    """One file of an archive, opened only when its turn comes."""

    path: str
    open: Callable[[], BinaryIO]


class _Sink(io.RawIOBase):
    """Keeps what the zip writer writes until it is taken; it can't seek, so the writer never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        block = data if isinstance(data, bytes) else bytes(data)
        self._pending.append(block)
        return len(block)

    def take(self) -> bytes:
        block = b"".join(self._pending)
        self._pending.clear()
        return block


def zip_chunks(entries: list[Entry], folder: str) -> Generator[bytes]:
    """Give a zip of `entries`, all below `folder`, piece by piece; no piece is empty.

    Raises:
        OSError: if a file can't be read; what was given until then is no whole archive.
    """
    sink = _Sink()
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in entries:
            with entry.open() as source:
                info = _info(f"{folder}/{entry.path}", source)
                with archive.open(
                    info, "w", force_zip64=info.file_size >= zipfile.ZIP64_LIMIT // 2
                ) as target:
                    while block := source.read(READ_BYTES):
                        target.write(block)
                        if piece := sink.take():
                            yield piece
    yield sink.take()


def _info(name: str, source: BinaryIO) -> zipfile.ZipInfo:
    status = os.fstat(source.fileno())
    moment = time.localtime(status.st_mtime)[:6]
    info = zipfile.ZipInfo(name, max(moment, (1980, 1, 1, 0, 0, 0)))
    info.compress_type = zipfile.ZIP_STORED if name.endswith(COMPRESSED_SUFFIXES) else zipfile.ZIP_DEFLATED
    info.external_attr = (status.st_mode & 0xFFFF) << 16
    info.file_size = status.st_size
    return info
