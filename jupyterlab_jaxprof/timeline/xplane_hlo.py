"""The programs that a trace carries: where in JAX and in the user's files each HLO operation comes from.

https://github.com/openxla/xla/blob/main/xla/service/hlo.proto
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from .wire import LENGTH, Buffer, DamagedError, Field, fields, scan, varint
from .xplane_format import Plane, read_stat

PLANE = "/host:metadata"
_NAME, _OPCODE, _SHAPE, _METADATA, _ID, _OPERANDS = _WANTED = 1, 2, 3, 7, 35, 36
_COLLECTIVES = {
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all"),
    *("collective-permute", "collective-broadcast", "send"),
}
#: Bits of an element by the number of its type: xla_data.proto.
_ELEMENT_BITS = {
    **{1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16},
    **{18: 128, 19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2, 28: 8, 29: 8, 32: 4, 33: 8},
}


@dataclass(frozen=True)
class Origin:
    """Where an HLO operation comes from; empty where the program does not tell."""

    op: str
    scope: str
    source: str
    operand_bytes: int = 0
    """What a collective operation is given on each device; 0 for all other operations."""


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
    details: dict[int, dict[int, tuple[int, int]]] = {}
    for found in scan(buffer, starts, ends):
        wanted = np.flatnonzero(np.isin(found.number, _WANTED))
        for row, number, value, start in zip(
            *(column[wanted].tolist() for column in (found.rows, found.number, found.value, found.start)),
            strict=True,
        ):
            details.setdefault(row, {})[number] = (value, start)
    by_name: dict[str, Origin] = {}
    by_kernel: dict[str, Origin] = {}
    shapes = {parts[_ID][0]: parts[_SHAPE] for parts in details.values() if {_ID, _SHAPE} <= parts.keys()}
    for parts in details.values():
        name = _text(buffer, parts.get(_NAME))
        scope, source = _scope_and_source(buffer, parts.get(_METADATA), frames)
        operands = _numbers(buffer, parts.get(_OPERANDS)) if _is_collective(buffer, parts) else []
        size = sum(_shape_bytes(buffer, shapes.get(operand)) for operand in operands)
        by_name[name] = origin = Origin(name, scope, source, size)
        by_kernel.setdefault(name.replace(".", "_").replace("-", "_"), origin)
    return by_kernel | by_name


def _text(buffer: Buffer, place: tuple[int, int] | None) -> str:
    return buffer.text(place[1], place[1] + place[0]) if place else ""


def _numbers(buffer: Buffer, place: tuple[int, int] | None) -> list[int]:
    """Read packed numbers."""
    numbers: list[int] = []
    at, end = (place[1], place[1] + place[0]) if place else (0, 0)
    while at < end:
        number, at = varint(buffer, at, end)
        numbers.append(number)
    return numbers


def _is_collective(buffer: Buffer, parts: dict[int, tuple[int, int]]) -> bool:
    return _text(buffer, parts.get(_OPCODE)).removesuffix("-start") in _COLLECTIVES


def _shape_bytes(buffer: Buffer, place: tuple[int, int] | None) -> int:
    """Give an array's size from its shape; 0 for tuples and what is not known."""
    bits, dimensions = 0, list[int]()
    if place:
        for part in fields(buffer, place[1], place[1] + place[0]):
            if part.number == 2:
                bits = _ELEMENT_BITS.get(part.value, 0)
            elif part.number == 3:
                packed = part.wire_type == LENGTH
                dimensions += _numbers(buffer, (part.value, part.start)) if packed else [part.value]
    return math.prod(dimensions) * bits // 8


def _of(buffer: Buffer, message: Field, number: int) -> Iterator[Field]:
    return (part for part in fields(buffer, message.start, message.end) if part.number == number)


def _scope_and_source(
    buffer: Buffer, place: tuple[int, int] | None, frames: dict[int, str]
) -> tuple[str, str]:
    scope = file = source = ""
    line = 0
    for part in fields(buffer, place[1], place[1] + place[0]) if place else ():
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
