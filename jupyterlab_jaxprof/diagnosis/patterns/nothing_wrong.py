"""Nothing wrong: the device is busy, and no pattern costs much."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis import Analysis
from ..finding import Finding, Level
from ..thresholds import BUSY_ENOUGH_SHARE, SHORTEST_JUDGED_NS
from ..units import milliseconds, percent

ID = "nothing-wrong"


def conclude(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """Say so where the devices are well used and the other patterns found no problem."""
    if not analysis.devices or any(one.level is Level.PROBLEM for one in findings):
        return []
    if analysis.busy_share < BUSY_ENOUGH_SHARE or analysis.length_ns < SHORTEST_JUDGED_NS:
        return []
    use = max(analysis.devices, key=lambda use: use.busy.total_ns)
    computing = analysis.mean(lambda use: use.compute.total_ns)
    return [
        Finding(
            id=ID,
            title=f"Nothing wrong: the device was busy {percent(analysis.busy_share)} of the time",
            level=Level.FINE,
            evidence=[
                f"{use.name} was busy {milliseconds(use.busy.total_ns)} of "
                f"{milliseconds(analysis.length_ns)}, and computed {milliseconds(computing)}.",
            ],
            meaning="The program is bound by the device: to make it faster, make the device's work less "
            "or cheaper.",
            next=[
                "Look at the largest kernels and HLO operations; lower precision (bfloat16) and fewer "
                "operations are what helps now.",
            ],
        )
    ]
