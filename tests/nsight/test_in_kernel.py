"""Recording a kernel that `nsys launch` has started, by the real nsys and a real ipykernel."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jupyterlab_jaxprof import timeline
from jupyterlab_jaxprof.captures import Status, Store
from tests.nsight.nsys_kernel import nsys_kernel
from tests.nsight.stand_ins import MARK, assert_nothing_left, pids
from tests.support.kernels import Kernel

SECRET = "secret-of-the-kernel"
SETUP = """\
import jax, jax.numpy as jnp, os, subprocess, sys, time
f = jax.jit(lambda x: jnp.sin(x) @ x)
x = jnp.ones((50, 50))
count = 0
"""


class Notebook:
    """A kernel, its store, and what its cells leave there."""

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        self.kernel, self.folder, self.mark = kernel, folder, folder.name
        self.store = Store(folder / "store")

    def run(self, code: str):
        return self.kernel.run_once_accepted(code, timeout=120)

    def value(self, code: str) -> str | None:
        return self.run(code).value

    def newest(self):
        row = self.store.list().rows[0]
        return self.store.get(row.id), self.store.captures_dir / row.id


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("inkernel")
    with nsys_kernel(folder, **{MARK: folder.name, "OWN_API_TOKEN": SECRET}) as kernel:
        notebook = Notebook(kernel, folder)
        assert notebook.run(SETUP).status == "ok"
        yield notebook
    assert_nothing_left(folder.name)


def ranges(directory: Path, name: str) -> list[str]:
    """The names of the ranges in a report, those of our steps as `step 0`."""
    read = timeline.read(directory / f"{name}.nsys-rep")
    steps = [
        f"{read.texts[text]} {number}"
        for text, number in zip(read.steps.name, read.steps.number, strict=True)
    ]
    return [read.texts[text] for text in read.ranges.name] + steps


def test_a_cell_runs_in_the_kernel_as_recorded_steps(notebook):
    reply = notebook.run("%%nsys --in-kernel warm --steps 3\ncount += 1\ny = f(x); print('step')\ncount")
    assert reply.value == "4", reply.text
    assert reply.stdout == "step\n" * 3  # the warm-up's is not shown
    assert notebook.value("count") == "4"
    record, directory = notebook.newest()
    assert (record.kind, record.name, record.status) == ("nsys", "warm", Status.OK), record.reason
    assert record.magic == "%%nsys --in-kernel warm --steps 3"
    assert record.summary["steps"]["count"] == 3
    assert any("own kernel as it was" in notice for notice in record.notices)
    assert {"capture", "step 0", "step 1", "step 2"} <= set(ranges(directory, "warm"))
    assert [file.role for file in record.files] == ["nsys"]
    assert notebook.value(f"'{SECRET}' in open('/proc/self/environ').read()") == "False"  # nsys looks there
    assert notebook.value("os.environ['OWN_API_TOKEN']") == repr(SECRET)
    assert notebook.run("!env").stdout.count("LD_PRELOAD") == 0


def test_start_and_stop_record_all_between_them(notebook):
    assert "Nothing is being recorded." in notebook.run("%nsys").stdout
    assert "Recording 'piece' until %nsys stop." in notebook.run("%nsys start piece").stdout
    notebook.run("y = f(x + 1)")
    assert "'piece' has been recorded for" in notebook.run("%nsys").stdout
    assert "'piece' is being recorded until %nsys stop" in notebook.run("%nsys start again").stderr
    assert "'piece' is being recorded until %nsys stop" in notebook.run("%%nsys --in-kernel\n1").stderr
    reply = notebook.run("%nsys stop --save c")
    assert reply.status == "ok", reply.text
    record, directory = notebook.newest()
    assert (record.name, record.status) == ("piece", Status.OK), record.reason
    assert record.cell.startswith("y = f(x + 1)")
    assert "capture" in ranges(directory, "piece")
    assert notebook.value("c.name") == "'piece'"
    assert "nothing is being recorded in this kernel" in notebook.run("%nsys stop").stderr


def test_an_error_ends_the_recording_and_is_the_cells_own(notebook):
    notebook.run("count = 0")
    cell = "%%nsys --in-kernel --no-warmup failing\ncount += 1\nif count == 2:\n    count / 0"
    reply = notebook.run(cell)
    assert reply.error == "ZeroDivisionError"
    assert "line 4" in reply.traceback
    record, _ = notebook.newest()
    assert record.status is Status.FAILED
    assert record.reason.startswith("The cell raised ZeroDivisionError: division by zero in step 1 (")
    before = notebook.store.list().total
    reply = notebook.run("%%nsys --in-kernel failing\n1 / 0")
    assert reply.error == "ZeroDivisionError"
    assert notebook.store.list().total == before  # nothing was recorded yet
    assert not list((notebook.folder / "store" / "partial").iterdir())


def test_an_interrupt_gives_the_report_so_far(notebook):
    cell = (
        "%%nsys --in-kernel --no-warmup slow\ncount += 1\n"
        "if count > 3:\n    print('waiting', flush=True)\n    time.sleep(600)"
    )
    message = notebook.kernel.send(cell)
    notebook.kernel.wait_for_output(message, "waiting")
    notebook.kernel.interrupt()
    reply = notebook.kernel.wait_for(message)
    assert reply.error == "KeyboardInterrupt"
    record, directory = notebook.newest()
    assert record.status is Status.INTERRUPTED
    assert record.reason == "Interrupted in step 1 (counted from 0); the report ends there."
    assert "step 0" in ranges(directory, "slow")


def test_the_cell_in_a_process_of_its_own_works_too(notebook):
    reply = notebook.run("%%nsys child --steps 2\nz = f(x)")
    assert reply.status == "ok", reply.text
    record, _ = notebook.newest()
    assert (record.name, record.status) == ("child", Status.OK), record.reason
    assert notebook.run("%%jaxtrace trace\nf(x)").status == "ok"
    record, _ = notebook.newest()
    assert any(notice.startswith("This process runs under NVIDIA Nsight") for notice in record.notices)


def test_whatever_dies_nothing_is_left_and_no_half_capture(tmp_path):
    with nsys_kernel(tmp_path, **{MARK: tmp_path.name}) as kernel:
        notebook = Notebook(kernel, tmp_path)
        session = notebook.run(
            "from jupyterlab_jaxprof.nsight.launched import launch\nprint(launch().session)"
        ).stdout.strip()
        notebook.run("%nsys start first")
        (agent,) = [
            pid
            for pid in pids(tmp_path.name)
            if "--start-agent" in _command(pid) and session in _command(pid)
        ]
        os.kill(agent, signal.SIGKILL)
        reply = notebook.run("%nsys stop")
        assert "nsys's session of this kernel has ended" in reply.updates[-1]["text/plain"]
        assert notebook.value("1 + 1") == "2"
        assert "nsys's session of this kernel has ended" in notebook.run("%nsys start second").stderr
        assert notebook.store.list().total == 0

        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=120)
        notebook.run("%nsys start third")
        os.kill(int(notebook.run("import os; print(os.getpid())").stdout), signal.SIGKILL)
        assert_nothing_left(tmp_path.name)
        assert notebook.store.list().total == 0
        with notebook.store.begin("nsys", "next"):  # which sweeps what nobody owns
            partial = list((tmp_path / "store" / "partial").iterdir())
            assert len(partial) == 1


def test_a_kernel_that_nsys_does_not_start_is_a_plain_one_that_says_so(tmp_path):
    with nsys_kernel(tmp_path, started_with="nonsense") as kernel:
        reply = kernel.run("%%nsys --in-kernel\n1")
        assert "this kernel should run under nsys, and does not" in reply.stderr
        assert "can't trace 'nonsense'" in reply.stderr
        assert "runs without nsys" in kernel.run_once_accepted("%nsys").stdout


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
