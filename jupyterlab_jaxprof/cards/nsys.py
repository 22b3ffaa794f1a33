"""What the card of an Nsight report says besides: how to open it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jupyterlab_jaxprof.captures import Record

from .blocks import Block, Remark


def blocks(record: Record, directory: Path, *, in_store: bool) -> Iterator[Block]:
    """Say how to open the report, where there is one."""
    report = next((file for file in record.files if file.path.endswith(".nsys-rep")), None)
    if report is None:
        return
    version = re.match(r"\d{4}\.\d+", str(record.environment.get("nsys") or ""))
    newer = f" (version {version.group()} or newer)" if version else ""
    where = (
        f"download {report.path} from the JaxProf sidebar" if in_store else f"take {directory / report.path}"
    )
    yield Remark(f"To look at every event, {where}, and open it in nsys-ui{newer}: File, Open.")
