"""What a card says of a capture, before it is text or HTML: every form is made from this one model."""

from __future__ import annotations

import os
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from jupyterlab_jaxprof.captures import Record, Status

from . import memory, nsys, sweep, timed, traced, units
from .blocks import Block
from .printable import printable

TOOL = "trace_viewer@"
MAX_FILES = 8
MAX_NOTICES = 12
MAX_BARS = 60
MAX_MEDIANS = 3
MAX_LINES, MAX_LINE = 60, 200

#: Kinds whose body says all of the summary, below its sentence.
_BODIES = {"time": timed.blocks, "sweep": sweep.blocks, "memory": memory.blocks}


@dataclass(frozen=True)
class Bar:
    """One bar of the chart: a step, or the median of several (above MAX_BARS steps); cut if `beyond`."""

    label: str
    fraction: float
    beyond: bool


@dataclass(frozen=True)
class Steps:
    """The steps in words and bars."""

    name: str
    count: int
    median: str
    least: str
    most: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Link:
    """Where the card leads: an address (empty: none is known), and what to do where links do not work."""

    address: str
    run: str
    sentence: str
    command: str


@dataclass(frozen=True)
class Card:
    """One capture, ready to be shown; all texts are printable, none is escaped."""

    kind: str
    name: str
    status: Status
    reason: str
    when: str
    headline: tuple[str, str] | None
    wall: str
    steps: Steps | None
    devices: str
    files: Sequence[tuple[str, str]]
    more_files: int
    total: str
    directory: str
    notices: Sequence[str]
    link: Link | None
    sentence: str = ""
    lead: Sequence[Block] = ()
    """What stands before the figures."""
    blocks: Sequence[Block] = ()
    """What stands after them."""
    source: Sequence[str] = ()
    """The lines that were run, the magic's first."""
    environment: Sequence[tuple[str, str]] = ()
    """Where they ran: versions, the machine and its flags."""

    @classmethod
    def of(cls, record: Record, *, directory: Path, in_store: bool) -> Card:
        """Make the model of a record whose files lie in `directory`."""
        notices = [printable(notice) for notice in record.notices]
        hidden = len(notices) - MAX_NOTICES
        if hidden > 0:
            notices = [*notices[:MAX_NOTICES], f"and {hidden} more: see capture.json."]
        wall_ms = record.summary.get("wall_ms")
        wall = units.duration(wall_ms) if wall_ms is not None else ""
        headline, steps = _headline(record), _steps(record)
        sentence, lead = "", traced.lead(record.findings)
        blocks = traced.blocks(record.summary)
        body = _BODIES.get(record.kind)
        if body is not None:
            sentence, blocks = printable(str(record.summary.get("sentence") or "")), body(record.summary)
            headline, wall = None, ""
        if record.kind == "nsys":
            blocks = [
                *blocks,
                *nsys.blocks(record, directory, in_store=in_store, has_server=bool(base_url())),
            ]
        said = steps is None and headline is not None and headline[1] == wall
        return cls(
            kind=printable(record.kind),
            name=printable(record.name),
            status=record.status,
            reason=printable(record.reason),
            when=units.moment(record.created),
            headline=headline,
            wall="" if said else wall,
            steps=steps,
            devices=_devices(record.environment),
            files=_files(record),
            more_files=max(len(record.files) - MAX_FILES, 0),
            total=_total(record),
            directory=printable(str(directory)),
            notices=notices,
            link=_link(record, directory, in_store),
            sentence=sentence,
            lead=lead,
            blocks=blocks,
            source=_source(record),
            environment=_environment(record),
        )


def _headline(record: Record) -> tuple[str, str] | None:
    headline = record.summary.get("headline")
    if not isinstance(headline, Mapping):
        return None
    part = cast("Mapping[str, Any]", headline)
    value = units.quantity(part.get("value"), printable(str(part.get("unit", ""))))
    return printable(str(part.get("label", ""))), value


def _steps(record: Record) -> Steps | None:
    steps = record.steps
    if steps is None or not steps.get("count"):
        return None
    return Steps(
        name=printable(str(steps.get("name") or "step"))
        + (" (dispatch only)" if steps.get("marks_dispatch") else ""),
        count=int(steps["count"]),
        median=units.duration(steps.get("median_ms")),
        least=units.duration(steps.get("min_ms")),
        most=units.duration(steps.get("max_ms")),
        bars=_bars(steps.get("durations_ms") or []),
    )


