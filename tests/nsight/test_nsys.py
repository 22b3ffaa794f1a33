"""%%nsys with the real nsys: a whole run, errors, interrupts, and what is killed."""

from __future__ import annotations

import mmap
import os
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
from jupyterlab_jaxprof.nsight import interrupts
from jupyterlab_jaxprof.nsight.scrub.layout import pieces
from jupyterlab_jaxprof.timeline.nsight_export import exported
from tests.nsight.stand_ins import MARK, REAL, assert_nothing_left, pids
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


#: Of another process of this machine, in its environment and its command line.
SECRETS = ("bystander-T0ken", "c0mmand-line-token", "c0mmand-line-passw0rd", "us3r-of-an-address")


@pytest.fixture(scope="module")
def whole(notebook):
    token, of_server, of_option, of_address = SECRETS
    options = [f"--ServerApp.token={of_server}", "--password", of_option, f"http://me:{of_address}@host/"]
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", *options],
        env={"PATH": os.environ["PATH"], "BYSTANDER_TOKEN": token, "BYSTANDER_DATA": "what-is-no-s3cret"},
    )
    try:
        outcome = notebook.run(WHOLE)
    finally:
        bystander.kill()
        bystander.wait()
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


def test_the_report_holds_no_secret_of_any_process(whole):
    """The export has what is packed in the report. A report that nsys exports is one that is whole."""
    with exported(whole[1].file("nsys")) as export:
        content = export.read_bytes()
    with whole[1].file("nsys").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as report:
        content += b"".join(piece.plain for piece in pieces(report))  # command lines are not exported
    for secret in (*SECRETS, "secret-of-the-notebook"):
        assert secret.encode() not in content, secret
    for blanked in (b"BYSTANDER_TOKEN=***************", b"--ServerApp.token=******************"):
        assert blanked in content
    assert b"what-is-no-s3cret" in content
    (notice,) = [one for one in whole[1].record.notices if "secrets" in one]
    assert "BYSTANDER_TOKEN" in notice
    assert "their values were removed from the report" in notice
    assert not any(secret in str(whole[1].record.to_json()) for secret in SECRETS)


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
    assert "The set-up cell is forgotten." in notebook.run("%nsys forget").text
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
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(("jaxprof-", "jaxprof."))]
