"""The supervision of a viewer's process, with a viewer that does what it is asked to."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from jupyterlab_jaxprof.server.viewers import process, sockets
from jupyterlab_jaxprof.server.viewers.child_environment import viewer_environment
from jupyterlab_jaxprof.server.viewers.process import Limits, State, ViewerProcess
from tests.support.servers import ROOT
from tests.support.viewers import ask, busy, gone, looks, supervised, until, viewer

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def place(tmp_path_factory):
    """A short directory: a socket is below it."""
    return tmp_path_factory.mktemp("s")


def test_the_first_connection_starts_it_and_close_ends_it(place: Path):
    pids = []

    async def check(echo: ViewerProcess):
        assert (echo.state, echo.pid) == (State.STOPPED, None)
        status, data = await ask(echo.socket_path)
        assert status == 200
        await until(lambda: echo.state is State.RUNNING)
        assert (echo.state, echo.pid, echo.message) == (State.RUNNING, data["pid"], "an echo")
        assert echo.memory_bytes() > 1 << 20
        assert stat.S_IMODE(echo.socket_path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(echo.socket_path.stat().st_mode) == 0o600
        pids.append(echo.pid)

    supervised(check, place)
    assert gone(pids[0])


def test_stop_start_restart(place: Path):
    async def check(echo: ViewerProcess):
        assert await echo.start()
        first = echo.pid
        assert await echo.start()
        assert echo.pid == first
        await echo.stop()
        assert (echo.state, echo.pid) == (State.STOPPED, None)
        assert gone(first)
        assert echo.state is State.STOPPED
        assert (await ask(echo.socket_path))[0] == 200
        second = echo.pid
        assert await echo.restart()
        assert echo.pid not in (first, second)
        assert gone(second)

    supervised(check, place)


def test_requests_wait_while_it_restarts(place: Path):
    async def check(echo: ViewerProcess):
        await echo.start()
        answers = asyncio.gather(echo.restart(), *(ask(echo.socket_path) for _ in range(5)))
        assert all(status == 200 for status, _ in (await answers)[1:])

    supervised(check, place)


def test_a_request_in_progress_ends_before_a_stop(place: Path):
    async def check(echo: ViewerProcess):
        await echo.start()
        answer = asyncio.create_task(ask(echo.socket_path, "sleep=1"))
        await busy(echo, 1)
        await echo.stop()
        assert (await answer)[0] == 200

    supervised(check, place)


def test_one_that_hangs_is_killed(place: Path, monkeypatch):
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0.5)

    async def check(echo: ViewerProcess):
        await echo.start()
        pid = echo.pid
        os.kill(pid, signal.SIGSTOP)
        await echo.stop()
        assert gone(pid)

    supervised(check, place)


@pytest.mark.parametrize("ending", ["exit=0", "exit=3", "SIGKILL"])
def test_after_a_crash_the_next_use_starts_it_again(place: Path, ending: str):
    async def check(echo: ViewerProcess):
        await echo.start()
        first = echo.pid
        if ending == "SIGKILL":
            os.kill(first, signal.SIGKILL)
        else:
            with pytest.raises((IndexError, OSError)):
                await ask(echo.socket_path, ending)
        await until(lambda: echo.state is State.FAILED)
        said = "was killed (SIGKILL)" if ending == "SIGKILL" else f"ended by itself ({ending})"
        assert said.replace("=", " status ") in echo.message
        assert echo.ended is not None
        assert echo.ended["message"] == echo.message
        assert (await ask(echo.socket_path))[0] == 200
        assert echo.pid not in (None, first)

    supervised(check, place)


def test_one_that_cannot_start_says_why(place: Path):
    async def check(echo: ViewerProcess):
        assert not await echo.start()
        assert echo.state is State.FAILED
        assert "exit status 1" in echo.message
        assert "a line before / no luck today" in echo.message
        status, data = await ask(echo.socket_path)
        assert status == 503
        assert "no luck today" in data["message"]

    supervised(check, place, "--fail", "no luck today")


def test_silent_clients_hold_nobody_up(place: Path):
    """Twenty that connect and say nothing, to a viewer that can't start and then to one that can."""

    async def check(echo: ViewerProcess):
        silent = [await asyncio.open_unix_connection(str(echo.socket_path)) for _ in range(20)]
        assert not await echo.start()
        started = time.monotonic()
        assert (await ask(echo.socket_path))[0] == 503
        assert (await ask(echo.socket_path))[0] == 503
        echo.arguments = ("--logdir", str(place))
        assert await echo.start()
        assert (await ask(echo.socket_path))[0] == 200
        assert time.monotonic() - started < process.REFUSAL_TIMEOUT_S
        for _, writer in silent:
            writer.close()

    supervised(check, place, "--fail", "no luck today")