def _bars(durations_ms: Sequence[float | None]) -> Sequence[Bar]:
    """Draw the steps in order, on a scale that a slow first step can't flatten: it ends at MAX_MEDIANS.

    Of many steps in a row some take long, so that the longest of each group would show healthy steps as slow.
    """
    known = [(number, value) for number, value in enumerate(durations_ms) if value is not None and value >= 0]
    if len(known) < 2 or not any(value for _, value in known):
        return ()
    width = -(-len(known) // MAX_BARS)
    groups = [known[start : start + width] for start in range(0, len(known), width)]
    heights = [statistics.median(value for _, value in group) for group in groups]
    top = min(max(heights), MAX_MEDIANS * statistics.median(value for _, value in known)) or max(heights)
    return [
        Bar(_told(group), min(height / top, 1.0) if top else 0.0, height > top)
        for group, height in zip(groups, heights, strict=True)
    ]


def _told(group: Sequence[tuple[int, float]]) -> str:
    values = [value for _, value in group]
    median = units.duration(statistics.median(values))
    if len(group) == 1:
        return f"step {group[0][0]}: {median}"
    return (
        f"steps {group[0][0]:,} to {group[-1][0]:,}: median {median}, longest {units.duration(max(values))}"
    )


def _source(record: Record) -> Sequence[str]:
    lines = f"{record.magic}\n{record.cell}".strip().splitlines()
    shown = [printable(line, MAX_LINE) for line in lines[:MAX_LINES]]
    return [*shown, "…"] if len(lines) > len(shown) else shown


def _environment(record: Record) -> Sequence[tuple[str, str]]:
    """Give what of the environment is told in a word or a number, and the notebook."""
    told = {"notebook": record.notebook, **record.environment}
    return [
        (printable(name), printable(str(value), MAX_LINE))
        for name, value in told.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]


def _devices(environment: Mapping[str, Any]) -> str:
    listed = environment.get("devices")
    devices = cast("list[Any]", listed) if isinstance(listed, (list, tuple)) else []
    kinds = Counter(_device(cast("Mapping[str, Any]", item)) for item in devices if isinstance(item, Mapping))
    return ", ".join(name if number == 1 else f"{number} × {name}" for name, number in kinds.items())


def _device(device: Mapping[str, Any]) -> str:
    kind, platform = str(device.get("kind") or ""), str(device.get("platform") or "")
    if not kind or kind.lower() == platform.lower():
        return printable(platform.upper() or kind or "device")
    return printable(kind)


def _total(record: Record) -> str:
    if not record.files:
        return "" if record.kind in _BODIES else "none"
    return f"{units.count(len(record.files), 'file')}, {units.size(record.size_bytes)}"


def _files(record: Record) -> Sequence[tuple[str, str]]:
    shown = sorted(record.files, key=lambda file: (file.role == "other", file.path))[:MAX_FILES]
    return [(printable(file.path.rpartition("/")[2]), units.size(file.size_bytes)) for file in shown]


def _link(record: Record, directory: Path, in_store: bool) -> Link | None:
    if record.xprof_run is None:
        return None
    run = record.xprof_run
    command = printable(f"xprof --logdir {shlex.quote(str(directory.parent))}")
    # the command listens on all network interfaces, and lets in everybody
    alone = "on a machine that nobody else reaches (it asks for no password)"
    if not in_store:
        sentence = f"It is outside the store: the sidebar doesn't list it. To read it {alone}, run"
        return Link("", run, sentence, command)
    sentence = f"To read it, use the JaxProf sidebar in JupyterLab; or, {alone}, run"
    base = base_url()
    address = f"{base}jaxprof/xprof?{urlencode({'run': run, 'tool': TOOL})}" if base else ""
    return Link(address, run, sentence, command)


def base_url() -> str:
    """Give the Jupyter server's base_url with its slash, as it told its kernels; empty when unknown."""
    base = os.environ.get("JAXPROF_BASE_URL", "").strip()
    if not base.startswith(("/", "http://", "https://")) or base.startswith("//"):
        return ""
    return base if base.endswith("/") else base + "/"
