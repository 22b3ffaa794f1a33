"""Each finding's page: what every page has, the figures of the recordings, and the code's own thresholds."""

from __future__ import annotations

import lzma
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof.diagnosis import diagnose, patterns, thresholds
from jupyterlab_jaxprof.diagnosis.units import milliseconds, percent
from jupyterlab_jaxprof.timeline import read
from tests.support.pages import ROOT, code_of, section_of, tables_of

HEADER = ["", "recording", "a step", "device busy", "the report says"]
DATA = ROOT / "tests" / "data"
#: Of what a report can't be taken on purpose, or hasn't been, there is no recording.
UNRECORDED = {"dropped-events", "launch-bound", "straggler"}


def page_of(pattern: str) -> str:
    return f"docs/patterns/{pattern}.md"


@cache
def diagnosed(directory: Path, names: tuple[str, ...]) -> dict[str, Any]:
    paths: list[Path] = []
    for name in names:
        (packed,) = [path for path in DATA.rglob(f"{name}.*.xz") if ".stats." not in path.name]
        paths.append(directory / packed.name.removesuffix(".xz"))
        paths[-1].write_bytes(lzma.decompress(packed.read_bytes()))
    found = diagnose(read(paths if len(paths) > 1 else paths[0])).to_json()
    for path in paths:
        path.unlink()
    return found


def expected(directory: Path, pattern: str, names: tuple[str, ...]) -> list[str]:
    """Give what a row of the example must say of these recordings, besides its first two cells."""
    found = diagnosed(directory, names)
    steps = found["summary"]["steps"]
    busy = [percent(one["busy_share"]) for one in found["summary"]["timeline"]["devices"]]
    titles = [one["title"] for one in found["findings"] if one["id"] == pattern]
    return [
        _step(steps) if steps else "not marked",
        ", ".join(busy) or "no device",
        titles[0] if titles else "nothing of this",
    ]


def _step(steps: dict[str, Any]) -> str:
    """Give the median step; where its markers time the dispatch, the devices' time by the number of steps."""
    if steps.get("marks_dispatch"):
        return f"{milliseconds(steps['device_ms'] * 1e6)} of the device"
    return milliseconds(steps["median_ms"] * 1e6)


@pytest.mark.parametrize("pattern", patterns.IDS)
def test_a_page_has_all_that_each_must_have(pattern: str) -> None:
    text = (ROOT / page_of(pattern)).read_text("utf-8")
    assert re.match(rf"# .+\n\n`{pattern}`\n\n\*\*What it looks like\.\*\* .+\n", text)
    assert "**What it costs.** " in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["What to do", "Example", "How it is decided"]
    assert [code for code in code_of(page_of(pattern)) if code.language], "code shows what to change"


@pytest.mark.parametrize("pattern", patterns.IDS)
def test_the_examples_figures_are_those_of_the_recordings(pattern: str, tmp_path: Path) -> None:
    tables = [table for table in tables_of(page_of(pattern)) if table.header == HEADER]
    if pattern in UNRECORDED:
        assert "no recording" in " ".join(section_of(page_of(pattern), "Example").split())
    else:
        assert tables, "an example before and after, with figures"
    for table in tables:
        kinds = [row[0] for row in table.rows]
        assert kinds[-1] == "after"
        assert kinds[0] == "before" or pattern in UNRECORDED
        for row in table.rows:
            names = tuple(re.findall("`([^`]+)`", row[1]))
            assert row[2:] == expected(tmp_path, pattern, names)
            assert (row[4] == "nothing of this") <= (row[0] == "after")