def test_only_a_viewers_own_word_makes_it_running(place: Path):
    """Something else answers for it: an error, or what is no answer to that question."""

    async def check(echo: ViewerProcess):
        answers = [b"HTTP/1.1 503 Service Unavailable\r\n\r\n" + b'{"message": "x", "busy": 0}']
        answers += [b"HTTP/1.1 200 OK\r\n\r\n" + body for body in (b'{"message": "x"}', b"[1]", b"busy", b"")]
        answers += [b"", b"nonsense"]

        async def answer(reader, writer):
            await reader.readline()
            writer.write(answers[0])
            writer.close()

        server = await asyncio.start_unix_server(answer, str(place / "other.sock"))
        echo.socket_path, own = place / "other.sock", echo.socket_path
        while answers:
            assert await echo._ask(timeout_s=2) is None, answers[0]
            del answers[0]
        answers.append(b'HTTP/1.1 200 OK\r\n\r\n{"busy": 0, "idle_s": 1.0, "served": 0, "notice": ""}')
        assert await echo._ask(timeout_s=2) is not None
        server.close()
        echo.socket_path = own

    supervised(check, place)


def test_a_start_right_after_a_failure_is_not_taken_for_refused(place: Path):
    """A request that is to be refused, and somebody who starts the viewer at the same time."""

    async def check(echo: ViewerProcess):
        for _ in range(3):
            echo.arguments = ("--logdir", str(place), "--fail", "no luck")
            assert not await echo.start()
            echo.arguments = ("--logdir", str(place))
            answers = await asyncio.gather(echo.start(), *(ask(echo.socket_path) for _ in range(5)))
            assert answers[0] is True
            assert echo.state is State.RUNNING
            assert echo.message == "an echo"
            assert {status for status, _ in answers[1:]} <= {200, 503}
            assert await echo._ask(timeout_s=2) is not None
            await echo.stop()

    supervised(check, place)


def test_one_that_is_slow_gets_its_time(place: Path):
    async def check(echo: ViewerProcess):
        assert (await ask(echo.socket_path))[0] == 200

    supervised(check, place, "--delay", "5.5", limits=Limits(start_timeout_s=20))


def test_one_that_is_too_slow_is_ended(place: Path):
    async def check(echo: ViewerProcess):
        start = asyncio.create_task(echo.start())
        await until(lambda: echo.pid is not None)
        pid = echo.pid
        assert not await start
        assert "did not answer within 0.5 seconds" in echo.message
        assert gone(pid)

    supervised(check, place, "--delay", "60", limits=Limits(start_timeout_s=0.5))


def test_closing_while_it_starts_does_not_wait(place: Path):
    async def check(echo: ViewerProcess):
        start = asyncio.create_task(echo.start())
        await until(lambda: echo.pid is not None)
        pid = echo.pid
        started = time.monotonic()
        await echo.close()
        assert time.monotonic() - started < 5
        assert gone(pid)
        assert not await start

    supervised(check, place, "--delay", "60")


