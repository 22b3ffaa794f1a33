"""Another user of the machine reads nothing: looked at as that user, all the time that all is at work."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from jupyterlab_jaxprof.captures import Store
from tests.support.captures import content
from tests.support.endurance import tries
from tests.support.kernels import running_kernel
from tests.support.servers import Server, running_server

pytestmark = pytest.mark.long

NOBODY = 65534
SECRET = "secret-0f-the-user"
#: Walks directories again and again as another user until its input ends; tells what it could read or reach.
WALKER = f"""
import json, os, select, socket, stat, sys

os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
read, looks = set(), 0
while not select.select([0], [], [], 0.05)[0]:
    looks += 1
    for place in sys.argv[1:]:
        for folder, _, names in os.walk(place, followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    if stat.S_ISSOCK(os.lstat(path).st_mode):
                        with socket.socket(socket.AF_UNIX) as one:
                            one.connect(path)
                    else:
                        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                    read.add(path)
                except OSError:
                    pass
            if os.access(folder, os.W_OK) and folder != sys.argv[1] + "/tmp":
                read.add(folder)
print(json.dumps({{"read": sorted(read), "looks": looks}}))
"""
UMASK = ("sh", "-c", 'umask 0000; exec "$0" "$@"', sys.executable)
CELLS = [
    "import os; os.umask(0); import jax, jax.numpy as jnp; x = jnp.ones((64, 64))",
    "%%jaxtrace\n(x @ x).block_until_ready()",
    "%%jaxtime\nx @ x",
    *["%%nsys --steps 1\ny = x @ x"] * tries(0, 1),
]


@dataclass
class Worked:
    """What was seen while all was at work."""

    store: Path
    place: Path
    read: list[str]
    looks: int
    server: str = ""
    commands: dict[str, list[str]] = field(default_factory=dict)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def worked() -> Iterator[Worked]:
    """A store, sockets and temporary files where anybody can go; a server and a kernel with umask 0000."""
    place = Path(tempfile.mkdtemp(prefix="jaxprof-open-"))
    temporary = place / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    place.chmod(0o755)
    command = [shutil.which("python3", path="/usr/bin") or sys.executable, "-I", "-c", WALKER, str(place)]
    variables = {"TMPDIR": str(temporary), "OWN_API_KEY": SECRET}
    assert os.geteuid() == 0, "Only root can act as another user: run this file as root, in a container."
    walker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    found = Worked(place / "store", place, [], 0)
    try:
        with running_server(
            "/", found.store, environment={**variables, "TMPDIR": str(temporary)}, interpreter=UMASK
        ) as server:
            for shown in (server.home, server.home / "run"):
                shown.chmod(0o755)
            for socket in server.home.glob("run/jaxprof.*"):
                (place / socket.name).symlink_to(socket)
            _use(server, found)
            assert list(place.glob("jaxprof.*"))
        with running_kernel(JAXPROF_DIR=str(found.store), **variables) as kernel:
            for cell in CELLS:
                reply = kernel.run(cell, timeout=120)
                assert reply.status == "ok", reply.text
        out, _ = walker.communicate()
        told = json.loads(out)
        found.read, found.looks = told["read"], told["looks"]
        yield found
    finally:
        walker.kill()
        walker.wait()
        shutil.rmtree(place, ignore_errors=True)


def _use(server: Server, found: Worked) -> None:
    """Let a viewer work, import a file, export a capture, and look at the processes meanwhile."""
    trace = content("no_steps.xplane.pb")
    files = [{"path": "a/vm.xplane.pb", "size_bytes": len(trace)}, {"path": "a/b", "size_bytes": 0}]
    begun = server.request("POST", "jaxprof/api/imports", json={"files": files}).json()
    path = f"jaxprof/api/imports/{begun['id']}"
    assert server.request("PUT", f"{path}/0?offset=0", data=trace).status_code == 200
    assert server.request("POST", path).status_code == 202
    while server.get_json(path)["state"] == "reading":
        _look(server, found)
    capture = server.get_json(path)["capture"]
    run = server.get_json(f"jaxprof/api/captures/{capture}")["xprof_run"]
    query = {"run": run, "tag": "overview_page", "host": "vm"}
    assert server.get("xprof/data/plugin/profile/data", params=query).status_code == 200
    _look(server, found)
    found.server = server.log


def _look(server: Server, found: Worked) -> None:
    for process in psutil.Process(server.pid).children(recursive=True):
        try:
            name = " ".join(process.cmdline()[1:5])
            found.commands[name] = process.cmdline()
            found.environments[name] = process.environ()
        except psutil.Error:
            continue


def test_another_user_reads_nothing_at_any_time(worked: Worked) -> None:
    assert worked.looks > 20
    assert worked.read == []
    kinds = sorted(str(row.kind) for row in Store(worked.store).list().rows)
    assert kinds == [*["nsys"] * tries(0, 1), "time", "trace", "trace"]


def test_all_that_is_left_is_for_its_user_alone(worked: Worked) -> None:
    places = [worked.store, *worked.store.rglob("*"), *worked.place.joinpath("tmp").rglob("*")]
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in places}
    # What JAX itself writes into its cache is in a directory that is closed.
    inner = [path for path in places if worked.store / "jax-cache" in path.parents]
    open_ones = {path: oct(mode) for path, mode in modes.items() if mode & 0o077 and path not in inner}
    assert open_ones == {}
    assert modes.get(worked.store / "jax-cache", 0o700) == 0o700
    assert list(worked.place.joinpath("tmp").iterdir()) == []  # and nothing is forgotten there


def test_our_processes_have_no_secrets_in_what_others_can_see(worked: Worked) -> None:
    assert any("xprof_app" in name for name in worked.commands)
    assert any("import" in name for name in worked.commands)
    for name, command in worked.commands.items():
        assert not [word for word in command if Server.token in word or SECRET in word], name
        values = [*worked.environments[name], *worked.environments[name].values()]
        assert not [value for value in values if Server.token in value or SECRET in value], name
    lines = [line for line in worked.server.splitlines() if Server.token in line or SECRET in line]
    assert lines == []
