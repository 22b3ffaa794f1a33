"""The two files of nsys: the stream that a recording leaves, and the report that an importer makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .command import followed

REPORT_MAGIC = b"NVIDIA Tegra Profiler Report "
STREAM_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream "


def make_report(
    importer: Path, stream: Path, report: Path, on_part: Callable[[float], None], time_limit_s: float
) -> str:
    """Run an importer on a stream, told how far it is (0 to 1); gives what it said.

    Whether there is a report now is for `begins` to tell. Raises OSError and TimeoutError.
    """
    command = [str(importer), f"--input-file={stream}", f"--output-file={report}"]
    return followed(command, report.parent, on_part, time_limit_s)


def begins(path: Path, magic: bytes) -> bool:
    """Tell whether a file is there and begins so."""
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False
