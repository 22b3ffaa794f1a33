"""An XPlane file opened: its planes, and its lines one at a time; what is damaged is passed over and told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import xplane_device
from .build import Texts
from .figures import whole_number
from .model import ReadError
from .wire import LENGTH, Buffer, DamagedError, Field, field_at
from .xplane_format import Line, Plane, has_unix_times, read_line, read_plane, timestamp_of

_PLANES, _ERRORS, _WARNINGS, _HOSTS = 1, 2, 3, 4
_TASK = "Task Environment"
#: protobuf's limit: what is larger could never have been written whole.
_LIMIT_BYTES = 2**31 - 1


class Space:
    """The parts of a file that can be read. Making one raises ReadError when there are none."""

    def __init__(self, path: Path, texts: Texts) -> None:
        self.buffer = _load(path)
        self._texts = texts
        self.planes: list[Plane] = []
        self.host = ""
        self.messages: list[str] = []
        """What the recorder reported."""
        self.lost: list[str] = []
        """What could not be read."""
        self.blind: set[str] = set()
        """What therefore must not be concluded from."""
        self._read_planes()
        if not self.planes:
            raise ReadError(
                f"{path} is no trace of JAX's profiler, or cut off so early that nothing can be read: in its "
                f"{self.buffer.size:,} bytes is nothing whole. Give a trace (*.xplane.pb) or a report of "
                "Nsight Systems (*.nsys-rep, *.sqlite), or record it again."
            )
        task = self.plane(_TASK)
        times = task.stats if task else {}
        self.began_ns, self.ended_ns = (
            whole_number(times.get(f"profile_{name}_time")) for name in ("start", "stop")
        )
        """When recording began and ended by the unix clock; 0: not known."""
        self.origin_ns = self.began_ns or self._first_unix_time()

    def plane(self, name: str) -> Plane | None:
        """Give the plane of a name."""
        return next((plane for plane in self.planes if plane.name == name), None)

    def lines(self, plane: Plane) -> Iterator[Line]:
        """Read a plane's lines; of a device's the streams alone."""
        is_device = bool(xplane_device.PLANE.match(plane.name))
        for place in plane.lines:
            try:
                line = read_line(self.buffer, place, plane, self._texts, self.origin_ns)
            except DamagedError:
                self.lost.append(f"a line of {plane.name}")
                self.blind.update(("devices",) if is_device else ("host", "compiles"))
                continue
            if not is_device or xplane_device.is_stream(line.name):
                yield line

    def _read_planes(self) -> None:
        buffer, at = self.buffer, 0
        while at < buffer.size:
            try:
                part = field_at(buffer, at, buffer.size)
                if part.number not in (_PLANES, _ERRORS, _WARNINGS, _HOSTS) or part.wire_type != LENGTH:
                    raise DamagedError
            except DamagedError:
                self.lost.append(f"its last {buffer.size - at:,} bytes")
                return
            at = part.end
            if part.number == _PLANES:
                self._read_plane(part)
            elif part.number == _HOSTS:
                self.host = buffer.text(part.start, part.end)
            else:
                self.messages.append(buffer.text(part.start, part.end))

    def _read_plane(self, place: Field) -> None:
        try:
            self.planes.append(read_plane(self.buffer, place))
        except DamagedError:
            self.lost.append("a plane")

    def _first_unix_time(self) -> int:
        times: list[int] = []
        for place in (place for plane in self.planes for place in plane.lines):
            try:
                times.append(timestamp_of(self.buffer, place))
            except DamagedError:
                continue
        return min(filter(has_unix_times, times), default=0)


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
