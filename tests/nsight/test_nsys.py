"""%%nsys with the real nsys: a whole run, errors, interrupts, what is killed, and what fails silently."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.magics import jaxnsys
from jupyterlab_jaxprof.magics.jaxnsys_progress import Progress
from jupyterlab_jaxprof.nsight import interrupts, session, trial
from jupyterlab_jaxprof.timeline.nsight_export import exported
from tests.nsight.stand_ins import MARK, REAL, assert_nothing_left, laid_out, on_path, pids, stand_in
from tests.support.kernels import running_kernel

pytestmark = pytest.mark.long

WHOLE = """\
%%nsys "steady state" --steps 3 --save c --return y,never
import nvtx
y = jax.jit(lambda a: (a @ a).sum())(x)
x = None if False else x
print("said by the body")
!echo said by a command >&2
count = globals().get("count", 0) + 1
with nvtx.annotate("mine"):
    token = os.environ["OWN_API_TOKEN"]
if count == 4:
    subprocess.Popen(["sleep", "600"], start_new_session=True)
subprocess.run(["true"], env={**os.environ, "OWN_API_TOKEN": token})
(count, token, os.environ.get("TMPDIR"))
"""


@pytest.fixture(scope="module")
def whole(notebook):
    outcome = notebook.run(WHOLE)
    assert outcome.error is None, outcome.text
    return outcome, notebook.names["c"]


def test_output_comes_as_the_body_makes_it_and_the_last_value_is_shown_once(whole, notebook):
    text = whole[0].text
    assert text.count("said by the body\n") == 3  # not when it warms up
    assert text.count("said by a command") == 3
    assert text.count(f"(4, 'secret-of-the-notebook', {os.environ.get('TMPDIR')!r})") == 1, text
    assert (
        text.index("Starting nsys") < text.index("Warming up") < text.index("Recording") < text.index("said")
    )


def test_the_capture_is_in_the_store_with_its_report_and_nothing_else(whole, notebook):
    capture = whole[1]
    assert (capture.kind, capture.status, capture.name) == ("nsys", Status.OK, "steady state")
    assert [file.role for file in capture.files] == ["nsys"]
    assert capture.file("nsys").read_bytes().startswith(b"NVIDIA Tegra Profiler Report")
    assert sorted(path.name for path in capture.directory.iterdir()) == [
        "capture.json",
        "steady-state.nsys-rep",
    ]
    assert stat.S_IMODE(capture.file("nsys").stat().st_mode) == 0o600
    assert not list((notebook.store / "partial").iterdir())
    assert capture.record.environment["nsys"].startswith("2022.4")
    assert [device["platform"] for device in capture.record.environment["devices"]] == ["cpu"]
    assert Store(notebook.store).list(kind="nsys").rows[0].record.id == capture.id


def test_steps_are_told_by_the_clock_and_by_the_report(whole):
    capture = whole[1]
    assert capture.steps["count"] == 3
    read = timeline.read(capture.file("nsys"))
    assert len(read.steps) == 3
    with exported(capture.file("nsys")) as export, sqlite3.connect(export) as database:
        names = "select coalesce(text, (select value from StringIds where id = textId)) from NVTX_EVENTS"
        pushed = [name for (name,) in database.execute(f"{names} where eventType = 59 order by start")]
    assert pushed == ["capture", "step 0", "step 1", "step 2"]


def test_the_program_starts_without_the_secrets_of_the_notebook(whole):
    """What nsys writes of other processes (all that it may read) is not in our hands."""
    with exported(whole[1].file("nsys")) as export, sqlite3.connect(export) as database:
        rows = database.execute("select value from TARGET_INFO_SYSTEM_ENV where name = 'DeviceEnvironment'")
        variables = [variable.partition("=")[0] for (text,) in rows for variable in text.split("\0")]
    assert "JAX_PLATFORMS" in variables
    assert "OWN_API_TOKEN" not in variables


def test_what_the_user_must_know_is_on_the_card(whole, notebook):
    notices = " ".join(whole[1].record.notices)
    assert "assigns to x: the notebook's keeps its value" in notices
    assert "never does not come back: the cell has not bound it." in notices
    assert "0.2.11" in notices
    assert "package nvtx" in notices
    assert "left a process running; it was ended" in notices
    assert "ran on the CPU" in notices
    assert "nsys-ui" in whole[0].text
    assert float(notebook.names["y"]) == 50 * 50 * 50
    assert "count" not in notebook.names


def test_nothing_is_left_and_the_cache_of_compiles_is_private(whole, notebook):
    assert_nothing_left(notebook.mark)
    assert stat.S_IMODE((notebook.store / "jax-cache").stat().st_mode) == 0o700


def test_an_error_is_the_cells_own(notebook):
    outcome = notebook.run(
        "%%nsys --steps 3 --save failed\n\ncount = globals().get('count', 0) + 1\nif count == 3:\n"
        "    try:\n        divide(1)\n    except ZeroDivisionError as error:\n"
        "        raise ValueError('second') from error"
    )
    number = len(notebook.ip.history_manager.input_hist_raw) - 1
    assert type(outcome.error).__name__ == "ValueError"
    assert str(outcome.error) == "second"
    assert f"Cell In[{number}], line 6\n    divide(1)" in outcome.text
    assert f"Cell In[{number}], line 8\n    raise ValueError" in outcome.text
    assert "in divide\n    return a / 0\nZeroDivisionError: division by zero" in outcome.text
    assert "jupyterlab_jaxprof" not in outcome.text[outcome.text.index("Traceback") :]
    capture = notebook.names["failed"]
    assert capture.status is Status.FAILED
    assert "ValueError: second in step 1 (counted from 0)" in capture.record.reason
    assert capture.steps["count"] == 1
    assert len(timeline.read(capture.file("nsys")).steps) == 2


def test_set_up_cells_make_what_cannot_be_carried_and_a_failed_warm_up_records_nothing(notebook):
    made = "handle = open(os.devnull)\nstream = (line for line in 'abc')"
    assert notebook.run(made).error is None
    refused = notebook.run("%%nsys\nnext(stream)").text
    assert "stream (generator) can't be carried" in refused
    assert "Nothing has run." in refused
    assert "is run by %%nsys too" in notebook.run(f"%%nsys --setup\n{made}").text
    assert "handle = open" in notebook.run("%nsys").text
    before = Store(notebook.store).list().total
    outcome = notebook.run("%%nsys\nassert next(stream) == 'a'\ndivide(1)")
    assert type(outcome.error).__name__ == "ZeroDivisionError", outcome.text
    assert "raised ZeroDivisionError: division by zero when it ran to warm up" in outcome.text
    assert Store(notebook.store).list().total == before
    assert "1 set-up cells are forgotten" in notebook.run("%nsys forget").text
    assert_nothing_left(notebook.mark)


IN_SECOND_STEP = """\
%%nsys --steps 3 --no-warmup --save ended
count = globals().get("count", 0) + 1
subprocess.Popen(["sleep", "600"], start_new_session=True)
if count == 2:
    {before}
    print("now", flush=True)
    time.sleep(300)
