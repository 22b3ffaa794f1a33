"""What was written: whether each file is whole, and what the whole ones say."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from jupyterlab_jaxprof.reports import ReportError, examine

if TYPE_CHECKING:
    from jupyterlab_jaxprof.reports import Examined
    from jupyterlab_jaxprof.timeline.model import Timeline

# jax.profiler writes the first million events (with some metadata) to the trace.json.gz and drops the others.
# https://github.com/jax-ml/jax/issues/21295
JSON_EVENT_LIMIT = 1_000_000
# protobuf's limit: nothing larger can be parsed, and some versions write an empty file instead.
PROTOBUF_LIMIT_BYTES = 2**31 - 1
#: Larger traces are not read when they are taken: it takes about a second for 5 MB, and the cell would wait.
READ_LIMIT_BYTES = 64_000_000
_SAY_BYTES = 8_000_000
_BYTES_PER_S = 5_000_000


def look_at(path: Path) -> str:
    """Say in a sentence why nobody can read an xplane file (empty, cut off, too large); '' if it is whole."""
    size_bytes = path.stat().st_size
    if size_bytes == 0:
        return (
            f"{path.name} is empty although JAX reported success, as happens to traces of over 2 GB: trace "
            "less (fewer steps, no --python, --host-level 1)."
        )
    if size_bytes > PROTOBUF_LIMIT_BYTES:
        return (
            f"{path.name} has {size_bytes / 1e9:.1f} GB, more than the 2 GB that any viewer can read: trace "
            "less (fewer steps, no --python, --host-level 1)."
        )
    if not _is_whole(path):
        return (
            f"{path.name} is cut off or damaged, so no viewer can read it: if the disk isn't full, run the "
            "cell again."
        )
    return ""


def diagnosed(
    paths: Sequence[Path], reference: str, *, say: Callable[[str], None]
) -> tuple[Examined | None, str]:
    """Read the files of one run and diagnose them; else give why that can't be had now, as a sentence.

    `reference` is what a user calls the capture by. Nothing that goes wrong here may cost the capture, which
    counts for more than what is said of it.
    """
    if not paths:
        return None, ""
    size_bytes = sum(path.stat().st_size for path in paths)
    later = f"%jaxprof report {shlex.quote(reference)} reads it"
    if size_bytes > READ_LIMIT_BYTES:
        return None, (
            f"The trace has {size_bytes / 1e6:,.0f} MB, too large to be read while you wait: its steps and "
            f"findings are not told here. {later}, in about {size_bytes / _BYTES_PER_S:,.0f} s."
        )
    if size_bytes > _SAY_BYTES:
        say(f"Reading the trace ({size_bytes / 1e6:,.0f} MB) ...")
    try:
        return examine(paths), ""
    except ReportError as error:
        return None, f"The trace is kept, but could not be diagnosed. {error}"
    except Exception as error:  # noqa: BLE001 (see above)
        return None, (
            f"The trace is kept, but its diagnosis failed ({type(error).__name__}: {error}). "
            "This is a fault of jupyterlab-jaxprof: please report it."
        )


def read_later(reference: str) -> str:
    """Say how to have a trace read that was not: its kernel was ending, say, and might have been killed."""
    return (
        f"The trace was not read for steps and findings yet: %jaxprof report {shlex.quote(reference)} does."
    )


def exceeds_json(timeline: Timeline) -> bool:
    """Tell whether there are more events than the trace viewer's JSON form holds."""
    rows = (timeline.ops, timeline.ranges, timeline.calls, timeline.steps)
    return sum(map(len, rows)) > JSON_EVENT_LIMIT


def _is_whole(path: Path) -> bool:
    """Tell, in constant memory, whether the fields of the file's one message end where the file does.

    Each plane of an XSpace is one field with its length before it, so a file that is cut off ends within one.
    """
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        try:
            while file.tell() < end:
                if not _skip_field(file):
                    return False
        except EOFError:
            return False
        return file.tell() == end


def _skip_field(file: BinaryIO) -> bool:
    """Skip one field of a protobuf message; False where none can be. Raises EOFError."""
    number, wire_type = divmod(_varint(file), 8)
    if wire_type == 0:
        _varint(file)
    elif wire_type in (1, 2, 5):
        length = {1: 8, 5: 4}.get(wire_type) or min(_varint(file), PROTOBUF_LIMIT_BYTES)
        file.seek(length, os.SEEK_CUR)
    return number > 0 and wire_type in (0, 1, 2, 5)


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte or shift > 63:
            raise EOFError
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
