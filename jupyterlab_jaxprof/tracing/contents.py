"""What a written trace holds: whether it is whole, how many events, whose steps, which devices."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

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
        """Whether there are more events than the trace viewer's JSON form holds; only what is read counts."""
        return self.events > JSON_EVENT_LIMIT

    @property
    def too_large_to_read(self) -> bool:
        """Whether the file was not looked into for its size, though it is whole."""
        return not self.problem and self.size_bytes > _READ_LIMIT_BYTES


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
    else:
        reader = _profile_data() if contents.size_bytes <= _READ_LIMIT_BYTES else None
        whole = _read(path, reader, contents) if reader is not None else _is_whole(path)
        if not whole:
            contents.problem = (
                f"{path.name} is cut off or damaged, so no viewer can read it: if the disk isn't full, "
                "run the cell again."
            )
    return contents


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


def _read(path: Path, reader: Any, contents: TraceContents) -> bool:
    """Fill in `contents`; False where the file can't be read."""
    try:
        planes = list(reader.from_file(str(path)).planes)
    except (RuntimeError, ValueError):
        return False
    contents.was_read = True
    with warnings.catch_warnings():
        # JAX's bindings make the types of these iterators at their first use, and Python warns of each.
        warnings.filterwarnings("ignore", r"builtin type \w+ has no __module__ attribute", DeprecationWarning)
        for plane in planes:
            _read_plane(plane, contents)
    return True


def _read_plane(plane: Any, contents: TraceContents) -> None:
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
