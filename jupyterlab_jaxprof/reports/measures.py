"""What a capture of any kind measured, as named quantities that another capture may have too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jupyterlab_jaxprof.captures import Record
from jupyterlab_jaxprof.captures.samples import Summary, ratio, summary_from

Data = Mapping[str, Any]

#: Below this number of samples, quartiles tell no difference.
_FEWEST = 4
_ONCE = "each ran once, which tells no change from chance"
_OTHER_KIND = "of different kinds, each of which takes time of its own"
_BY_P20 = "timings are judged by their 20th percentiles"
_AS_IT_STANDS = "it depends on what else the kernel holds"
_MOST_POINTS = 40


@dataclass(frozen=True)
class Measure:
    """One quantity. Two of the same `key` are compared, by samples or quartiles that both have.

    `why_not` is half a sentence on why two such values tell no difference, where they have neither.
    """

    key: str
    group: str
    label: str
    unit: str
    value: float
    samples: Summary | None = None
    quartiles: tuple[float, float, int] | None = None
    why_not: str = _ONCE


def measures(record: Record) -> dict[str, Measure]:
    """Give all that a record measured besides its steps and its timeline, by their keys."""
    found = (*_run(record.summary), *_compiling(record.summary), *_memory(record.summary))
    return {one.key: one for one in (*found, *_points(record.summary))}


def judge(before: Measure, after: Measure, *, same_kind: bool) -> dict[str, Any]:
    """Compare two values of one key: `{ratio, low, high, verdict, reason}`, as steps are compared."""
    told: dict[str, Any] = {"ratio": None, "low": None, "high": None, "verdict": "unknown", "reason": ""}
    if not before.value or not after.value:
        return told | {"reason": "" if before.value == after.value else "one of them is nothing"}
    told["ratio"] = after.value / before.value
    if before.unit == "ms" and not same_kind:
        return told | {"reason": _OTHER_KIND}
    if before.samples is not None and after.samples is not None:
        return told | _by_samples(after.samples, before.samples)
    if before.quartiles is not None and after.quartiles is not None:
        return told | _by_quartiles(before.quartiles, after.quartiles)
    return told | {"reason": before.why_not}


def _by_samples(after: Summary, before: Summary) -> dict[str, Any]:
    found = ratio(after, before)
    if found is None:
        return {"reason": "one of them took no time that could be measured"}
    told = {"ratio": found.value, "low": found.low, "high": found.high}
    if found.low is None:
        return told | {"reason": "too few runs to tell a difference from their spread"}
    return told | {"verdict": "alike" if not found.differs else "slower" if found.value > 1 else "faster"}


def _by_quartiles(before: tuple[float, float, int], after: tuple[float, float, int]) -> dict[str, Any]:
    if min(before[2], after[2]) < _FEWEST:
        return {"reason": "too few runs to tell a difference from their spread"}
    if after[1] < before[0]:
        return {"verdict": "faster"}
    return {"verdict": "slower" if after[0] > before[1] else "alike"}


def _run(summary: Data) -> Iterator[Measure]:
    cached = _mapping(summary.get("cached"))
    samples = summary_from(cached) if cached else None
    if samples is not None:
        yield Measure("cached", "run", "cached run, 20th percentile", "ms", samples.p20, samples=samples)
        yield Measure("cached median", "run", "cached run, median", "ms", samples.median, why_not=_BY_P20)
    wall_ms = summary.get("wall_ms")
    if wall_ms is not None:
        yield Measure("wall", "run", "the cell, run once", "ms", wall_ms)


def _compiling(summary: Data) -> Iterator[Measure]:
    first = _mapping(summary.get("first"))
    for key, label in (
        ("trace_ms", "tracing in the first run"),
        ("lower_ms", "lowering in the first run"),
        ("compile_ms", "compiling in the first run"),
        ("cache_read_ms", "reading compiled programs from the cache"),
    ):
        if first.get(key):
            yield Measure(key, "run", label, "ms", first[key])


def _memory(summary: Data) -> Iterator[Measure]:
    memory = _mapping(summary.get("memory"))
    before = {device.get("device"): device for device in _mappings(memory.get("before"))}
    after = _mappings(memory.get("after"))
    in_use = [device["in_use_bytes"] for device in after if device.get("in_use_bytes") is not None]
    if in_use:
        label = "in use on the fullest device" if len(in_use) > 1 else "in use on the device"
        yield Measure("in use", "memory", label, "bytes", max(in_use), why_not=_AS_IT_STANDS)
    raised = [
        device["peak_bytes"]
        for device in after
        if (device.get("peak_bytes") or 0) > (before.get(device.get("device"), {}).get("peak_bytes") or 0)
    ]
    if raised and before:  # an older peak is that of another cell
        yield Measure(
            "peak", "memory", "highest peak of a device", "bytes", max(raised), why_not=_AS_IT_STANDS
        )
    if memory.get("arrays_bytes") is not None:
        yield Measure(
            "arrays", "memory", "arrays of the kernel", "bytes", memory["arrays_bytes"], why_not=_AS_IT_STANDS
        )


def _points(summary: Data) -> Iterator[Measure]:
    """Give the points of a sweep: those of two sweeps are compared where their values are the same."""
    sweep = _mapping(summary.get("sweep"))
    points = [
        (series, point)
        for series in _mappings(sweep.get("series"))
        for point in _mappings(series.get("points"))
    ]
    for series, point in points[:_MOST_POINTS]:
        median_ms = point.get("median_ms")
        if median_ms is None:
            continue
        label = ", ".join(
            text
            for text in (str(series.get("label") or ""), str(point.get("label") or point.get("value")))
            if text
        )
        lower, upper = point.get("lower_quartile_ms"), point.get("upper_quartile_ms")
        doubts = ", ".join(point.get("doubts") or ())
        steady = lower is not None and upper is not None and not doubts
        quartiles = (float(lower or 0), float(upper or 0), int(point.get("samples") or 0)) if steady else None
        key = f"{' '.join(sweep.get('names') or ())}: {label}"
        yield Measure(key, "sweep", label, "ms", median_ms, quartiles=quartiles, why_not=_doubted(doubts))


def _doubted(doubts: str) -> str:
    return f"it was not measured steadily ({doubts})" if doubts else "the other was not measured steadily"


def _mapping(value: object) -> Data:
    return cast("Data", value) if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Sequence[Data]:
    listed = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return [one for one in listed if isinstance(one, Mapping)]
