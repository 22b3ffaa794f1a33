"""A supervised viewer of the tests' own, which does what it is asked to."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path

import psutil
import pytest

from jupyterlab_jaxprof.server.viewers.process import Limits, ViewerProcess, ViewerSpec
from jupyterlab_jaxprof.server.viewers.protocol import READY_PATH

ECHO = ViewerSpec("echo", "Echo", "tests.server.echo_viewer", "echo")


def viewer(place: Path, *arguments: str, limits: Limits | None = None) -> ViewerProcess:
    log = logging.getLogger("echo")
    socket_path = place / "d" / "echo.sock"
    return ViewerProcess(ECHO, ("--logdir", str(place), *arguments), limits or Limits(), log, socket_path)


async def ask(socket_path: Path, query: str = "") -> tuple[int, dict]:
    """One request as jupyter-server-proxy makes it; returns status and JSON."""
    reader, writer = await asyncio.open_unix_connection(str(socket_path))
    writer.write(f"GET /x?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until(condition, timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it didn't come to pass"
        await asyncio.sleep(0.05)


async def busy(echo: ViewerProcess, count: int) -> None:
    """Wait until the process works on `count` requests."""
    deadline = time.monotonic() + 10
    while (await state_of(echo))["busy"] != count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def state_of(echo: ViewerProcess) -> dict:
    reader, writer = await asyncio.open_unix_connection(str(echo.socket_path))
    writer.write(f"GET {READY_PATH} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def looks(echo: ViewerProcess, count: int) -> None:
    """Wait until the supervisor has looked at the process's memory `count` times more."""
    seen = 0
    real = echo.memory_bytes

    def counted():
        nonlocal seen
        seen += 1
        return real()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(echo, "memory_bytes", counted)
        await until(lambda: seen >= count)


def supervised(check, *args, **kwargs) -> None:
    """Run the coroutine `check(viewer)` with a viewer that listens, and close it."""

    async def main():
        echo = viewer(*args, **kwargs)
        echo.listen()
        try:
            await asyncio.wait_for(check(echo), 60)
        finally:
            await echo.close()
        assert not echo.socket_path.parent.exists()

    asyncio.run(main())
