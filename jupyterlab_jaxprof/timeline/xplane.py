"""Traces of JAX's profiler (`*.xplane.pb`) read into timelines; neither JAX nor XProf is needed.

The file's protobuf messages are read directly: their form is public and only ever grows (`xplane_format`).
`jax.profiler.ProfileData` reads the same with an object for each event; the tests hold both, and XProf's own
table of kernels, against this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from . import xplane_device, xplane_hlo, xplane_host
from .build import Texts, by_time, concatenate, empty
from .model import (
    AllocatorSamples,
    ApiCalls,
    Compiles,
    DeviceOps,
    File,
    HostRanges,
    OpKind,
    RangeKind,
    ReadError,
    Source,
    Steps,
    Thread,
    Timeline,
)
from .wire import LENGTH, Buffer, DamagedError, Field, field_at
from .xplane_compiles import with_functions
from .xplane_format import Line, Plane, read_line, read_plane

_PLANES, _ERRORS, _WARNINGS, _HOSTS = 1, 2, 3, 4
_TASK = "Task Environment"
_DROPPED = re.compile(r"(\d+)\D{0,40}\bdropped|dropped\D{0,40}?(\d+)", re.IGNORECASE)
#: protobuf's limit: what is larger could never have been written whole.
_LIMIT_BYTES = 2**31 - 1


@dataclass
class _Space:
    """The parts of a file that could be read."""

    planes: list[Plane] = field(default_factory=lambda: [])
    lines: dict[int, list[Line]] = field(default_factory=lambda: {})
    """The lines of the plane at each index."""
    host: str = ""
    messages: list[str] = field(default_factory=lambda: [])
    lost: list[str] = field(default_factory=lambda: [])
    """What could not be read."""
    blind: set[str] = field(default_factory=lambda: set())
    """What therefore must not be concluded from."""


def read_xplane(path: Path) -> Timeline:
    """Read one file of one process. Raises ReadError with a sentence when nothing of it can be read."""
    buffer = _load(path)
    texts = Texts()
    space = _read_space(buffer, texts)
    if not space.planes:
        raise ReadError(
            f"{path} is no trace of JAX's profiler, or cut off so early that nothing can be read: in its "
            f"{buffer.size:,} bytes is no whole plane. Give a file *.xplane.pb, or run the cell again."
        )
    return _timeline(path, buffer, space, texts)


def _load(path: Path) -> Buffer:
    try:
        size_bytes = path.stat().st_size
        if size_bytes > _LIMIT_BYTES:
            raise ReadError(
                f"{path} has {size_bytes / 1e9:.1f} GB, more than a trace can have (2 GB): trace less."
            )
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise ReadError(f"{path} can't be read: {error.strerror or error}.") from None
    if not len(content):
        raise ReadError(
            f"{path} is empty. JAX writes an empty file for a trace of over 2 GB, and so does a full disk: "
            "trace less, or make room, and run the cell again."
        )
    return Buffer(content)


def _read_space(buffer: Buffer, texts: Texts) -> _Space:
    space = _Space()
    at = 0
    while at < buffer.size:
        try:
            part = field_at(buffer, at, buffer.size)
            if part.number not in (_PLANES, _ERRORS, _WARNINGS, _HOSTS) or part.wire_type != LENGTH:
                raise DamagedError
        except DamagedError:
            space.lost.append(f"its last {buffer.size - at:,} bytes")
            break
        at = part.end
        if part.number == _PLANES:
            _read_plane(buffer, part, space, texts)
        elif part.number == _HOSTS:
            space.host = buffer.text(part.start, part.end)
        else:
            space.messages.append(buffer.text(part.start, part.end))
    return space


def _read_plane(buffer: Buffer, place: Field, space: _Space, texts: Texts) -> None:
    try:
        plane = read_plane(buffer, place)
    except DamagedError:
        space.lost.append("a plane")
        return
    is_device = bool(xplane_device.PLANE.match(plane.name))
    lines: list[Line] = []
    for part in plane.lines if is_device or plane.name == xplane_host.PLANE else ():
        try:
            line = read_line(buffer, part, plane, texts)
        except DamagedError:
            space.lost.append(f"a line of {plane.name}")
            space.blind.update(("devices",) if is_device else ("host", "compiles"))
            continue
        if not is_device or xplane_device.is_stream(line.name):
            lines.append(line)
    space.lines[len(space.planes)] = lines
    space.planes.append(plane)


def _timeline(path: Path, buffer: Buffer, space: _Space, texts: Texts) -> Timeline:
    task = next((plane.stats for plane in space.planes if plane.name == _TASK), {})
    began_ns, ended_ns = (_whole(task.get(f"profile_{name}_time")) for name in ("start", "stop"))
    lines = [line.events for lines in space.lines.values() for line in lines if len(line.events)]
    zero_ns = began_ns or min((line.timestamp_ns for line in lines if line.has_unix_times), default=0)
    metadata = next((plane for plane in space.planes if plane.name == xplane_hlo.PLANE), None)
    programs = xplane_hlo.Programs(buffer, metadata)
    contents = [
        xplane_device.read_device(plane, space.lines[row], space.host, zero_ns, texts, programs)
        for row, plane in enumerate(space.planes)
        if xplane_device.PLANE.match(plane.name)
    ]
    contents = [one for one in contents if len(one.ops)] or contents
    devices = tuple(one.device for one in contents)
    ops = concatenate(
        [
            empty(DeviceOps),
            *(replace(one.ops, device=one.ops.device + np.int32(row)) for row, one in enumerate(contents)),
        ]
    )
    host_lines = [
        line
        for row, plane in enumerate(space.planes)
        if plane.name == xplane_host.PLANE
        for line in space.lines[row]
    ]
    reader = xplane_host.HostReader(texts, zero_ns, devices)
    threads = [reader.read(line, number) for number, line in enumerate(host_lines)]
    fence_calls = np.concatenate([np.zeros(0, dtype=np.int64), *(thread.fence_calls for thread in threads)])
    ops = by_time(_without_fences(ops, fence_calls, texts))
    timeline = Timeline(
        source=Source.XPLANE,
        files=(File(str(path), Source.XPLANE, buffer.size, space.host, complete=not space.lost),),
        origin_ns=zero_ns,
        texts=(),
        devices=devices,
        threads=tuple(
            Thread(space.host, 0, line.number, line.name.removesuffix(f"/{line.number}"))
            for line in host_lines
        ),
        ops=ops,
        ranges=by_time(concatenate([empty(HostRanges), *(thread.ranges for thread in threads)])),
        calls=by_time(concatenate([empty(ApiCalls), *(thread.calls for thread in threads)])),
        steps=by_time(concatenate([empty(Steps), *(thread.steps for thread in threads)])),
        compiles=with_functions(
            by_time(concatenate([empty(Compiles), *(thread.compiles for thread in threads)])),
            [module for thread in threads for module in thread.modules],
            texts,
        ),
        allocator=by_time(concatenate([empty(AllocatorSamples), *(thread.allocator for thread in threads)])),
        collectives=xplane_device.find_collectives(ops, texts),
        recorded_ns=(0.0, float(ended_ns - began_ns)) if began_ns and ended_ns else (0.0, 0.0),
        dropped_events=_dropped(space),
        versions=_versions(metadata),
    )
    if space.lost and not len(ops) and not len(timeline.ranges):
        raise ReadError(
            f"{path} is cut off or damaged: no operation of a device and nothing of the host can be read. If "
            "the disk isn't full, run the cell again."
        )
    return replace(
        timeline,
        texts=texts.all(),
        blind=_blind(timeline) | space.blind,
        notices=_notices(path, space, timeline),
    )


def _without_fences(
    ops: DeviceOps, fence_calls: np.ndarray[tuple[int, ...], np.dtype[np.int64]], texts: Texts
) -> DeviceOps:
    """Leave out what the magics themselves ran to wait for the devices."""
    is_fence = ops.module == texts.number(xplane_host.FENCE)
    is_fence |= (ops.correlation != 0) & np.isin(ops.correlation, fence_calls)
    return ops.take(~is_fence) if is_fence.any() else ops


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _dropped(space: _Space) -> int:
    stated = sum(
        _whole(value)
        for plane in space.planes
        for name, value in plane.stats.items()
        if name.startswith("dropped")
    )
    told = [match for message in space.messages for match in _DROPPED.finditer(message)]
    return stated + sum(int(match[1] or match[2]) for match in told)


def _versions(metadata: Plane | None) -> dict[str, str]:
    stats = metadata.stats if metadata else {}
    return {
        name.removesuffix("_version"): str(value)
        for name, value in stats.items()
        if name.endswith("_version")
    }


def _blind(timeline: Timeline) -> frozenset[str]:
    kinds = timeline.ops.kind
    copies = kinds == OpKind.COPY
    missing = {
        "devices": not len(timeline.ops),
        "host": not len(timeline.ranges),
        "compiles": not len(timeline.ranges),
        "allocator": not len(timeline.allocator),
        "graphs": bool((kinds == OpKind.GRAPH).any()),
        "sizes": bool((timeline.ops.size_bytes[copies] == 0).any()),
        "python": not bool((timeline.ranges.kind == RangeKind.PYTHON).any()),
    }
    return frozenset(name for name, blind in missing.items() if blind)


def _notices(path: Path, space: _Space, timeline: Timeline) -> tuple[str, ...]:
    notices: list[str] = []
    if space.lost:
        notices.append(
            f"{path.name} is cut off or damaged: {', '.join(dict.fromkeys(space.lost))} could not be read. "
            f"What was readable ({len(timeline.ops):,} operations of devices, {len(timeline.ranges):,} "
            "ranges of the host) is shown; what is missing is not known."
        )
    if timeline.dropped_events:
        notices.append(
            f"The recorder dropped {timeline.dropped_events:,} events: counts and times are too low."
        )
    notices += [f"The recorder reports: {message.strip()}" for message in dict.fromkeys(space.messages)]
    return tuple(notices)
