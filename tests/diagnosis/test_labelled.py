"""Captures that were recorded with labels of their own, of programs that vary size, precision and cause."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.diagnosis import Level, diagnose
from jupyterlab_jaxprof.timeline import read

DATA = Path(__file__).parents[1] / "data" / "labelled"
LABELS: dict[str, dict[str, Any]] = {
    name: label
    for name, label in json.loads((DATA / "labels.json").read_text()).items()
    if (DATA / label["file"]).exists()
}


@pytest.mark.parametrize("name", LABELS)
def test_the_label_is_found_and_nothing_that_it_excludes(name: str, tmp_path: Path) -> None:
    label = LABELS[name]
    path = tmp_path / label["file"].removesuffix(".xz")
    path.write_bytes(lzma.decompress((DATA / label["file"]).read_bytes()))
    diagnosis = diagnose(read(path))
    found = {finding.id: finding for finding in diagnosis.findings}
    for one_of in label["must"]:
        assert set(one_of) & set(found), f"none of {one_of} is among {list(found)}"
    assert not set(label["must_not"]) & set(found)
    for pattern in label["minor"]:
        assert pattern not in found or found[pattern].level is not Level.PROBLEM
    told = json.dumps(diagnosis.to_json()["findings"])
    for text in label["names"]:
        assert text in told
    if label["slow_step"] is not None:
        assert diagnosis.summary["steps"]["slowest"][0]["number"] == label["slow_step"]


def test_there_are_labelled_captures() -> None:
    assert len(LABELS) >= 30
