"""What fails silently under nsys, and is told by %%nsys: trials, importers, refusals, full disks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.magics import jaxnsys
from jupyterlab_jaxprof.magics.jaxnsys_progress import Progress
from jupyterlab_jaxprof.nsight import interrupts, session, trial
from tests.nsight.stand_ins import REAL, assert_nothing_left, laid_out, on_path, stand_in

pytestmark = pytest.mark.long

SILENT = {
    # Its part that goes into the program is missing
    "not attached": (
        'shift; while [[ "$1" == --* ]]; do shift; done; exec "$@"',
        "nsys did not attach to the program",
    ),
    # It waits for another range
    "never began": (
        'exec $real "${@/--nvtx-capture=capture@jaxprof/--nvtx-capture=other@jaxprof}"',
        "never began to record",
    ),
    "agent": (
        "echo 'Agent launcher failed.'; exit 1",
        "could not start its agent",
    ),
    "ended": ("echo 'unrecognised option'; exit 0", "ended before it started the program. It said: 'unrecog"),
    "never stops": (
        """events=${@: -4:1}
        echo '{"event": "start", "pid": '$$'}' >&$events
        echo '{"event": "ready", "notices": [], "environment": {}}' >&$events
        echo '{"event": "capture"}' >&$events
        echo '{"event": "step", "number": 0, "duration_ms": 1}' >&$events
        echo '{"event": "stop"}' >&$events
        trap '' INT
        while true; do sleep 1; done""",
        "did not stop recording within 1 s",
    ),
    "hangs": ("exec sleep 600", "did not start the program within 1 s"),
    "full disk": (
        'out=$(printf "%s\\n" "$@" | sed -n s/--output=//p); $real "$@"; rm -f $out* $TMPDIR/*.qdstrm; '
        "echo 'No space left on device'; exit 0",
        "is full, and nsys could write no report",
    ),
}


#: What also happens to an nsys that has passed its trial.
AFTER_TRIAL = {"ended", "never stops", "full disk"}


@pytest.mark.parametrize("name", SILENT)
def test_what_fails_silently_is_told_by_the_trial_before_the_cell_runs(notebook, tmp_path, monkeypatch, name):
    script, said = SILENT[name]
    monkeypatch.setattr(trial, "START_S", 1.0 if name == "hangs" else 90.0)
    monkeypatch.setattr(trial, "STOP_S", 1.0 if name == "never stops" else 90.0)
    monkeypatch.setattr(interrupts, "GRACE_S", 0.2)
    before = Store(notebook.store).list().total
    monkeypatch.setattr("jupyterlab_jaxprof.environment.nsys.PLACES", ())
    with on_path(stand_in(tmp_path, script), alone=True):
        outcome = notebook.run(f"%%nsys --steps 1 --no-warmup\nopen({str(tmp_path / 'ran')!r}, 'w')")
    assert "a trial of nsys failed" in outcome.text, outcome.text
    assert "Nothing has run." in outcome.text
    assert said in outcome.text, outcome.text
    assert "Traceback" not in outcome.text
    assert not (tmp_path / "ran").exists()
    assert Store(notebook.store).list().total == before
    assert_nothing_left(notebook.mark)


@pytest.mark.parametrize("name", sorted(AFTER_TRIAL))
def test_what_fails_silently_after_the_trial_is_told_too(notebook, tmp_path, monkeypatch, name):
    script, said = SILENT[name]
    monkeypatch.setattr(session, "STOP_TIMEOUT_S", 1.0 if name == "never stops" else 90.0)
    monkeypatch.setattr(interrupts, "GRACE_S", 0.2)
    passed = tmp_path / "passed"
    script = f'if [ ! -e {passed} ]; then touch {passed}; exec $real "$@"; fi\n{script}'
    before = Store(notebook.store).list().total
    monkeypatch.setattr("jupyterlab_jaxprof.environment.nsys.PLACES", ())
    with on_path(stand_in(tmp_path, script), alone=True):
        outcome = notebook.run("%%nsys --steps 1 --no-warmup\nx.sum()")
    assert said in outcome.text, outcome.text
    assert "trial" not in outcome.text
    assert "Traceback" not in outcome.text
    assert Store(notebook.store).list().total == before
    assert_nothing_left(notebook.mark)


def test_an_nsys_that_records_nothing_gives_way_to_one_that_does(notebook, tmp_path):
    tries = tmp_path / "tries"
    with on_path(stand_in(tmp_path, f"echo again >> {tries}; echo 'unrecognised option'; exit 0")):
        for _ in range(2):
            notebook.run("%%nsys --steps 1 --no-warmup --save used\nx.sum()")
            capture = notebook.names["used"]
            assert capture.status is Status.OK
            assert f"Another nsys was used ({REAL})." in " ".join(capture.record.notices)
    assert tries.read_text().count("again") == 2  # both for the first cell: then it is known
    kept = json.loads((notebook.store / trial.FILE).read_text())
    assert {verdict["reports"] for verdict in kept.values()} == {True, False}
    with on_path(tmp_path / "bin"):
        text = notebook.run("%nsys try").text
    assert re.search(r"bin/nsys \(2099\.1\.1\): \S+ \(2099\.1\.1\) ended before it started", text), text
    assert re.search(rf"{REAL} \(\S+\): records\.", text), text


def test_sampling_that_hangs_is_told(notebook, monkeypatch):
    """The real one: its stop hangs where the system forbids sampling, or it works."""
    monkeypatch.setattr(trial, "STOP_S", 5.0)
    monkeypatch.setattr(session, "STOP_TIMEOUT_S", 20.0)
    monkeypatch.setattr(interrupts, "GRACE_S", 0.5)
    outcome = notebook.run("%%nsys --steps 1 --no-warmup --sample --save sampled\nx.sum()")
    if "sampled" in notebook.names:
        assert notebook.names["sampled"].status is Status.OK
    elif "did not stop recording within 20 s and was ended. With --sample" not in outcome.text:
        assert "did not stop recording within 5 s and was ended. With --sample" in outcome.text
        assert "Without what was asked for besides (--sample and the like) it records." in outcome.text
    assert_nothing_left(notebook.mark)


def test_without_an_importer_the_stream_is_kept_and_said_so(notebook, tmp_path, monkeypatch):
    """nsys as Nsight Compute or Debian lays it out, without its host part; it also writes elsewhere."""
    elsewhere = 'exec $real "${@/--output=*/--output=$TMPDIR/elsewhere}"'
    monkeypatch.setattr("jupyterlab_jaxprof.environment.nsys.PLACES", ())
    with on_path(stand_in(tmp_path, elsewhere, layout="target-linux-x64"), alone=True):
        notebook.run("%%nsys --steps 1 --no-warmup --save kept\nx.sum()")
    capture = notebook.names["kept"]
    assert capture.status is Status.FAILED
    assert "QdstrmImporter" in capture.record.reason
    assert [file.path.rpartition(".")[2] for file in capture.files] == ["qdstrm"]


MANY_CALLS = """\
%%nsys --steps 1 --no-warmup --osrt --save many
zero = os.open("/dev/zero", os.O_RDONLY)
for _ in range(60_000):  # so many that a fast machine has parts of them to tell as well
    os.read(zero, 100_000)  # long enough to be recorded
