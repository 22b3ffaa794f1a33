"""A Jupyter server, a kernel, XProf and nsys at work, and what must hold after one of them was killed.

All that is started carries a mark in its environment and writes its temporary files into one directory: so
whatever is left behind is found, by whomever it was started.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client import BlockingKernelClient

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.environment import temporary
from jupyterlab_jaxprof.nsight import kernelspec
from tests.support.endurance import FULL
from tests.support.kernels import Kernel
from tests.support.servers import Server, running_server

#: Begins with PYTHON, so that the viewers and importers have it too, which get little else of a server's.
MARK = "PYTHONOF_A_TEST_THAT_KILLS"
SEED = "JAXPROF_KILL_SEED"
PATIENCE_S = 60.0 if not FULL else 240.0  # the endurance run may be at work beside others
LOOK_S = 0.005


def chance(*names: object) -> random.Random:
    """Give the random numbers of one test, and print how to have them again."""
    seed = os.environ.get(SEED) or uuid.uuid4().hex[:8]
    print(f"To have the same moments again: {SEED}={seed}")
    return random.Random(" ".join(map(str, (seed, *names))))


def wait_until(met: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until `met` gives something true, and give that."""
    deadline_s = time.monotonic() + patience_s
    while not (found := met()):
        assert time.monotonic() < deadline_s, f"Not within {patience_s:.0f} s: {what}"
        time.sleep(LOOK_S * 4)
    return found


class Site:
    """One store with all that works at it. `restore` starts what was killed."""

    def __init__(self, folder: Path, *, nsys_kernel: bool = False) -> None:
        self.mark = uuid.uuid4().hex
        self.folder = folder
        self.store = Store(folder / "store")
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._nsys_kernel = nsys_kernel
        self._stack = ExitStack()
        self._kernel_id = ""
        self._server: Server | None = None
        self._kernel: Kernel | None = None
        self.durations_s: dict[str, float] = {}
        """How long each work takes where nobody is killed."""
        self.configurations: set[str] = set()
        """The files of nsys outside of its temporary directory that were seen to be used."""
        self.environment = {MARK: self.mark, "TMPDIR": str(self.temporary), "JAX_PLATFORMS": "cpu"}

    # What is at work

    @property
    def server(self) -> Server:
        assert self._server is not None
        return self._server

    @property
    def kernel(self) -> Kernel:
        assert self._kernel is not None
        return self._kernel

    @property
    def kernel_pid(self) -> int:
        """The process that runs the cells."""
        return self._kernel_pid

    def notice(self) -> None:
        """Keep in mind which files nsys's programs use."""
        self.configurations |= {file for process in self.processes() for file in configurations(process)}

    def restore(self, setup: str = "") -> None:
        """Start whatever is not there (any more); a new kernel runs `setup`."""
        if self._server is None or self._server.process.poll() is not None:
            self._stack.close()
            self._kernel = None
            self._server = self._stack.enter_context(
                running_server(store=self.store.root, environment=self.environment)
            )
        if self._kernel is None or not lives(self._kernel_pid):
            self.new_kernel()
            assert self.kernel.run(setup, timeout=120).status == "ok"

    def new_kernel(self) -> None:
        """Start a kernel as JupyterLab does, and connect to it."""
        self._forget_kernel()
        name = "python3"
        if self._nsys_kernel:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("JUPYTER_DATA_DIR", str(self.server.home / "data"))
                name = kernelspec.install().name
        answer = self.server.request("POST", "api/kernels", json={"name": name})
        answer.raise_for_status()
        self._kernel_id = answer.json()["id"]
        self.connect()

    def connect(self) -> None:
        """Connect to the kernel as it is now: a restarted one has other ports' clients."""
        if self._kernel is not None:
            self._kernel.client.stop_channels()
        connection = self.server.home / "run" / f"kernel-{self._kernel_id}.json"
        wait_until(connection.exists, "the kernel's connection file")
        client = BlockingKernelClient(connection_file=str(connection))
        client.load_connection_file()
        client.start_channels()
        wait_until(lambda: _answers(client), "the kernel's answer", 120)
        self._kernel = Kernel(None, client)  # pyright: ignore[reportArgumentType] (its manager is the server's)
        self._kernel_pid = int(self.kernel.run("import os; print(os.getpid())").stdout)

    def restart_kernel(self) -> None:
        """Have the server restart the kernel, as the user's button does."""
        self.server.request("POST", f"api/kernels/{self._kernel_id}/restart").raise_for_status()

    def _forget_kernel(self) -> None:
        if self._kernel is not None:
            self._kernel.client.stop_channels()
            self._kernel = None
        if self._kernel_id and self._server is not None:
            with suppress(OSError):
                self._server.request("DELETE", f"api/kernels/{self._kernel_id}")
        self._kernel_id = ""

    def xprof(self, action: str = "start") -> dict[str, Any]:
        return self.server.viewer("xprof", action)

    def close(self) -> None:
        with suppress(Exception):
            self._forget_kernel()
        self._stack.close()
        for process in self.processes():
            kill(process)

    # Processes

    def processes(self) -> list[psutil.Process]:
        """All that was started here and lives."""
        return list(marked(self.mark))

    def strays(self) -> list[str]:
        """The command lines of what lives although nobody who lives needs it."""
        server = self._server.pid if self._server is not None and self._server.process.poll() is None else 0
        found: list[str] = []
        for process in self.processes():
            with suppress(psutil.Error):
                of_server = server in (process.pid, *(parent.pid for parent in process.parents()))
                if not (of_server and _belongs_to_a_server(process, server)):
                    found.append(f"{process.pid} (child of {process.ppid()}): {process.cmdline()}")
        return found


