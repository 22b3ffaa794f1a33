"""The programs that a trace carries: where in JAX and in the user's files each HLO operation comes from.

https://github.com/openxla/xla/blob/main/xla/service/hlo.proto
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from .wire import LENGTH, Buffer, DamagedError, Field, fields, scan
from .xplane_format import Plane, read_stat

PLANE = "/host:metadata"


@dataclass(frozen=True)
class Origin:
    """Where an HLO operation comes from; empty where the program does not tell."""

    op: str
    scope: str
    source: str


class Programs:
    """The HLO modules of a trace, each read when it is first asked for."""

    def __init__(self, buffer: Buffer, plane: Plane | None) -> None:
        self._buffer = buffer
        self._plane = plane
        self._read: dict[tuple[str, int], dict[str, Origin]] = {}

    def origin(self, module: str, program: int, name: str) -> Origin | None:
        """Find an operation of a module by its name or, inside a CUDA graph, its kernel's name.

        XLA names a fusion's kernel like the operation, with underscores for what C++ does not allow.
        """
        key = module, program
        if key not in self._read:
            self._read[key] = self._load(f"{module}({program})")
        return self._read[key].get(name)

    def _load(self, title: str) -> dict[str, Origin]:
        plane = self._plane
        numbers = [number for number, name in plane.event_names.items() if name == title] if plane else []
        for number in numbers:
            try:
                for place in plane.event_stats.get(number, []) if plane else []:
                    name, value = read_stat(self._buffer, place, plane.stat_names if plane else {})
                    if name.lower().replace(" ", "_") == "hlo_proto" and isinstance(value, bytes):
                        return _origins(Buffer(value))
            except DamagedError:
                continue
        return {}


def _origins(buffer: Buffer) -> dict[str, Origin]:
    """Read a module's operations by name, and by kernel name where that differs."""
    instructions: list[Field] = []
    frames: dict[int, str] = {}
    for part in _of(buffer, Field(1, LENGTH, 0, 0, buffer.size), 1):
        for module_part in fields(buffer, part.start, part.end):
            if module_part.number == 3:
                instructions += _of(buffer, module_part, 2)
            elif module_part.number == 17:
                frames = _stack_frames(buffer, module_part)
    starts = np.array([one.start for one in instructions], dtype=np.int64)
    ends = np.array([one.end for one in instructions], dtype=np.int64)
    names: dict[int, str] = {}
    metadata: dict[int, tuple[int, int]] = {}
    for found in scan(buffer, starts, ends):
        for row, number, length, start in zip(
            found.rows.tolist(),
            found.number.tolist(),
            found.value.tolist(),
            found.start.tolist(),
            strict=True,
        ):
            if number == 1:
                names[row] = buffer.text(start, start + length)
            elif number == 7:
                metadata[row] = start, start + length
    by_name: dict[str, Origin] = {}
    by_kernel: dict[str, Origin] = {}
    for row, name in names.items():
        origin = Origin(name, *_scope_and_source(buffer, metadata.get(row, (0, 0)), frames))
        by_name[name] = origin
        by_kernel.setdefault(name.replace(".", "_").replace("-", "_"), origin)
    return by_kernel | by_name


def _of(buffer: Buffer, message: Field, number: int) -> Iterator[Field]:
    return (part for part in fields(buffer, message.start, message.end) if part.number == number)


def _scope_and_source(buffer: Buffer, place: tuple[int, int], frames: dict[int, str]) -> tuple[str, str]:
    scope = file = source = ""
    line = 0
    for part in fields(buffer, *place):
        if part.number == 2:
            scope = buffer.text(part.start, part.end)
        elif part.number == 3:
            file = buffer.text(part.start, part.end)
        elif part.number == 4:
            line = part.value
        elif part.number == 15:
            source = frames.get(part.value, "")
    return scope, f"{PurePath(file).name}:{line}" if file and line else source


def _stack_frames(buffer: Buffer, index: Field) -> dict[int, str]:
    """Read the program's table of Python frames: `file.py:12` for each, numbered from 1."""
    files: list[str] = []
    places: list[dict[int, int]] = []
    frames: list[dict[int, int]] = []
    for part in fields(buffer, index.start, index.end):
        if part.number == 1:
            files.append(buffer.text(part.start, part.end))
        elif part.number in (3, 4):
            values = {inner.number: inner.value for inner in fields(buffer, part.start, part.end)}
            (places if part.number == 3 else frames).append(values)
    result: dict[int, str] = {}
    for number, frame in enumerate(frames, start=1):
        place = frame.get(1, 0)
        if 0 < place <= len(places) and 0 < (file := places[place - 1].get(1, 0)) <= len(files):
            result[number] = f"{PurePath(files[file - 1]).name}:{places[place - 1].get(3, 0)}"
    return result