"""


def test_an_interrupt_gives_the_report_so_far(notebook):
    with notebook.interrupted_when("now\n"):
        outcome = notebook.run(IN_SECOND_STEP.format(before="pass"))
    assert isinstance(outcome.error, KeyboardInterrupt)
    capture = notebook.names["ended"]
    assert (capture.status, capture.steps["count"]) == (Status.INTERRUPTED, 1), capture.record.reason
    assert len(timeline.read(capture.file("nsys")).steps) == 2
    assert_nothing_left(notebook.mark)


def test_a_body_that_ignores_signals_is_ended_and_its_report_kept(notebook, monkeypatch):
    monkeypatch.setattr(interrupts, "GRACE_S", 0.5)
    ignore = "[signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)]"
    with notebook.interrupted_when("now\n"):
        outcome = notebook.run(IN_SECOND_STEP.format(before=ignore))
    assert isinstance(outcome.error, KeyboardInterrupt)
    capture = notebook.names["ended"]
    assert capture.status is Status.INTERRUPTED
    assert any("ignored the interrupt" in notice for notice in capture.record.notices)
    assert timeline.read(capture.file("nsys")).files[0].size_bytes > 0
    assert_nothing_left(notebook.mark)


def test_a_second_interrupt_gives_up(notebook):
    before = Store(notebook.store).list().total
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)"

    def again():
        deadline_s = time.monotonic() + 60
        while "Interrupt again" not in notebook._out.getvalue() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    notebook.run("pass")  # another output begins
    watcher = threading.Thread(target=again)
    with notebook.interrupted_when("now\n"):
        watcher.start()
        outcome = notebook.run(IN_SECOND_STEP.format(before=ignore))
    watcher.join()
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert "nothing was kept" in outcome.text
    assert Store(notebook.store).list().total == before
    assert not list((notebook.store / "partial").iterdir())
    assert_nothing_left(notebook.mark)


def kill_when_now(notebook, *words: str) -> None:
    """Kill the process of the running cell whose command line begins so, once the cell has printed."""

    def wait_and_kill():
        deadline_s = time.monotonic() + 60
        while "now\n" not in notebook._out.getvalue() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        for pid in pids(notebook.mark, *words):
            os.kill(pid, signal.SIGKILL)

    threading.Thread(target=wait_and_kill).start()


@pytest.mark.parametrize(
    ("killed", "said"),
    [
        ((sys.executable, "-P", "-c"), "The program was killed (SIGKILL"),
        ((REAL, "profile"), "nsys was killed (SIGKILL) in step 1"),
        ((sys.executable, "-I", "-S"), "The process that looks after nsys was killed"),
    ],
    ids=["program", "nsys", "guardian"],
)
def test_whatever_is_killed_nothing_is_left_behind(notebook, killed, said):
    notebook.run("pass")  # another output begins
    kill_when_now(notebook, *killed)
    outcome = notebook.run(IN_SECOND_STEP.format(before="pass"))
    assert said in outcome.text, outcome.text
    assert "Traceback" not in outcome.text
    assert_nothing_left(notebook.mark)
    assert not list((notebook.store / "partial").iterdir())


def test_a_kernel_that_is_killed_leaves_nothing_behind(tmp_path):
    mark = uuid.uuid4().hex
    with running_kernel(**{MARK: mark, "TMPDIR": str(tmp_path)}) as kernel:
        kernel.run("import time, subprocess")
        message = kernel.send(IN_SECOND_STEP.format(before="pass"))
        kernel.wait_for_output(message, "now")
        assert pids(mark, sys.executable, "-P", "-c")
        assert pids(mark, str(Path(REAL).resolve()), "--start-agent")  # the mark reaches nsys's own
        (kernel_pid,) = pids(mark, sys.executable, "-m", "ipykernel_launcher")
        os.kill(kernel_pid, signal.SIGKILL)
        assert_nothing_left(mark)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("jaxprof-")]


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


def test_sampling_that_hangs_is_found_by_the_trial(notebook, monkeypatch):
    """The real one: its stop hangs where the system forbids sampling; elsewhere it works."""
    monkeypatch.setattr(trial, "STOP_S", 5.0)
    monkeypatch.setattr(interrupts, "GRACE_S", 0.5)
    outcome = notebook.run("%%nsys --steps 1 --no-warmup --sample --save sampled\nx.sum()")
    if "sampled" in notebook.names:
        assert notebook.names["sampled"].status is Status.OK
    else:
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
until_s = time.monotonic() + 0.1
while time.monotonic() < until_s:
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
