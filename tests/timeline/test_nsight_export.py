"""Reports are exported by the nsys that is installed: the real one, on reports that it records here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.environment import nsys
from jupyterlab_jaxprof.timeline.model import RangeKind, ReadError
from jupyterlab_jaxprof.timeline.nsight_export import exported, needed_version, read_report
from tests.support import nsys_stats
from tests.support.captures import DATA

# Old versions drop the ranges of nvtx 0.2.12 and later without a word, so they are pushed by hand here.
PROGRAM = """
import ctypes, os, time
library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
sizes = {1: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 7}
slots = {module: (ctypes.c_void_p * size)() for module, size in sizes.items()}
tables = {
    module: (ctypes.c_void_p * (len(slot) + 1))(
        *(ctypes.addressof(slot) + 8 * i if i else None for i in range(len(slot))), None
    )
    for module, slot in slots.items()
}
Get = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)

@Get
def get(module, table, size):
    if module not in tables:
        return 0
    table[0] = ctypes.addressof(tables[module])
    if size:
        size[0] = len(slots[module])
    return 1

class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("get", Get)]

callbacks = Callbacks(ctypes.sizeof(Callbacks), get)
Export = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
export = Export(lambda number: ctypes.addressof(callbacks) if number == 1 else None)
library.InitializeInjectionNvtx2.argtypes = [Export]
assert library.InitializeInjectionNvtx2(export)
push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(slots[1][9])
pop = ctypes.CFUNCTYPE(ctypes.c_int)(slots[1][11])
for step in range(3):
    push(f"train_step {step}".encode())
    push(b"load_data")
    time.sleep(0.01)
    pop()
    pop()
"""


def installed() -> nsys.Installation:
    found = nsys.best()
    assert found is not None, f"The tests need a real nsys. {nsys.HOW_TO_GET}"
    assert found.usable
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A stream and a report of the program, both recorded here."""
    place = tmp_path_factory.mktemp("recorded")
    program = place / "program.py"
    program.write_text(PROGRAM)
    command = [
        str(installed().path), "profile", "--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none",
        f"--output={place / 'r'}", sys.executable, str(program),
    ]  # fmt: skip
    for _ in range(3):  # nsys itself fails at times to start on a busy machine
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=place, env=os.environ | {"TMPDIR": str(place)}
        )
        found = {path.suffix: path for path in place.glob("r.*")}
        if found:
            break
    assert ".qdstrm" in found or ".nsys-rep" in found, done.stdout + done.stderr
    if ".nsys-rep" not in found:
        with exported(found[".qdstrm"]) as export:
            report = place / "r.nsys-rep"
            shutil.copyfile(export.with_name("report.nsys-rep"), report)
        found[".nsys-rep"] = report
    return found


def test_a_report_recorded_here_is_read(recorded: dict[str, Path]) -> None:
    report = recorded[".nsys-rep"]
    told: list[tuple[str, float]] = []
    beside = sorted(report.parent.iterdir())
    read = read_report(report, lambda what, part: told.append((what, part)))
    assert [read.text(name) for name in read.steps.name] == ["train_step"] * 3
    assert read.steps.number.tolist() == [0, 1, 2]
    assert (read.steps.duration_ns > 9e6).all()
    assert "devices" in read.blind
    assert {RangeKind.ANNOTATION, RangeKind.SYSTEM} == set(read.ranges.kind.tolist())
    assert read.files[0].path == str(report)
    assert read.files[0].size_bytes == report.stat().st_size
    assert told[0] == ("Exporting", 0.0)
    assert told[-1] == ("Exporting", 1.0)
    assert sorted(report.parent.iterdir()) == beside
    assert needed_version(report) in installed().version_text


