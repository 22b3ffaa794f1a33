"""What the card of an Nsight report says besides: how to open it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jupyterlab_jaxprof.captures import Record

from .blocks import Block, Download, Remark

#: What a card may carry in itself, in the notebook's own file.
_LITTLE_BYTES = 1_000_000


def blocks(record: Record, directory: Path, *, in_store: bool, has_server: bool) -> Iterator[Block]:
    """Say how to open the report, where there is one.

    Without the server extension (Colab, VS Code, a terminal) no sidebar brings the file to the user's
    machine: a page carries it then, if it is small.
    """
    report = next((file for file in record.files if file.path.endswith(".nsys-rep")), None)
    if report is None:
        return
    version = re.match(r"\d{4}\.\d+", str(record.environment.get("nsys") or ""))
    newer = f" (version {version.group()} or newer)" if version else ""
    place = directory / report.path
    where = f"download {report.path} from the JaxProf sidebar" if in_store and has_server else f"take {place}"
    yield Remark(
        f"To look at every event, {where}, and open it in nsys-ui{newer}: File, Open. Like every report of "
        "nsys it holds the environment variables of your processes: think before you hand it on."
    )
    if not has_server and report.size_bytes <= _LITTLE_BYTES:
        with suppress(OSError):  # deleted since
            yield Download(place.name, place.read_bytes())
