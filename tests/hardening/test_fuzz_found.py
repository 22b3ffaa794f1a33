"""What the fuzzers found that belongs to no other file: each once broke something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import progress
from jupyterlab_jaxprof.cards.printable import printable
from jupyterlab_jaxprof.environment import machine
from jupyterlab_jaxprof.environment.versions import numbers
from jupyterlab_jaxprof.nsight import memory, trial


@pytest.mark.parametrize(
    "verdict",
    [None, {"records": 1}, {"records": True, "reports": True, "reason": [], "tried": 1.0}, {
        "records": True, "reports": True, "reason": "", "tried": "yesterday"
    }],
)  # fmt: skip
def test_a_trial_of_nsys_that_cannot_be_one_is_tried_again(tmp_path: Path, verdict: object) -> None:
    whole = trial.Verdict(True, True, "", 1.0)
    path = tmp_path / trial.FILE
    path.write_text(json.dumps({"odd": verdict, "whole": whole.__dict__}))
    assert trial._known(path) == {"whole": whole}


@pytest.mark.parametrize("change", [{"since": 10**400}, {"fraction": "half"}, {"pid": None}, {}])
def test_a_progress_that_cannot_be_one_is_nobodys(tmp_path: Path, change: dict[str, object]) -> None:
    texts = dict.fromkeys(("kind", "name", "magic", "notebook", "cell_id", "kernel_id", "host", "phase"), "x")
    told = {**texts, "interruptible": True, "pid": 1, "since": 1.0, **change}  # no fraction
    (tmp_path / progress.PROGRESS_FILE).write_text(json.dumps(told))
    assert progress._read(tmp_path) is None


def test_no_name_turns_the_order_of_a_line() -> None:
    assert printable("a\u202eb\u2066c") == "a\ufffdb\ufffdc"


def test_numbers_of_other_programs_are_those_that_python_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers("2025." + "9" * 5000)[0] == 2025
    said = "0, GPU-1, ², 80\n1, GPU-2, " + "9" * 5000 + ", 80\n2, GPU-3, 100, 80"
    monkeypatch.setattr(memory, "output_of", lambda *_: (said, None))
    assert [gpu.index for gpu in memory._gpus()] == [2]
    monkeypatch.setattr(machine, "output_of", lambda *_: ("0, H200, ², 575, Enabled", None))
    monkeypatch.setattr(machine.shutil, "which", lambda _: "nvidia-smi")
    assert machine.gpus()[0][0]["memory_bytes"] is None
