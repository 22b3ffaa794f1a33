"""Findings by their name."""

from __future__ import annotations

from jupyterlab_jaxprof.diagnosis import Finding, diagnose
from tests.support.timelines import Scene


def found(scene: Scene) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnose(scene.timeline()).findings}
