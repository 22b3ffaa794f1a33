"""Writing XSpace messages by hand, for what no recorder at hand writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    content = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


class Plane:
    """A plane under construction; names get their numbers as they come."""

    def __init__(self, name: str, stats: Mapping[str, int | str] | None = None) -> None:
        self._name, self._stats = name, dict(stats or {})
        self._lines = b""
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def line(self, name: str, timestamp_ns: int, events: Sequence[bytes], tail: bytes = b"") -> Plane:
        content = number(1, 7) + block(2, name) + number(3, timestamp_ns)
        self._lines += block(3, content + b"".join(block(4, event) for event in events) + tail)
        return self

    def event(
        self, name: str, offset_ps: int, duration_ps: int, stats: Mapping[str, int | str] | None = None
    ) -> bytes:
        content = number(1, self._number(0, name)) + number(2, offset_ps) + number(3, duration_ps)
        return content + b"".join(block(4, self._stat(*item)) for item in (stats or {}).items())

    def bytes(self) -> bytes:
        stats = b"".join(block(6, self._stat(*item)) for item in self._stats.items())
        names = [
            block(field, number(1, at) + block(2, number(1, at) + block(2, text)))
            for field, numbers in zip((4, 5), self._numbers, strict=True)
            for text, at in numbers.items()
        ]
        return block(2, self._name) + self._lines + b"".join(names) + stats

    def _stat(self, name: str, value: int | str) -> bytes:
        content = number(4, value) if isinstance(value, int) else block(5, value)
        return number(1, self._number(1, name)) + content

    def _number(self, kind: int, text: str) -> int:
        return self._numbers[kind].setdefault(text, len(self._numbers[kind]) + 1)


def space(*planes: Plane, host: str = "host", warnings: Sequence[str] = ()) -> bytes:
    content = b"".join(block(1, plane.bytes()) for plane in planes)
    return content + b"".join(block(3, warning) for warning in warnings) + block(4, host)
