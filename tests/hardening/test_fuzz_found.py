"""What the fuzzers found that belongs to no other file: each once broke something."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import progress
from jupyterlab_jaxprof.cards.printable import printable
from jupyterlab_jaxprof.environment import machine
from jupyterlab_jaxprof.environment.versions import numbers
from jupyterlab_jaxprof.nsight import memory, trial
from jupyterlab_jaxprof.reports import ReportError
from jupyterlab_jaxprof.reports.archives import unpack
from jupyterlab_jaxprof.timeline import nsight
from jupyterlab_jaxprof.timeline.nsight_annotations import numbered
from tests.support.captures import unpacked_to
from tests.support.fuzzing import bounded


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


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_within_an_archive_is_told_however_it_is_packed(tmp_path: Path, method: int) -> None:
    path, directory = tmp_path / "given.zip", tmp_path / "into"
    directory.mkdir()
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a", bytes(range(256)) * 8)
    whole = path.read_bytes()
    for place in range(40, 80):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(ReportError, match=r"is no whole zip archive|can't be unpacked"):
            unpack(path, directory)
        (directory / "a").unlink(missing_ok=True)


@pytest.mark.parametrize("fill", [" ", "_", "1", "1 ", "\n"])
def test_the_number_of_a_long_name_is_found_at_once(fill: str) -> None:
    with bounded():
        assert numbered(fill * 300_000 + "x") is None
        assert numbered("x" + fill * 300_000 + "7")
    assert numbered("train_step_3") == ("train_step", 3)
    assert numbered("step=[12] ") == ("step", 12)
    assert numbered(" 7") is None
    assert numbered("x" + "1" * 20) == ("x11111", int("1" * 15))


def test_a_file_without_a_name_in_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    entry = zipfile.ZipInfo("x")
    entry.filename = "\0x"  # which ends at its null for whoever reads it
    with zipfile.ZipFile(tmp_path / "given.zip", "w") as archive:
        archive.writestr(entry, b"x")
    with pytest.raises(ReportError, match="would not stay in its directory"):
        unpack(tmp_path / "given.zip", tmp_path / "into")


@pytest.mark.parametrize("damage", ["name = null", "rootpage = 'x'", "name = 'a\"b'"])
def test_a_table_that_cannot_be_one_is_passed_over(tmp_path: Path, damage: str) -> None:
    path = unpacked_to(tmp_path, "nsys_eager.sqlite")
    with closing(sqlite3.connect(path)) as export:
        export.executescript(
            "create table Damaged (id integer); pragma writable_schema = on;"
            f"update sqlite_master set {damage} where name = 'Damaged'"
        )
    assert nsight.read_export(path).ranges.kind.size