def test_memory_over_the_limit_restarts_it_when_idle(place: Path, monkeypatch):
    monkeypatch.setattr(process, "WATCH_INTERVAL_S", 0.1)
    monkeypatch.setattr(process, "IDLE_BEFORE_RESTART_S", 0.3)

    async def check(echo: ViewerProcess):
        await echo.start()
        first = echo.pid
        await ask(echo.socket_path)
        await looks(echo, 5)
        assert echo.pid == first, "it was under the limit"
        waiting = asyncio.create_task(ask(echo.socket_path, "sleep=2"))
        await ask(echo.socket_path, "grow_mib=300")
        await looks(echo, 5)
        assert not waiting.done()
        assert echo.pid == first, "somebody was waiting for an answer"
        assert (await waiting)[0] == 200
        await until(lambda: echo.pid not in (None, first) and echo.state is State.RUNNING)
        second = echo.pid
        assert echo.memory_bytes() < 200 << 20
        await looks(echo, 5)
        assert echo.pid == second

    supervised(check, place, limits=Limits(memory_limit_bytes=200 << 20))


def test_what_it_started_ends_with_it(place: Path):
    async def check(echo: ViewerProcess):
        await ask(echo.socket_path, "child=1")
        (child,) = psutil.Process(echo.pid).children()
        await echo.stop()
        await until(lambda: gone(child.pid))

    supervised(check, place)


PARENT = """
import asyncio, sys
from pathlib import Path
from tests.server.test_process import viewer

async def main():
    echo = viewer(Path(sys.argv[1]), "--without-prctl", *sys.argv[2:])
    echo.listen()
    start = asyncio.create_task(echo.start())
    while echo.pid is None:
        await asyncio.sleep(0.01)
    if len(sys.argv) == 2:
        await start
    print(echo.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("arguments", [[], ["--delay", "1"]], ids=["running", "starting"])
def test_it_ends_with_its_parent_by_the_pipe_alone(place: Path, arguments: list[str]):
    """Where the kernel sends no signal at the parent's death, as on macOS."""
    command = [sys.executable, "-c", PARENT, str(place), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    asyncio.run(until(lambda: gone(pid) and not (place / "d").exists()))


def test_it_gets_no_secrets_and_makes_private_files(place: Path, monkeypatch):
    for name in (
        "JUPYTER_TOKEN",
        "JPY_API_TOKEN",
        "JUPYTERHUB_API_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "MY_PASSWORD",
    ):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    async def check(echo: ViewerProcess):
        _, data = await ask(echo.socket_path)
        assert "secret" not in data["environment"].values()
        assert data["environment"]["OMP_NUM_THREADS"] == "2"
        assert data["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"
        assert (data["umask"], data["cwd"]) == (0o077, "/")
        found = psutil.Process(echo.pid)
        assert found.net_connections() == []
        assert os.getsid(echo.pid) == echo.pid, "a terminal's Ctrl-C must not reach it"

    supervised(check, place)
    assert "secret" not in viewer_environment().values()


def test_a_socket_that_cannot_be_made_is_an_error(place: Path):
    (place / "d").write_text("a file where a directory should be")
    with pytest.raises(OSError):
        asyncio.run(_listen(viewer(place)))


async def _listen(echo: ViewerProcess) -> None:
    echo.listen()


def test_sockets_are_below_the_runtime_directory_if_they_fit(tmp_path_factory, monkeypatch):
    short = tmp_path_factory.mktemp("r")
    for runtime, expected in [(short, short), (short / ("x" * 100), Path("/tmp"))]:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
        monkeypatch.setenv("TMPDIR", "/tmp")
        sockets.directory.cache_clear()
        path = sockets.path("tensorboard")
        assert path.parent.parent == expected
        assert len(os.fsencode(path)) < 104
        assert not path.parent.exists(), "made only when it is needed"
    sockets.directory.cache_clear()


def test_nobody_elses_directory_is_used(tmp_path_factory):
    place = tmp_path_factory.mktemp("r")
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    with pytest.raises(PermissionError):
        sockets.bind(place / "link" / "x.sock")
    (place / "real").chmod(0o777)
    listener = sockets.bind(place / "real" / "x.sock")
    assert stat.S_IMODE((place / "real").stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place / "real" / "x.sock"))
    listener.close()
    sockets.remove(place / "real" / "x.sock")
    assert not (place / "real").exists()
