"""Stretches of time, which nest and overlap: what they cover together, and what is left of one."""

from __future__ import annotations

from collections.abc import Iterable

#: Begin and end, both of `time.perf_counter_ns`.
Span = tuple[int, int]


def covered_ns(spans: Iterable[Span]) -> int:
    """How much time the spans cover together; what two of them cover counts once."""
    total = 0
    reached: int | None = None
    for began, ended in sorted(spans):
        start = began if reached is None else max(began, reached)
        if ended > start:
            total += ended - start
            reached = ended
    return total


def without(span: Span, holes: Iterable[Span]) -> list[Span]:
    """Give the parts of a span that lie in none of the holes."""
    parts: list[Span] = []
    start, end = span
    for began, ended in sorted(holes):
        if began > start:
            parts.append((start, min(began, end)))
        start = max(start, ended)
        if start >= end:
            return parts
    return [*parts, (start, end)]


def within(spans: Iterable[Span], window: Span) -> list[Span]:
    """Cut the spans to a window, and leave out those that lie outside."""
    first, last = window
    cut = ((max(began, first), min(ended, last)) for began, ended in spans)
    return [(began, ended) for began, ended in cut if ended > began]
