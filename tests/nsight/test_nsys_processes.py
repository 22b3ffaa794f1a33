"""What nsys starts: it can be interrupted, is not waited for without end, and ends with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.environment import command, nsys
from jupyterlab_jaxprof.nsight import session
from tests.nsight.stand_ins import MARK, REAL, assert_nothing_left, on_path, pids
from tests.support.kernels import running_kernel

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def stop_when_there(mark: str, *words: str, timeout_s: float = 60) -> None:
    """Stop (SIGSTOP) the process whose command line has all of these words, once it is there: it hangs."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        for pid in pids(mark, "/"):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if "guardian.py" not in " ".join(line) and all(word in " ".join(line) for word in words):
                os.kill(pid, signal.SIGSTOP)
                return
        time.sleep(0.002)
    raise AssertionError(f"There is no process with {words}.")


def test_making_and_reading_the_report_can_be_interrupted_and_end_with_the_kernel(tmp_path):
    mark = uuid.uuid4().hex
    with running_kernel(
        **{MARK: mark, "TMPDIR": str(tmp_path), "JAXPROF_DIR": str(tmp_path / "s")}
    ) as kernel:
        assert not kernel.run("%nsys try").error  # so that the importer below is the cell's
        for named, words in (("imported", ["QdstrmImporter"]), ("exported", ["nsys", "export", ".sqlite"])):
            message = kernel.send(f"%%nsys {named} --steps 1 --no-warmup\nprint(1)")
            stop_when_there(mark, *words)
            kernel.interrupt()
            reply = kernel.wait_for(message)
            assert reply.error == "KeyboardInterrupt", reply.text
            assert_nothing_left_but_the_kernel(mark)
        message = kernel.send("%%nsys --steps 1 --no-warmup\nprint(1)")
        stop_when_there(mark, "QdstrmImporter")
        (kernel_pid,) = pids(mark, sys.executable, "-m", "ipykernel_launcher")
        os.kill(kernel_pid, signal.SIGKILL)
        assert_nothing_left(mark)
    exporting, importing = [row.record for row in Store(tmp_path / "s").list().rows]
    assert [file.path.rpartition(".")[2] for file in importing.files] == ["qdstrm"]
    assert "Interrupted while the report was made" in importing.reason
    assert [file.path.rpartition(".")[2] for file in exporting.files] == ["nsys-rep"]
    assert exporting.status is Status.OK
    assert "Interrupted while it was read; the report is kept." in " ".join(exporting.notices)


def assert_nothing_left_but_the_kernel(mark: str) -> None:
    deadline_s = time.monotonic() + 30
    while left := set(pids(mark)) - set(pids(mark, sys.executable, "-m", "ipykernel_launcher")):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


LAUNCHER_KILLED = """\
%%nsys --steps 1 --no-warmup
print("now", flush=True)
os.kill(os.getppid(), signal.SIGKILL)
os._exit(0)
"""


@pytest.mark.parametrize("ended_by", ["limit", "interrupt"])
def test_an_nsys_without_its_program_is_not_waited_for(notebook, monkeypatch, ended_by):
    """Its launcher, the program's parent, is killed: nsys itself would wait for ever."""
    monkeypatch.setattr(session, "LINGER_TIMEOUT_S", 1.0 if ended_by == "limit" else 600.0)
    with interrupted_once_program_has_ended(notebook) if ended_by == "interrupt" else no_interrupt():
        outcome = notebook.run(LAUNCHER_KILLED)
    if ended_by == "limit":
        assert "went on for 1 s without a word, and was ended" in outcome.text, outcome.text
        assert isinstance(outcome.error, UsageError)
        assert "Traceback" not in outcome.text
    else:
        assert isinstance(outcome.error, KeyboardInterrupt), outcome.text
    assert_nothing_left(notebook.mark)


@contextmanager
def no_interrupt():
    yield


@contextmanager
def interrupted_once_program_has_ended(notebook):
    def watch():
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and (
            "now\n" not in notebook._out.getvalue() or pids(notebook.mark, sys.executable, "-P", "-c")
        ):
            time.sleep(0.02)
        time.sleep(0.5)  # the session looks ten times a second
        os.kill(os.getpid(), signal.SIGINT)

    notebook.run("pass")  # another output begins
    watcher = threading.Thread(target=watch)
    watcher.start()
    yield
    watcher.join()


def test_a_cell_whose_program_crashes_is_an_error(notebook):
    outcome = notebook.run("%%nsys --steps 1 --no-warmup --save crashed\nos._exit(3)")
    assert isinstance(outcome.error, UsageError)
    assert str(outcome.error).startswith("%%nsys: The program ended by itself")
    assert "Nothing has run" not in outcome.text


@pytest.mark.parametrize("text", ["Looking for", "Trying nsys"])
def test_an_interrupt_before_anything_runs_is_one(notebook, tmp_path, monkeypatch, text):
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "fresh"))
    notebook.run("pass")  # another output begins
    with notebook.interrupted_when(text):
        outcome = notebook.run("%%nsys --steps 1 --no-warmup\nx.sum()")
    assert isinstance(outcome.error, KeyboardInterrupt), outcome.text
    assert "the disk refuses" not in outcome.text
    assert outcome.text.count("File ") == 0, outcome.text
    assert_nothing_left(notebook.mark)


def wrapper(folder: Path, script: str) -> Path:
    """An nsys as environment modules have it: a script, whose children do the work."""
    folder.mkdir()
    path = folder / "nsys"
    path.write_text(f"#!/bin/sh\nPATH=$PATH:/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["2022.4.2.1", "2099.1.1"])
def test_the_nsys_that_recorded_exports_and_one_that_hangs_gives_way(
    notebook, tmp_path, monkeypatch, version
):
    if "plain" not in notebook.names:
        notebook.run("%%nsys --steps 1 --no-warmup --save plain\nx.sum()")
    report = notebook.names["plain"].file("nsys")
    monkeypatch.setattr(command, "SILENCE_S", 2.0)
    asked = tmp_path / "asked"
    hangs = f"""case "$1$2" in
        --version) echo "NVIDIA Nsight Systems version {version}";;
        export--help) exec {REAL} export --help;;
        export*) touch {asked}; sleep 987; exit 1;;
    esac"""
    with on_path(wrapper(tmp_path / "bin", hangs)):
        assert nsys.installations()[0].version_text == version
        assert len(timeline.read(report).steps) == 1
    assert asked.exists() is version.startswith("2022")
    assert_nothing_left(notebook.mark)


def test_what_a_program_has_started_ends_with_it(notebook, tmp_path):
    there = tmp_path / "there"
    script = f"sleep 987 & touch {there}; setsid sleep 987"
    assert command.output_of("sh", "-c", script, timeout_s=2)[1] == "it gave no answer within 2 s"
    assert there.exists()
    assert_nothing_left(notebook.mark)
    caller = (
        "from jupyterlab_jaxprof.environment.command import output_of; import sys; output_of(*sys.argv[1:])"
    )
    there.unlink()
    process = subprocess.Popen([sys.executable, "-c", caller, "sh", "-c", script], cwd=ROOT)
    while not there.exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert_nothing_left(notebook.mark)
