"""What a written trace holds: whether it is whole, how many events, whose steps, which devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

# jax.profiler writes the first million events (with some metadata) to the trace.json.gz and drops the others.
# https://github.com/jax-ml/jax/issues/21295
JSON_EVENT_LIMIT = 1_000_000
# protobuf's limit: nothing larger can be parsed, and some versions write an empty file instead.
PROTOBUF_LIMIT_BYTES = 2**31 - 1
_DEVICE_PLANE = re.compile(r"/device:(\w+):(\d+).*")
# Parsing takes about ten times a file's size in memory.
_READ_LIMIT_BYTES = 256 * 1024 * 1024


@dataclass
class TraceContents:
    """What one `*.xplane.pb` holds. Counts stop after JSON_EVENT_LIMIT; steps are the host's annotations."""

    size_bytes: int
    problem: str = ""
    was_read: bool = False
    events: int = 0
    device_events: int = 0
    events_in_command_buffers: int = 0
    steps: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: {})
    """For each step's name, `(step_num, duration_ns)` in the order of time."""
    devices: list[tuple[str, int]] = field(default_factory=lambda: [])
    """Platform (`gpu`, `tpu`) and number of each device that has events."""
    versions: dict[str, str] = field(default_factory=lambda: {})
    """What the trace tells of the program: `jax_version`, `jaxlib_version`, ..."""

    @property
    def exceeds_json(self) -> bool:
        """Whether the trace viewer's JSON form can't hold all events."""
        return self.events > JSON_EVENT_LIMIT or (not self.problem and self.size_bytes > _READ_LIMIT_BYTES)


def read_contents(path: Path) -> TraceContents:
    """Look into one xplane file; `problem` is a sentence when it is empty, cut off or too large."""
    contents = TraceContents(path.stat().st_size)
    if contents.size_bytes == 0:
        contents.problem = (
            f"{path.name} is empty although JAX reported success, as happens to traces of over 2 GB: trace "
            "less (fewer steps, no --python, --host-level 1)."
        )
    elif contents.size_bytes > PROTOBUF_LIMIT_BYTES:
        contents.problem = (
            f"{path.name} has {contents.size_bytes / 1e9:.1f} GB, more than the 2 GB that any viewer can "
            "read: trace less (fewer steps, no --python, --host-level 1)."
        )
    elif contents.size_bytes <= _READ_LIMIT_BYTES:
        _read(path, contents)
    return contents


def _read(path: Path, contents: TraceContents) -> None:
    reader = _profile_data()
    if reader is None:
        return
    try:
        planes = list(reader.from_file(str(path)).planes)
    except (RuntimeError, ValueError):
        contents.problem = (
            f"{path.name} is cut off or damaged, so no viewer can read it: if the disk isn't full, "
            "run the cell again."
        )
        return
    contents.was_read = True
    for plane in planes:
        device = _DEVICE_PLANE.fullmatch(plane.name)
        before = contents.device_events
        for line in plane.lines:
            if device:
                _count_device_events(line.events, contents)
            else:
                _read_host_line(line, contents)
        if device and contents.device_events > before:
            contents.devices.append((device[1].lower(), int(device[2])))
        if plane.name == "/host:metadata":
            contents.versions = {name: str(value) for name, value in plane.stats if name.endswith("_version")}


def _profile_data() -> Any:
    """Give the class that reads traces: JAX's own, before JAX 0.7 XProf's, None without either."""
    import jax

    reader = getattr(jax.profiler, "ProfileData", None)
    if reader is not None:
        return reader
    try:
        from xprof.profile_data import ProfileData
    except (ImportError, OSError, AttributeError):
        return None
    return ProfileData


def _count_device_events(events: Iterable[Any], contents: TraceContents) -> None:
    for event in _counted(events, contents):
        contents.device_events += 1
        # A look at a sample is enough, and reading an event's stats is slow (10 us).
        if contents.device_events <= 2000 and _stats(event).get("hlo_op", "").startswith("command_buffer"):
            contents.events_in_command_buffers += 1


def _read_host_line(line: Any, contents: TraceContents) -> None:
    """Count a thread's events, and gather its steps: events of a name whose first one carries a step_num."""
    is_step: dict[str, bool] = {}
    for event in _counted(line.events, contents):
        name = event.name
        if name not in is_step:
            is_step[name] = "step_num" in _stats(event)
        if is_step[name]:
            step_num = _stats(event).get("step_num", -1)  # XProf's reader gives it as text
            contents.steps.setdefault(name, []).append((int(step_num), float(event.duration_ns)))


def _counted(events: Iterable[Any], contents: TraceContents) -> Iterable[Any]:
    left = max(JSON_EVENT_LIMIT + 1 - contents.events, 0)
    for event in islice(iter(events), left):
        contents.events += 1
        yield event


def _stats(event: Any) -> Mapping[str, Any]:
    return {name: value for name, value in event.stats if name is not None}


def main_steps(all_contents: Iterable[TraceContents]) -> tuple[str, list[float]] | None:
    """Give the name and durations (ns, by step) of the steps that take the most time; None without steps.

    Of several hosts the first that has steps counts: they take the same steps at the same time.
    """
    for contents in all_contents:
        if contents.steps:
            total = Counter({name: sum(ns for _, ns in steps) for name, steps in contents.steps.items()})
            name = total.most_common(1)[0][0]
            return name, [duration_ns for _, duration_ns in contents.steps[name]]
    return None