#: The thresholds that a page speaks of, in its words.
SPOKEN_OF: dict[str, dict[str, str]] = {
    "batch-too-small": {"PROBLEM_SHARE": "10 %"},
    "device-copies": {"PROBLEM_SHARE": "10 %"},
    "device-idle": {
        "KERNEL_GAP_NS": "10 us",
        "LONGEST_WAKE_NS": "2 ms",
        "IDLE_NOTE_SHARE": "20 %",
        "IDLE_PROBLEM_SHARE": "50 %",
    },
    "device-to-host-copies": {},
    "device-to-host-read": {
        "SCALAR_BYTES": "256 bytes",
        "EVERY_STEP_SHARE": "80 %",
        "NOTE_SHARE": "2 %",
        "PROBLEM_SHARE": "10 %",
    },
    "dropped-events": {},
    "eager-dispatch": {
        "EAGER_OPS": "4",
        "EAGER_DEVICE_NS": "20 us",
        "EAGER_PER_STEP": "10",
        "EAGER_IN_WINDOW": "30",
        "EAGER_KINDS": "3",
        "LONGEST_EAGER_GAP_NS": "1 ms",
    },
    "exposed-collectives": {
        "NOTE_SHARE": "2 %",
        "PROBLEM_SHARE": "10 %",
        "TINY_COLLECTIVE_BYTES": "64 KiB",
    },
    "first-call-compile": {"NOTE_SHARE": "2 %", "PROBLEM_SHARE": "10 %"},
    "hidden-in-graphs": {},
    "host-callback": {"NOTE_SHARE": "2 %", "PROBLEM_SHARE": "10 %"},
    "host-starves-device": {
        "LONGEST_WAKE_NS": "2 ms",
        "SMALL_PART": "10 %",
        "NOTE_SHARE": "2 %",
        "PROBLEM_SHARE": "10 %",
    },
    "host-to-device-copies": {
        "DATA_BYTES_PER_STEP": "16 KiB",
        "EVERY_STEP_SHARE": "80 %",
        "NOTE_SHARE": "2 %",
        "LEAST_NOTE_SHARE": "1 %",
        "PROBLEM_SHARE": "10 %",
        "LEAST_STAGED_BYTES": "1 MiB",
        "SLOWEST_STAGING_BYTES_PER_S": "3 GB/s",
    },
    "launch-bound": {"MANY_OPS": "100", "TINY_KERNEL_NS": "10 us", "PROBLEM_SHARE": "10 %"},
    "memory-pressure": {"MEMORY_SHARE": "85 %"},
    "no-device-activity": {},
    "no-step-markers": {},
    "nothing-wrong": {"BUSY_ENOUGH_SHARE": "80 %", "SHORTEST_JUDGED_NS": "1 ms"},
    "profiler-overhead": {"PYTHON_CALL_COST_NS": "0.7 us", "PROBLEM_SHARE": "10 %"},
    "recompilation": {
        "LEAST_NOTE_SHARE": "1 %",
        "PROBLEM_SHARE": "10 %",
        "FEWEST_STEPS": "three",
        "RECOMPILING_SPREAD_SHARE": "half",
    },
    "steps-end-early": {"EVERY_STEP_SHARE": "80 %", "EARLY_SHARE": "30 %"},
    "straggler": {"UNEVEN_SHARE": "10 %", "LAST_SHARE": "75 %", "PROBLEM_SHARE": "10 %"},
    "sync-every-step": {
        "EVERY_STEP_SHARE": "80 %",
        "LONGEST_WAKE_NS": "2 ms",
        "WAIT_BEFORE_TO_AFTER": "twice",
        "PROBLEM_SHARE": "10 %",
    },
    "tiny-kernels": {
        "KERNEL_GAP_NS": "10 us",
        "MANY_OPS": "100",
        "TINY_KERNEL_NS": "10 us",
        "PROBLEM_SHARE": "10 %",
        "LOOP_REPEATS": "10",
    },
}
_WORDS = {"half": 0.5, "twice": 2.0, "three": 3.0}
_UNITS = {
    "%": 0.01,
    "us": 1e3,
    "ms": 1e6,
    "bytes": 1.0,
    "KiB": 1024.0,
    "MiB": 1024.0**2,
    "GB/s": 1e9,
    "": 1.0,
}


def _value(words: str) -> float:
    if words in _WORDS:
        return _WORDS[words]
    number, _, unit = words.partition(" ")
    return float(number) * _UNITS[unit]


@pytest.mark.parametrize("pattern", patterns.IDS)
def test_the_thresholds_that_a_page_names_are_the_codes(pattern: str) -> None:
    text = " ".join(section_of(page_of(pattern), "How it is decided").split())
    spoken_of = SPOKEN_OF[pattern]
    for name, words in spoken_of.items():
        assert _value(words) == pytest.approx(getattr(thresholds, name)), name
        assert re.search(rf"\b{re.escape(words)}", text), f"{name} is not told as {words!r}"
    others = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    for words in sorted(spoken_of.values(), key=len, reverse=True):
        others = re.sub(rf"\b{re.escape(words)}(?!\d)", "", others)
    assert not re.search(r"\d", others), f"a number that no threshold stands for: {others}"