def _belongs_to_a_server(process: psutil.Process, server: int) -> bool:
    """Whether it is the server, a viewer of it, or a kernel with the session of nsys that looks after it."""
    command = " ".join(process.cmdline())
    if process.pid == server or "ipykernel_launcher" in command or "xprof_app" in command:
        return True
    above = [command, *(" ".join(command_of(parent)) for parent in process.parents())]
    return any("nsight.launcher" in one for one in above) and not any("nsight.child" in one for one in above)


def _answers(client: BlockingKernelClient) -> bool:
    try:
        client.wait_for_ready(timeout=10)
    except RuntimeError:  # its heart does not beat yet
        return False
    return True


def marked(mark: str) -> Iterator[psutil.Process]:
    """The living processes that were started with MARK=mark."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def is_of_nsys(process: psutil.Process) -> bool:
    """Whether it is a program of Nsight Systems."""
    with suppress(psutil.Error):
        return "nsight" in process.exe().lower() or Path(process.exe()).name.startswith("nsys")
    return False


def configurations(process: psutil.Process) -> set[str]:
    """The files which nsys has written into /tmp for a program."""
    with suppress(psutil.Error):
        return {value for value in process.environ().values() if value.startswith("/tmp/injection_config_")}
    return set()


def lives(pid: int) -> bool:
    """Whether a process is there, and not only until its parent asks what came of it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def kill(process: psutil.Process | int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; False where the process is gone already."""
    try:
        os.kill(process if isinstance(process, int) else process.pid, number)
    except ProcessLookupError:
        return False
    return True


# What must hold afterwards


def check_store(site: Site) -> None:
    """Every capture is whole and can be got; nothing runs, and nothing is half there."""
    store = Store(site.store.root)
    page = store.list(limit=1000)
    assert page.problems == []
    for row in page.rows:
        assert row.problem is None, row.problem
        record = store.get(row.id)
        assert record.status is Status.OK or record.reason, record
        found = {path.name for path in store.directory(row.id).iterdir()}
        assert found <= {"capture.json", "plugins", *(file.path for file in record.files)}, found
        for file in record.files:
            with store.open(row.id, file.path) as content:
                assert len(content.read()) == file.size_bytes > 0
    assert sorted(path.name for path in store.root.iterdir() if path.name.startswith(".")) == []
    wait_until(lambda: not store.running(), "nothing is measured any more")


def check_nothing_left(site: Site) -> None:
    """No process that nobody needs, no draft that nobody writes, no file outside of the store."""
    wait_until(lambda: not site.strays(), f"the end of all that is not needed any more: {site.strays()}")
    partial = site.store.root / "partial"
    age_the_stillborn(partial)
    wait_until(lambda: not list(partial.glob("*")), f"an empty {partial}: {[*partial.glob('*')]}")
    temporary.sweep(site.temporary)  # as whoever makes the next one does
    left = [path for path in site.temporary.iterdir() if "jaxprof" in path.name or "nsys" in path.name]
    left = [path for path in left if not (path.name.startswith(temporary.PREFIX) and is_held(path))]
    assert left == [], left
    used = {file for process in site.processes() for file in configurations(process)}
    left = [Path(file) for file in site.configurations - used]
    wait_until(lambda: not any(path.exists() for path in left), f"the end of nsys's {left}")
    site.configurations &= used


def is_held(directory: Path) -> bool:
    """Whether a living process uses a temporary directory of ours."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def age_the_stillborn(partial: Path) -> None:
    """Make drafts that nobody has taken as old as the store lets them become."""
    past = time.time() - 2 * 3600
    for draft in partial.glob("*"):
        with suppress(OSError):
            if not (draft / ".owner").exists():
                os.utime(draft, (past, past))
