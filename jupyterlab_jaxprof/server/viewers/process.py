"""One viewer's process, supervised: started at first use, watched, stopped, and never left behind.

The Jupyter server holds the listening socket and hands it to the process. So a connection made while no
process runs waits in the socket's queue and starts one, as with systemd's socket activation: a viewer that
was stopped, crashed or was restarted for its memory is back at the next request, whoever makes it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from jupyterlab_jaxprof.server.viewers import sockets
from jupyterlab_jaxprof.server.viewers.child_environment import viewer_environment
from jupyterlab_jaxprof.server.viewers.protocol import READY_PATH

STOP_TIMEOUT_S = 8.0
WATCH_INTERVAL_S = 5.0
IDLE_BEFORE_RESTART_S = 10.0
RETRY_AFTER_S = 5.0
REFUSAL_TIMEOUT_S = 5.0
LOG_TAIL_BYTES = 16 * 1024


class State(StrEnum):
    """What a viewer's process is doing."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True)
class ViewerSpec:
    """What is particular about one viewer."""

    name: str
    title: str
    module: str
    """The module that is run: `python -m MODULE`."""
    page: str
    """The viewer's page, a path below base_url without a leading slash."""


@dataclass(frozen=True)
class Limits:
    """How long and how large; 0 bytes: no limit."""

    start_timeout_s: float = 30.0
    memory_limit_bytes: int = 0


