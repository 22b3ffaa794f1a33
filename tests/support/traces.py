"""What a trace holds, for tests that took one."""

from __future__ import annotations

from pathlib import Path

from jupyterlab_jaxprof import timeline


def events(path: Path) -> int:
    """How many events there are of the devices and of the host."""
    found = timeline.read(path)
    return len(found.ops) + len(found.ranges) + len(found.calls) + len(found.steps)


def steps(path: Path) -> dict[str, list[tuple[int, float]]]:
    """For each step's name, `(number, duration_ns)` in the order of time."""
    found = timeline.read(path)
    named: dict[str, list[tuple[int, float]]] = {}
    for name, number, duration_ns in zip(
        found.steps.name, found.steps.number, found.steps.duration_ns, strict=True
    ):
        named.setdefault(found.text(int(name)), []).append((int(number), float(duration_ns)))
    return named
