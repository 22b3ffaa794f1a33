"""A sweep's result as the summary of a record: plain values in a bounded size."""

from __future__ import annotations

from typing import Any

from jupyterlab_jaxprof.timing.points import Ending, Point
from jupyterlab_jaxprof.timing.series import Series
from jupyterlab_jaxprof.timing.swept import SweepResult

MAX_TEXT = 300


def summary_of(result: SweepResult) -> dict[str, Any]:
    """Give the summary of a capture of kind `sweep`; captures/shapes.py has its keys."""
    best = result.best()
    headline = None
    if best is not None and best.rate is not None:
        headline = {"label": "best rate", "value": float(f"{best.rate:.3g}"), "unit": result.unit}
    elif best is not None and best.cached is not None:
        headline = {"label": "shortest call", "value": best.cached.median, "unit": "ms"}
    series = result.series
    knees = [one.knee() for one in series]
    return {
        "headline": headline,
        "wall_ms": None,
        "steps": None,
        "sentence": result.sentence(),
        "sweep": {
            "names": result.names,
            "rate_unit": result.unit,
            "planned": result.planned,
            "devices": result.devices,
            "series": [
                {
                    "label": one.label,
                    "along": one.title,
                    "verdict": one.verdict(result.unit),
                    "points": [_point(point, one, point is knee) for point in one.points],
                }
                for one, knee in zip(series, knees, strict=True)
            ],
        },
    }


def _point(point: Point, series: Series, is_knee: bool) -> dict[str, Any]:
    cached = point.cached
    interrupted = point.ending is Ending.INTERRUPTED
    raised = [peak for peak in point.peaks if peak.raised]
    most = max(raised or point.peaks, key=lambda peak: peak.peak_bytes, default=None)
    return {
        "value": series.value(point),
        "label": point.label(series.along),
        "ending": str(point.ending),
        "error": None if interrupted else " ".join(point.result.failure.split())[:MAX_TEXT] or None,
        "hint": point.hint[:MAX_TEXT],
        "median_ms": cached and cached.median,
        "lower_quartile_ms": cached and cached.lower_quartile,
        "upper_quartile_ms": cached and cached.upper_quartile,
        "samples": cached and cached.count,
        "first_ms": point.result.first_ms,
        "compiling_ms": point.compiling_ms,
        "cache_read_ms": point.cache_read_ms,
        "compiled_before": point.compiled_before,
        "rate": point.rate,
        "knee": is_knee,
        "peak_bytes": most and most.peak_bytes,
        "peak_raised": bool(raised),
        "peaks": [peak.to_dict() for peak in point.peaks] if _differ(point) else [],
        "need_bytes": point.need_bytes,
        "stopped": point.stopped[:MAX_TEXT],
        "doubts": point.doubts,
    }


def _differ(point: Point) -> bool:
    """Tell whether the devices' peaks are more than a hundredth apart."""
    sizes = [peak.peak_bytes for peak in point.peaks]
    return len(sizes) > 1 and max(sizes) - min(sizes) > max(sizes) / 100