def test_calls_of_the_operating_system_are_those_of_nsys_stats(
    recorded: dict[str, Path], tmp_path: Path
) -> None:
    report = shutil.copyfile(recorded[".nsys-rep"], tmp_path / "r.nsys-rep")
    told = subprocess.run(
        [str(installed().path), "stats", "-r", "osrtsum", "-f", "csv", str(report)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (rows,) = [rows for name, rows in nsys_stats.tables(told).items() if name.startswith("osrtsum")]
    read = read_report(report)
    calls = read.ranges.take(read.ranges.kind == RangeKind.SYSTEM)
    assert nsys_stats.summed([read.text(name) for name in calls.name], calls.duration_ns) == {
        row["Name"]: (int(row["Num Calls"]), int(row["Total Time (ns)"])) for row in rows
    }


def test_a_stream_without_its_report_is_imported(recorded: dict[str, Path]) -> None:
    if ".qdstrm" not in recorded:
        assert installed().imports  # this nsys has made the report by itself
        return
    read = timeline.read(recorded[".qdstrm"])
    assert read.steps.number.tolist() == [0, 1, 2]


def test_a_stale_export_beside_the_report_is_not_used(recorded: dict[str, Path], tmp_path: Path) -> None:
    report = tmp_path / "r.nsys-rep"
    shutil.copyfile(recorded[".nsys-rep"], report)
    stale = tmp_path / "r.sqlite"
    stale.write_bytes(b"SQLite format 3\0 of another report")
    assert len(read_report(report).steps) == 3
    assert stale.read_bytes().endswith(b"of another report")


def test_a_report_of_a_newer_nsys_says_which_is_needed() -> None:
    report = DATA / "nsys_gpu_bound.nsys-rep"
    assert needed_version(report) == "2025.3.1.0"
    if installed().version >= (2025, 3, 1):
        assert len(read_report(report).ops) == 160
        return
    with pytest.raises(
        ReadError, match=r"recorded by Nsight Systems 2025\.3\.1\.0.*at least 2025\.3\.1\.0 is needed"
    ):
        timeline.read(report)


@pytest.mark.parametrize("part", [0, 40, 60, 1000, 100_000])
def test_a_report_that_is_cut_short_is_refused(recorded: dict[str, Path], tmp_path: Path, part: int) -> None:
    report = tmp_path / "cut.nsys-rep"
    report.write_bytes(recorded[".nsys-rep"].read_bytes()[:part])
    with pytest.raises(ReadError, match=r"cut\.nsys-rep .*\.") as caught:
        read_report(report)
    assert "Traceback" not in str(caught.value)


def stand_in(place: Path, script: str) -> None:
    """An nsys that fails as the real one can't be made to here."""
    path = place / "nsys"
    path.write_text(
        "#!/bin/sh\ncase $1 in --version) echo 'NVIDIA Nsight Systems version 2099.1.1';; "
        f"export) [ $2 = --help ] && echo --force-overwrite || {{ {script}; }};; esac\n"
    )
    path.chmod(0o755)
    (place / "sleep").symlink_to(shutil.which("sleep") or "")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", r"could not be exported by .*nsys \(2099\.1\.1\)\. It may be damaged"),
        (
            "echo 'Exportation error: sqlite3: disk is bad'; exit 1",
            "said: 'Exportation error: sqlite3: disk is bad'",
        ),
        ("echo 'write: No space left on device'; exit 1", "MiB free in .*TMPDIR"),
        ("sleep 60", "has not ended in time and was stopped"),
    ],
)
def test_an_nsys_that_fails_is_told(
    recorded: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    stand_in(tmp_path, script)
    monkeypatch.setattr(nsys, "PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))  # the real one would be used next
    with pytest.raises(ReadError, match=words):
        read_report(recorded[".nsys-rep"], time_limit_s=0.5 if script.startswith("sleep") else 60)


def test_without_nsys_it_is_told_how_to_get_it(
    recorded: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys, "PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReadError, match=r"there is none here\. On Debian .* on Colab .*\.sqlite file\."):
        read_report(recorded[".nsys-rep"])
    (tmp_path / "nsys").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "nsys").chmod(0o755)
    with pytest.raises(ReadError, match=r"nsys does not run: exit status 127\."):
        read_report(recorded[".nsys-rep"])


def test_a_temporary_directory_that_is_not_there(
    recorded: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ReadError, match="There is no place for the export"):
        read_report(recorded[".nsys-rep"])
