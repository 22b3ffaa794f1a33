"""Files on their way into the store: uploaded piece by piece, then read by a short-lived process.

The Jupyter server itself reads no trace: that takes gigabytes of memory and minutes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Store, Workspace
from jupyterlab_jaxprof.server.attached import attached
from jupyterlab_jaxprof.server.viewers.child_environment import viewer_environment

MOST_AT_ONCE = 16
FORGET_AFTER_S = 600.0
"""So long may an upload rest, or an end go unread."""
_COMMAND = "jaxprof import: "


class State(StrEnum):
    """How far an import is."""

    UPLOADING = "uploading"
    READING = "reading"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Upload:
    """One file that the browser sends: where it goes below the workspace, and its size."""

    path: str
    size_bytes: int
    modified_s: float


@dataclass
class Import:
    """One import. `message` says why it failed; `existing` is the capture that the store had already."""

    title: str
    uploads: Sequence[Upload] = ()
    path: Path | None = None
    workspace: Workspace | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = State.UPLOADING
    message: str = ""
    capture_id: str | None = None
    existing: str | None = None
    received: dict[int, int] = field(default_factory=lambda: {})
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    def to_json(self) -> dict[str, Any]:
        """Give it as the REST interface does."""
        return {
            "id": self.id,
            "title": self.title,
            "state": str(self.state),
            "message": self.message,
            "capture": self.capture_id,
            "existing": self.existing,
        }

    @property
    def missing(self) -> list[str]:
        """The files that have not arrived whole."""
        return [
            upload.path
            for index, upload in enumerate(self.uploads)
            if self.received.get(index, 0) != upload.size_bytes
        ]

    def place_of(self, index: int) -> Path:
        """Where a file that is uploaded lies."""
        assert self.workspace is not None
        return self.workspace.files / self.uploads[index].path

    def write(self, index: int, offset: int, piece: bytes | bytearray) -> None:
        """Put the next piece of a file into its place. Raises OSError."""
        place = self.place_of(index)
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            written, whole = 0, memoryview(piece)
            while written < len(piece):
                written += os.pwrite(descriptor, whole[written:], offset + written)
        finally:
            os.close(descriptor)
        self.received[index] = offset + len(piece)

    def source(self) -> Path:
        """What is to be read: the file on this machine, the one that was uploaded, or their directory."""
        if self.path is not None:
            return self.path
        assert self.workspace is not None
        for index, upload in enumerate(self.uploads):
            place = self.place_of(index)
            if upload.size_bytes == 0:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
            if upload.modified_s > 0:
                with suppress(OSError, OverflowError):
                    os.utime(place, (upload.modified_s, upload.modified_s))
        if len(self.uploads) == 1:
            return self.place_of(0)
        tops = {upload.path.partition("/")[0] for upload in self.uploads}
        return self.workspace.files / tops.pop() if len(tops) == 1 else self.workspace.files


class Imports:
    """All imports of one Jupyter server; the newest are remembered for a while after their end."""

    def __init__(self, store: Store, log: logging.Logger) -> None:
        self._store = store
        self._log = log
        self._imports: dict[str, Import] = {}

    @property
    def at_work(self) -> int:
        """How many haven't ended."""
        return sum(one.state in (State.UPLOADING, State.READING) for one in self._imports.values())

    def get(self, import_id: str) -> Import | None:
        """Give an import by its identifier."""
        return self._imports.get(import_id)

    def add(self, one: Import) -> None:
        """Remember an import."""
        self._imports[one.id] = one
        self.touch(one)

    def touch(self, one: Import) -> None:
        """Let it rest for another while before it is forgotten."""
        if one.timer is not None:
            one.timer.cancel()
        loop = asyncio.get_running_loop()
        one.timer = loop.call_later(FORGET_AFTER_S, lambda: loop.create_task(self._forget(one)))

    async def _forget(self, one: Import) -> None:
        if one.state is State.READING:
            self.touch(one)
        else:
            await self.drop(one)

    def read(self, one: Import) -> None:
        """Let a process read the files and make the capture."""
        one.state = State.READING
        one.task = asyncio.get_running_loop().create_task(self._read(one))

    async def drop(self, one: Import) -> None:
        """End it, whatever it does, and leave nothing of it but a capture that is there already."""
        self._imports.pop(one.id, None)
        if one.timer is not None:
            one.timer.cancel()
        if one.task is not None and not one.task.done():
            one.task.cancel()
            with suppress(asyncio.CancelledError):
                await one.task
        await self._clear(one)

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(self.drop(one) for one in list(self._imports.values())))

    async def _read(self, one: Import) -> None:
        try:
            source = await asyncio.to_thread(one.source)
            options = ["--json", *(["--move"] if one.workspace is not None else [])]
            status, out, err = await self._run([*options, "--", str(source)])
            self._conclude(one, status, out, err)
        except OSError as error:
            one.state, one.message = State.FAILED, f"It can't be read: {error.strerror or error}."
        finally:
            await self._clear(one)
            self.touch(one)

    async def _run(self, arguments: Sequence[str]) -> tuple[int, bytes, bytes]:
        environment = viewer_environment() | {"JAXPROF_DIR": str(self._store.root)}
        async with attached("import", *arguments, environment=environment) as process:
            out, err = await process.communicate()
        return process.returncode or 0, out, err

    def _conclude(self, one: Import, status: int, out: bytes, err: bytes) -> None:
        try:
            answer: Any = json.loads(out)
        except ValueError:
            answer = {}
        if status == 0 and isinstance(answer.get("id"), str):
            one.state, one.capture_id = State.DONE, answer["id"]
            return
        said = err.decode("utf-8", "replace").strip()
        self._log.info("The import of %s ended with %d: %s", one.title, status, said)
        one.state, one.existing = State.FAILED, answer.get("existing")
        one.message = answer.get("message") or _reason(status, said)

    async def _clear(self, one: Import) -> None:
        workspace, one.workspace = one.workspace, None
        if workspace is not None:
            await asyncio.to_thread(workspace.close)


def _reason(status: int, said: str) -> str:
    if status in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return (
            "The process that read it was killed, most likely since the memory did not suffice. Record fewer "
            "steps, or read it on a machine with more memory."
        )
    last = said.splitlines()[-1] if said else f"The process that read it ended with {status}."
    return last.removeprefix(_COMMAND)