@dataclass
class ViewerProcess:
    """The supervised process of one viewer; all methods run on the server's event loop."""

    spec: ViewerSpec
    arguments: tuple[str, ...]
    limits: Limits
    log: logging.Logger
    socket_path: Path
    state: State = State.STOPPED
    message: str = ""
    since: str = ""
    ended: dict[str, str] | None = None
    """How the process last ended unasked: `{message, at}`; it may run again by now."""
    _listener: socket.socket | None = None
    _process: asyncio.subprocess.Process | None = None
    _log_tail: bytes = b""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _failed_at: float = 0.0
    _closed: bool = False

    @property
    def pid(self) -> int | None:
        """The running process, or None."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def would_start(self) -> bool:
        """Whether the next connection starts the process: it doesn't run, and nobody is changing that."""
        return self.pid is None and not self._lock.locked()

    async def settle(self) -> None:
        """Let an end of the process be noticed, so that the state is the process's own."""
        while self.state is State.RUNNING and self.pid is None and not self._closed:
            await asyncio.sleep(0.02)

    def memory_bytes(self) -> int | None:
        """The process's resident memory, or None."""
        if self.pid is None:
            return None
        try:
            return psutil.Process(self.pid).memory_info().rss
        except psutil.Error:
            return None

    # Listening

    def listen(self) -> None:
        """Bind the socket; the first connection starts the process.

        Raises:
            OSError: if the socket can't be bound.
        """
        self._listener = sockets.bind(self.socket_path)
        self._await_connection()

    def _await_connection(self) -> None:
        if self._listener is not None and not self._closed:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._on_connection)

    def _ignore_connections(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())

    def _on_connection(self) -> None:
        self._ignore_connections()
        self._spawn(self._serve_waiting())

    async def _serve_waiting(self) -> None:
        """Start the process for a connection that waits, or tell it why that can't be."""
        async with self._lock:
            if self.state is State.FAILED and time.monotonic() - self._failed_at < RETRY_AFTER_S:
                self._refuse_waiting()
                self._await_connection()
                return
        await self.start()

    def _refuse_waiting(self) -> None:
        """Answer every connection that waits with 503 and the reason.

        Only with the lock, and while no process runs: else a connection could be one that the process is to
        answer. The lock isn't held until they have their answers, since a client may say nothing for long.
        """
        message = self.message or f"{self.spec.title} was stopped."
        while self._listener is not None:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._spawn(_refuse(connection, message))

    # Starting and stopping

    async def start(self) -> bool:
        """Start the process unless it runs; True when it answers, else `message` says why it doesn't."""
        async with self._lock:
            if self._closed or self._listener is None:
                return False
            if self.state is State.RUNNING and self.pid is not None:
                return True
            return await self._start_locked(self._listener)

    async def _start_locked(self, listener: socket.socket) -> bool:
        self._ignore_connections()
        self._set(State.STARTING, "")
        reason = await self._launch(listener)
        if reason is None:
            return True
        self._process = None
        self._fail(reason)
        self._refuse_waiting()
        self._await_connection()
        return False

    async def _launch(self, listener: socket.socket) -> str | None:
        """Start the process and wait until it answers; else end it and return why in a sentence."""
        self._log_tail = b""
        try:
            process = await self._execute(listener)
        except OSError as error:
            return f"{self.spec.title} could not be started: {error.strerror or error}."
        self._process = process
        log = self._spawn(self._read_log(process))
        started = time.monotonic()
        while time.monotonic() - started < self.limits.start_timeout_s:
            if process.returncode is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(log), 1)
                ending = _ending(process.returncode)
                return f"{self.spec.title} ended while starting ({ending}). {self._log_end()}"
            answer = await self._ask(timeout_s=0.5)
            if answer is not None:
                self._set(State.RUNNING, str(answer.get("notice", "")))
                self._spawn(self._await_end(process))
                self._spawn(self._watch(process))
                return None
            await asyncio.sleep(0.05)
        await self._end(process)
        patience = f"{self.limits.start_timeout_s:g} seconds"
        return f"{self.spec.title} did not answer within {patience}. {self._log_end()}"

    async def _execute(self, listener: socket.socket) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", self.spec.module),
            *(
                "--fd",
                str(listener.fileno()),
                "--parent",
                str(os.getpid()),
                "--socket",
                str(self.socket_path),
            ),
            *self.arguments,
            stdin=asyncio.subprocess.PIPE,  # its end tells the process that this one is gone
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=[listener.fileno()],
            env=viewer_environment(),
            cwd="/",
            start_new_session=True,  # a terminal's Ctrl-C is the Jupyter server's to handle
        )

    async def stop(self) -> None:
        """End the process; requests it works on get some seconds to finish. The next use starts it again."""
        async with self._lock:
            await self._stop_locked()
            self._refuse_waiting()
            self._await_connection()

    async def restart(self) -> bool:
        """Stop and start; requests that come meanwhile wait."""
        async with self._lock:
            if self._closed or self._listener is None:
                return False
            await self._stop_locked()
            return await self._start_locked(self._listener)

    async def _stop_locked(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await self._end(process)
        self._set(State.STOPPED, "")

    async def close(self) -> None:
        """End the process for good and remove the socket."""
        self._closed = True
        self._ignore_connections()
        if self._process is not None:  # one that is just starting would else keep the lock
            with suppress(ProcessLookupError):
                self._process.terminate()
        async with self._lock:
            await self._stop_locked()
        for task in list(self._tasks):
            task.cancel()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        sockets.remove(self.socket_path)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(_ended(process, 0.02), STOP_TIMEOUT_S)
        except TimeoutError:
            self.log.warning("%s did not end when asked to; killing it.", self.spec.title)
        # The process leads its own session: whatever it has started ends with it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await _ended(process, 0.02)

    # Watching

    async def _await_end(self, process: asyncio.subprocess.Process) -> None:
        status = await _ended(process, 0.05)
        if self._process is not process:  # it was stopped on purpose
            return
        self._process = None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        log_end = "" if status == -signal.SIGKILL else f" {self._log_end()}"
        self._fail(f"{_told(self.spec.title, status)} It starts again at the next use.{log_end}")
        self.ended = {"message": self.message, "at": datetime.now(UTC).isoformat()}
        self._failed_at = 0.0  # it did work: try again at once
        self._await_connection()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Restart the process when it has grown over the limit and nobody waits for it."""
        limit = self.limits.memory_limit_bytes
        while limit and self._process is process:
            await asyncio.sleep(WATCH_INTERVAL_S)
            held = self.memory_bytes()
            if held is None or held <= limit or self._process is not process:
                continue
            answer = await self._ask(timeout_s=2)
            if answer is not None and _may_restart(answer):
                message = "%s holds %d MiB, over its limit of %d MiB: restarting it."
                self.log.info(message, self.spec.title, held >> 20, limit >> 20)
                self._spawn(self.restart())
                return

    async def _ask(self, timeout_s: float) -> dict[str, Any] | None:
        """What the process says of itself, `{busy, idle_s, served, notice}`; None if it doesn't in time."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_unix_connection(str(self.socket_path))
                try:
                    writer.write(f"GET {READY_PATH} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                    answer = await reader.read()
                finally:
                    writer.close()
            head, _, body = answer.partition(b"\r\n\r\n")
            if head.split()[1:2] != [b"200"]:
                return None
            data = json.loads(body)
        except (OSError, TimeoutError, ValueError):
            return None
        return data if isinstance(data, dict) and "busy" in data else None

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(4096):
            self._log_tail = (self._log_tail + chunk)[-LOG_TAIL_BYTES:]
            self.log.debug("%s: %s", self.spec.name, chunk.decode("utf-8", "replace").rstrip())

    def log_tail(self) -> str:
        """The end of what the process wrote."""
        return self._log_tail.decode("utf-8", "replace")

    def _log_end(self) -> str:
        lines = [line.strip() for line in self.log_tail().splitlines() if line.strip()]
        return "Its log ends: " + " / ".join(lines[-4:]) if lines else "It wrote nothing."

    # State

    def _set(self, state: State, message: str) -> None:
        self.state = state
        self.message = message
        self.since = datetime.now(UTC).isoformat(timespec="seconds")

    def _fail(self, message: str) -> None:
        self.log.warning("%s", message)
        self._failed_at = time.monotonic()
        self._set(State.FAILED, message)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _refuse(connection: socket.socket, message: str) -> None:
    """Answer one connection with 503 and close it, whatever becomes of its client."""
    loop = asyncio.get_running_loop()
    body = json.dumps({"message": message}).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode()
    with connection, suppress(OSError, TimeoutError):
        connection.setblocking(False)
        async with asyncio.timeout(REFUSAL_TIMEOUT_S):
            # Closing a socket with an unread request would reset it before the answer is read.
            await loop.sock_recv(connection, 65536)
            await loop.sock_sendall(connection, head + body)


async def _ended(process: asyncio.subprocess.Process, interval_s: float) -> int:
    """Wait for the process's end and return its status.

    Process.wait() waits until its output is closed as well, which whatever it has started may hold open.
    """
    while process.returncode is None:
        await asyncio.sleep(interval_s)
    return process.returncode


def _may_restart(answer: dict[str, Any]) -> bool:
    """Whether nobody waits for an answer; one that has served nothing yet would be no smaller afterwards."""
    return bool(answer["served"]) and not answer["busy"] and answer["idle_s"] >= IDLE_BEFORE_RESTART_S


def _told(title: str, status: int) -> str:
    """Say how a viewer ended that had worked."""
    if status == -signal.SIGKILL:
        return f"{title} was killed (SIGKILL), most likely since the memory did not suffice."
    return f"{title} ended by itself ({_ending(status)})."


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
