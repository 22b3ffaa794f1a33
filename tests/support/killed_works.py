"""What is going on when something is killed: each magic, and the commands and requests that read files."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import requests

from tests.support.captures import unpacked
from tests.support.kernels import Reply
from tests.support.kills import Site, lives

SETUP = """\
import jax, jax.numpy as jnp, time
step = jax.jit(lambda x: jnp.sin(x) @ x / 64)
x = jnp.ones((64, 64))
def work(seconds):
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        step(x).block_until_ready()
"""
#: Takes a trace with the kernel's profiler, by hand.
PROFILER = """\
import tempfile
with tempfile.TemporaryDirectory() as place, jax.profiler.trace(place):
    step(x).block_until_ready()
"""


class Going(Protocol):
    """Something that goes on."""

    def has_ended(self) -> bool: ...


class Cell:
    """A cell that runs in the kernel; it ends with the kernel, too."""

    def __init__(self, site: Site, code: str) -> None:
        self._client, self._pid = site.kernel.client, site.kernel_pid
        self._id = site.kernel.send(code)
        self.reply = Reply()
        self._idle = False

    def has_ended(self) -> bool:
        while not self._idle:
            try:
                message = self._client.get_iopub_msg(timeout=0)
            except queue.Empty:
                return not lives(self._pid)
            if message["parent_header"].get("msg_id") == self._id:
                self._take(message["msg_type"], message["content"])
        if not self.reply.status:
            with suppress(queue.Empty):
                while (answer := self._client.get_shell_msg(timeout=30))["parent_header"][
                    "msg_id"
                ] != self._id:
                    continue
                self.reply.status = answer["content"]["status"]
        return True

    def _take(self, kind: str, content: dict[str, Any]) -> None:
        self._idle = kind == "status" and content["execution_state"] == "idle"
        if kind == "stream":
            setattr(self.reply, content["name"], getattr(self.reply, content["name"]) + content["text"])
        elif kind == "error":
            self.reply.traceback = "\n".join(content["traceback"])
        elif kind in ("display_data", "update_display_data"):
            self.reply.updates.append(content["data"])


class Command:
    """`jaxprof` in a terminal."""

    def __init__(self, site: Site, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab_jaxprof.cli", *arguments],
            env={**_plain_environment(), **site.environment, "JAXPROF_DIR": str(site.store.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""

    def has_ended(self) -> bool:
        if self.process.poll() is None:
            return False
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.said = self.process.stdout.read()
            self.process.stdout.close()
        return True


class Importing:
    """An import by the server, of a file that the browser has uploaded."""

    def __init__(self, site: Site, path: Path) -> None:
        self._server = site.server
        data = path.read_bytes()
        files = [{"path": path.name, "size_bytes": len(data), "modified_s": 0}]
        answer = self._server.request("POST", "jaxprof/api/imports", json={"files": files})
        self.state: dict[str, Any] = answer.json()
        address = f"jaxprof/api/imports/{self.state['id']}"
        self._server.request("PUT", f"{address}/0?offset=0", data=data).raise_for_status()
        self._server.request("POST", address).raise_for_status()
        self._address = address

    def has_ended(self) -> bool:
        try:
            self.state = self._server.get_json(self._address)
        except requests.RequestException:
            return self._server.process.poll() is not None
        return self.state["state"] in ("done", "failed")


@dataclass(frozen=True)
class Work:
    """One kind of work, and who takes part in it. A `report` is read by nsys; the other files are traces."""

    name: str
    victims: tuple[str, ...]
    begin: Callable[[Site], Going]
    in_kernel: bool = False
    """Whether it needs a kernel that nsys has started."""
    reads_report: bool = False


def _cell(code: str) -> Callable[[Site], Going]:
    return lambda site: Cell(site, code)


def report_of(site: Site) -> Path:
    """A report that the installed nsys can read, outside of the store."""
    path = site.folder / "small.nsys-rep"
    if not path.exists():
        assert site.kernel.run("%%nsys small --steps 1 --no-warmup\nstep(x)", timeout=120).status == "ok"
        (row,) = site.store.list(text="small").rows
        shutil.copyfile(site.store.captures_dir / row.id / "small.nsys-rep", path)
        site.store.delete(row.id)
    return path


def _trace_to_import() -> Path:
    return unpacked("small_ops.xplane.pb")


_HERE = ("kernel", "server", "xprof")
WORKS = {
    work.name: work
    for work in (
        Work("jaxtime", _HERE, _cell("%%jaxtime killed -r 5 --memory\nwork(0.1)\nfloat(x.sum())")),
        Work("jaxtrace", _HERE, _cell("%%jaxtrace killed --steps 3\nwork(0.2)")),
        Work(
            "jaxsweep",
            _HERE,
            _cell("%%jaxsweep killed n=8,16,32 --fresh -t 0.05\nstep(jnp.ones((n, n)))"),
        ),
        Work("jaxmem", _HERE, _cell("%jaxmem killed --watch\nwork(0.7)\n%jaxmem --stop")),
        Work(
            "nsys",
            (*_HERE, "nsys", "child"),
            _cell("%%nsys killed --steps 2 --return y\ny = step(x)\nwork(0.3)"),
        ),
        Work(
            "in-kernel",
            (*_HERE, "nsys"),
            _cell("%%nsys --in-kernel killed --steps 2\nwork(0.3)"),
            in_kernel=True,
        ),
        Work(
            "report",
            ("child", "nsys", "server"),
            lambda site: Command(site, "report", str(report_of(site)), "--json"),
            reads_report=True,
        ),
        Work(
            "import",
            ("child", "nsys", "server", "xprof"),
            lambda site: Command(site, "import", str(report_of(site)), "--name", "killed", "--json"),
            reads_report=True,
        ),
        Work(
            "import of a trace",
            ("child",),
            lambda site: Command(site, "import", str(_trace_to_import()), "--json"),
        ),
        Work("upload", ("child", "server", "xprof"), lambda site: Importing(site, _trace_to_import())),
        Work(
            "upload of a report",
            ("nsys", "server"),
            lambda site: Importing(site, report_of(site)),
            reads_report=True,
        ),
    )
}


class Looking:
    """Somebody who looks at a trace in XProf all the while."""

    def __init__(self, site: Site, run: str) -> None:
        self._server, self._run = site.server, run
        self._over = threading.Event()
        self.answers: list[tuple[int, str]] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.is_set():
            try:
                answer = self._server.get(
                    f"xprof/data/plugin/profile/data?run={self._run}&tag=overview_page&host=vm"
                )
                self.answers.append((answer.status_code, answer.text))
            except requests.RequestException as error:
                self.answers.append((0, str(error)))
            self._over.wait(0.05)

    def stop(self) -> None:
        self._over.set()
        self._thread.join(120)


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("JAXPROF", "JUPYTER"))}