"""


@pytest.mark.parametrize("importer", ["where nsys looks for it", "elsewhere"])
def test_how_much_of_the_report_is_made_is_told(notebook, tmp_path, monkeypatch, importer):
    told: list[float] = []

    class Recorded(Progress):
        def tell(self, doing, part=None):
            if doing == "Writing the report" and part is not None:
                told.append(part)
            super().tell(doing, part)

    monkeypatch.setattr(jaxnsys, "Progress", Recorded)
    beside = importer != "elsewhere"
    if beside:
        monkeypatch.setattr("jupyterlab_jaxprof.environment.nsys.PLACES", ())
    with on_path(laid_out(tmp_path) if beside else Path(REAL).parent, alone=True):
        (chosen, *_) = jaxnsys._candidates()
        assert chosen.imports is beside
        outcome = notebook.run(MANY_CALLS)
    capture = notebook.names["many"]
    assert capture.status is Status.OK, outcome.text
    assert timeline.read(capture.file("nsys")).ranges.kind.size > 1000
    assert told[-1] == 1.0
    assert len(set(told)) > 2


def test_refusals_cost_nothing(notebook, tmp_path, monkeypatch):
    refusals = {
        "%%nsys --nsys '--cuda-memory-usge=true'\n1": "--cuda-memory-usge. Did you mean --cuda-memory-usage?",
        "%%nsys --nsys '-o x'\n1": "%%nsys itself decides that",
        "%%nsys --nsys 'ls; rm x'\n1": "'ls;' is none",
        "%%nsys --trace 'cuda;rm'\n1": "--trace takes names",
        "%%nsys --gpu-metrics\n1": "needs an NVIDIA GPU",
        "%%nsys --return 1a\n1": "'1a' can't be one",
        "%%nsys --return nowhere\n1": "neither the notebook nor the cell has a variable nowhere",
        "%%nsys --return x --drop x\n1": "contradict each other",
        "%%nsys --drop nowhere\n1": "the notebook has no variable nowhere",
        "%%nsys --trace cuda,nvxt\n1": "can't trace 'nvxt'; it can trace",
        "%%nsys --bogus\n1": "no option --bogus. %%nsys? lists",
        "%nsys try forget": "%nsys try takes nothing more, and 'forget' stands there",
        "%%nsys --setup --steps 3\n1": "--setup only marks this cell",
        "%%nsys --steps 0\n1": "a whole number from 1",
        "%%nsys\n": "nothing to run",
    }
    for cell, said in refusals.items():
        text = notebook.run(cell).text
        assert said in text, text
        assert "Traceback" not in text
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("jupyterlab_jaxprof.environment.nsys.PLACES", ())
    text = " ".join(notebook.run("%%nsys\n1").text.split())
    assert "there is no nsys (NVIDIA Nsight Systems) on this machine. On Debian enable" in text
    assert "in NVIDIA's containers and on Colab install nsight-systems-cli" in text
    assert not list(notebook.store.glob("partial/*"))


def test_a_full_disk_is_told_before_anything_runs(notebook, disk, monkeypatch):
    monkeypatch.setenv("JAXPROF_DIR", str(disk.place / "store"))
    text = notebook.run("%%nsys\nx.sum()").text
    assert "MB free" in text, text
    assert "Nothing has run." in text


def test_a_disk_that_fills_up_while_it_records_is_told(notebook, tmp_path, monkeypatch):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        return  # no right to mount: the stand-in above tells the same
    try:
        monkeypatch.setenv("JAXPROF_DIR", str(place / "store"))
        fill = f"with open({str(place / 'ballast')!r}, 'wb', 0) as file:\n    for size in (1 << 20, 1024):\n"
        fill += "        try:\n            while True:\n                file.write(bytes(size))\n"
        fill += "        except OSError:\n            pass"
        outcome = notebook.run(f"%%nsys --steps 1 --no-warmup\n{fill}")
        told = r"disk is full|disk of \S+ is full|can't be kept in .*No space left"
        assert re.search(told, " ".join(outcome.text.split())), outcome.text
        assert "Nothing has run" not in outcome.text
        assert "Traceback" not in outcome.text
        assert not list((place / "store" / "partial").iterdir())
        assert_nothing_left(notebook.mark)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
