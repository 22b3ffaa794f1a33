"""What a timeline says about a program: named patterns with their evidence, steps, tables and a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jupyterlab_jaxprof.timeline.model import Timeline

from .analysis import Analysis, analyse
from .drawing import drawing
from .finding import Finding, Level, Range
from .patterns import PATTERNS
from .patterns.nothing_wrong import conclude
from .steps import step_summary
from .tables import top_tables

__all__ = ["Diagnosis", "Finding", "Level", "Range", "diagnose"]


@dataclass(frozen=True)
class Diagnosis:
    """The findings, what matters most first, and the summary's parts that come from the timeline."""

    findings: tuple[Finding, ...]
    summary: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give findings and summary as a capture's record holds them."""
        return {"findings": [one.to_json() for one in self.findings], "summary": self.summary}


def diagnose(timeline: Timeline) -> Diagnosis:
    """Judge a timeline: find each pattern, and rank what was found by the time it costs."""
    analysis = analyse(timeline)
    findings = [finding for find in PATTERNS for finding in find(analysis)]
    findings += conclude(analysis, findings)
    findings.sort(key=lambda one: one.order)
    tables, left_out = top_tables(analysis)
    return Diagnosis(
        findings=tuple(findings),
        summary={
            "timeline": _overview(analysis),
            "steps": step_summary(analysis),
            "tables": tables,
            "tables_left_out": left_out,
        },
    )


def _overview(analysis: Analysis) -> dict[str, Any]:
    timeline, window = analysis.timeline, analysis.window
    return {
        "source": timeline.source.value,
        "window_ms": round(analysis.length_ns / 1e6, 6),
        "window": window.reason,
        "busy_share": round(analysis.busy_share, 6) if analysis.devices else None,
        "devices": [
            {
                "device": use.name,
                "busy_ms": round(use.busy.total_ns / 1e6, 6),
                "busy_share": round(analysis.share(use.busy.total_ns), 6),
                "compute_ms": round(use.compute.total_ns / 1e6, 6),
                "copy_ms": round(use.copy.total_ns / 1e6, 6),
                "collective_ms": round(use.collective.total_ns / 1e6, 6),
                "idle_ms": round(use.idle.total_ns / 1e6, 6),
                "ops": len(use.rows),
            }
            for use in analysis.devices
        ],
        "steps_in_window": analysis.step_count + sum(one.count for one in analysis.other_steps),
        "partial": not all(file.complete for file in timeline.files),
        "blind": sorted(timeline.blind),
        "drawing": drawing(analysis),
    }
