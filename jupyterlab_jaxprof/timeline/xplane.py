"""Traces of JAX's profiler (`*.xplane.pb`) read into timelines; neither JAX nor XProf is needed.

The file's protobuf messages are read directly: their form is public and only ever grows (`xplane_format`).
`jax.profiler.ProfileData` reads the same with an object for each event; the tests hold both, and XProf's own
table of kernels, against this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import xplane_device, xplane_hlo, xplane_host
from .build import C, Texts, by_time, concatenate, empty
from .figures import read_number, whole_number
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
from .xplane_compiles import with_functions
from .xplane_format import Plane
from .xplane_space import Space

_DROPPED = re.compile(r"(?<!\d)(\d+)\D{0,40}\bdropped|dropped\D{0,40}?(\d+)", re.IGNORECASE)


def read_xplane(path: Path) -> Timeline:
    """Read one file of one process. Raises ReadError with a sentence when nothing of it can be read."""
    texts = Texts()
    return _timeline(path, Space(path, texts), texts)


def _timeline(path: Path, space: Space, texts: Texts) -> Timeline:
    origin_ns, metadata = space.origin_ns, space.plane(xplane_hlo.PLANE)
    programs = xplane_hlo.Programs(space.buffer, metadata)
    contents = [
        xplane_device.read_device(plane, list(space.lines(plane)), space.host, texts, programs)
        for plane in space.planes
        if xplane_device.PLANE.match(plane.name)
    ]
    contents = [one for one in contents if len(one.ops)] or contents
    devices = tuple(one.device for one in contents)
    placed = (replace(one.ops, device=one.ops.device + np.int32(row)) for row, one in enumerate(contents))
    ops = concatenate([empty(DeviceOps), *placed])
    reader = xplane_host.HostReader(texts, devices)
    threads: list[Thread] = []
    parts: list[xplane_host.ThreadContents] = []
    for line in (
        line for plane in space.planes if plane.name == xplane_host.PLANE for line in space.lines(plane)
    ):
        parts.append(reader.read(line, len(threads)))
        threads.append(Thread(space.host, 0, line.number, line.name.removesuffix(f"/{line.number}")))
        del line  # it may be most of a file
    ops = by_time(_without_fences(ops, [part.fence_calls for part in parts], texts))
    modules = [module for part in parts for module in part.modules]
    timeline = Timeline(
        source=Source.XPLANE,
        files=(File(str(path), Source.XPLANE, space.buffer.size, space.host, complete=not space.lost),),
        origin_ns=origin_ns,
        texts=(),
        devices=devices,
        threads=tuple(threads),
        ops=ops,
        ranges=_joined(HostRanges, parts, "ranges"),
        calls=_joined(ApiCalls, parts, "calls"),
        steps=_joined(Steps, parts, "steps"),
        compiles=with_functions(_joined(Compiles, parts, "compiles"), modules, texts),
        allocator=_joined(AllocatorSamples, parts, "allocator"),
        collectives=xplane_device.find_collectives(ops, texts, programs),
        recorded_ns=(0.0, 0.0),
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
        recorded_ns=_recorded(space, timeline),
        blind=_blind(timeline) | space.blind,
        notices=_notices(path, space, timeline, sorted(reader.unnumbered)),
    )


def _joined(table: type[C], parts: list[xplane_host.ThreadContents], name: str) -> C:
    """Join a table of all threads, and let go of each thread's: together they are most of a file."""
    tables: list[C] = [empty(table)]
    for part in parts:
        tables.append(getattr(part, name))
        setattr(part, name, empty(table))
    joined = concatenate(tables)
    tables.clear()
    return by_time(joined)


def _recorded(space: Space, timeline: Timeline) -> tuple[float, float]:
    """When recording began and ended; where the file does not tell, from the first to the last of all."""
    if space.began_ns and space.ended_ns:
        return 0.0, float(space.ended_ns - space.began_ns)
    tables = [table for table in (timeline.ops, timeline.ranges, timeline.steps) if len(table)]
    return (
        min((float(table.start_ns[0]) for table in tables), default=0.0),
        max((float((table.start_ns + table.duration_ns).max()) for table in tables), default=0.0),
    )


def _without_fences(ops: DeviceOps, fence_calls: list[NDArray[np.int64]], texts: Texts) -> DeviceOps:
    """Leave out what the magics themselves ran to wait for the devices."""
    is_fence = ops.module == texts.number(xplane_host.FENCE)
    is_fence |= (ops.correlation != 0) & np.isin(
        ops.correlation, np.concatenate([np.zeros(0, np.int64), *fence_calls])
    )
    return ops.take(~is_fence) if is_fence.any() else ops


def _dropped(space: Space) -> int:
    stated = sum(
        max(whole_number(value), 0)
        for plane in space.planes
        for name, value in plane.stats.items()
        if name.startswith("dropped")
    )
    told = [match for message in space.messages for match in _DROPPED.finditer(message)]
    return stated + sum(read_number(match[1] or match[2]) for match in told)


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


def _notices(path: Path, space: Space, timeline: Timeline, unnumbered: Sequence[str]) -> tuple[str, ...]:
    notices = [
        f"The steps `{name}` have no `step_num`: they are numbered in their order here, and XProf doesn't "
        "take "
        f"them for steps. Mark them with `StepTraceAnnotation({name!r}, step_num=i)`."
        for name in unnumbered[:3]
    ]
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
