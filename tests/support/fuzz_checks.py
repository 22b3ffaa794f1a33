"""What must hold of any file that a reader is given: a timeline or a sentence, and figures that can be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures.record import Record, parse, serialize
from jupyterlab_jaxprof.captures.shapes import FINDING, SUMMARY, misfit
from jupyterlab_jaxprof.reports import ReportError
from jupyterlab_jaxprof.reports.examine import examine
from jupyterlab_jaxprof.reports.report import record_of
from jupyterlab_jaxprof.timeline.model import Timeline
from tests.support.fuzzing import assert_figures

#: What would move a terminal's cursor, turn its text's order, or end it.
_UNPRINTABLE = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
IDENTIFIER = "20260131-101112-131-abcdef"


def assert_sentence(text: str) -> None:
    """A complaint for a user: a line or two of text, and no trace of Python's."""
    assert text.strip()
    assert "Traceback" not in text
    assert "object at 0x" not in text


def examined(path: Path) -> bool:
    """Examine a file as the report and the import do, and draw its card; False where it is refused."""
    complaint = ""
    try:
        found = examine([path])
    except ReportError as error:
        complaint = str(error)
    if complaint:
        assert_sentence(complaint)
        assert str(path) in complaint
        return False
    assert_timeline(found.timeline)
    record = record_of(found, path, path.parent)
    assert misfit(dict(record.summary), SUMMARY) is None
    assert misfit([dict(finding) for finding in record.findings], [FINDING]) is None
    json.dumps([found.summary, found.findings], allow_nan=False)
    assert_figures({"summary": found.summary, "findings": found.findings})
    assert_parts(found.summary)
    assert_card(record, path.parent)
    return True


def assert_timeline(timeline: Timeline) -> None:
    """Columns of one length each, numbers of texts and devices that are there, times that are sane."""
    for table in (timeline.ops, timeline.ranges, timeline.calls, timeline.steps, timeline.compiles):
        assert np.isfinite(table.start_ns).all()
        assert np.isfinite(table.duration_ns).all()
        assert (table.duration_ns >= 0).all()
        assert (np.diff(table.start_ns) >= 0).all()
    texts, devices = len(timeline.texts), len(timeline.devices)
    for numbers in (timeline.ops.name, timeline.ops.module, timeline.ranges.name, timeline.steps.name):
        assert ((numbers >= 0) & (numbers < texts)).all()
    assert ((timeline.ops.device >= 0) & (timeline.ops.device < devices)).all()
    assert (timeline.ops.size_bytes >= 0).all()
    assert timeline.dropped_events >= 0
    begin_ns, end_ns = timeline.recorded_ns
    assert np.isfinite([begin_ns, end_ns]).all()


def assert_parts(summary: object) -> None:
    """Parts of a window are within it."""
    assert isinstance(summary, dict)
    timeline = summary["timeline"]
    window_ms = timeline["window_ms"]
    for device in timeline["devices"]:
        parts_ms = [device[f"{part}_ms"] for part in ("busy", "idle", "compute", "copy", "collective")]
        # rounded to a nanosecond, and of a float's relative precision
        assert max(parts_ms) <= window_ms * (1 + 1e-9) + 1e-5
        assert abs(device["busy_ms"] + device["idle_ms"] - window_ms) <= window_ms * 1e-9 + 1e-5
    steps = summary.get("steps") or {}
    if steps.get("median_ms") is not None:
        assert steps["min_ms"] <= steps["median_ms"] <= steps["max_ms"]


def assert_card(record: Record, directory: Path) -> None:
    """The card can be drawn in every form, kept in a notebook, and read back."""
    forms = cards.bundle(record, directory=directory, in_store=True)
    json.dumps(forms, allow_nan=False).encode("utf-8")
    for form in ("text/plain", "text/html"):
        forms[form].encode("utf-8")
    unprintable = _UNPRINTABLE.search(forms["text/plain"])
    assert unprintable is None, forms["text/plain"][max(unprintable.start() - 60, 0) :][:120]
    assert "<img" not in forms["text/html"]
    assert "<script" not in forms["text/html"]
    if record.id:
        assert parse(serialize(record)) == Record.from_json(record.to_json())
