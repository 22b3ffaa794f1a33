"""Captures side by side, and a cell's history.

Comparing reads traces and needs numpy, which the server does without: a short-lived process of the same
environment does it, as `jaxprof compare --json` in a terminal.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.captures import is_id
from jupyterlab_jaxprof.captures.history import history
from jupyterlab_jaxprof.server.attached import attached
from jupyterlab_jaxprof.server.handlers import CAPTURE_ID, ApiHandler, Problem
from jupyterlab_jaxprof.server.viewers.child_environment import viewer_environment

MOST = 12
_MOST_AT_A_TIME = 2
_ROOM = asyncio.Semaphore(_MOST_AT_A_TIME)


class HistoryHandler(ApiHandler):
    """`GET captures/<id>/history`: the captures of the same cell."""

    @web.authenticated
    @authorized
    async def get(self, capture_id: str) -> None:
        """Answer with each capture, newest first, and with what of it is comparable."""
        found = await self.off_loop(history, self.store, capture_id)
        self.answer(found.to_json())


class CompareHandler(ApiHandler):
    """`GET compare?id=&id=...`: captures side by side, each against the first."""

    _task: asyncio.Task[bytes] | None = None

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with what they share; 404 or 409 where one of them is not there or can't be read."""
        ids = self.get_query_arguments("id")
        if not 2 <= len(ids) <= MOST or len(set(ids)) < len(ids) or not all(map(is_id, ids)):
            raise Problem(
                400, f"'id' must be given from 2 to {MOST} times: the captures' identifiers, each once."
            )
        for capture_id in ids:
            await self.off_loop(self.store.get, capture_id)
        self._task = asyncio.ensure_future(self._compare(ids))
        try:
            answer = await self._task
        except asyncio.CancelledError:  # nobody waits for it any more
            return
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "application/json")
        self.finish(answer)

    def on_connection_close(self) -> None:
        """End what nobody waits for."""
        super().on_connection_close()
        if self._task is not None:
            self._task.cancel()

    async def _compare(self, ids: list[str]) -> bytes:
        """Give the JSON text; raises Problem with the sentence of the process, or of ours."""
        try:
            async with _ROOM:
                status, out, err = await self._run(ids)
        except OSError as error:
            raise Problem(
                500, f"Comparing failed: no process could be started ({error.strerror or error})."
            ) from error
        if status != 0:
            raise Problem(500, self._sentence(err.decode("utf-8", "replace"), status))
        try:
            json.loads(out)
        except ValueError:
            self.log.error("jaxprof compare wrote no JSON: %r", out[:500])
            raise Problem(
                500, "Comparing failed: what it wrote is no JSON. The server's log has it."
            ) from None
        return out

    async def _run(self, ids: list[str]) -> tuple[int | None, bytes, bytes]:
        """Give the status and what it wrote; it is ended when that takes too long, or nobody waits."""
        limit_s = self.jaxprof.compare_timeout_s
        environment = viewer_environment() | {"JAXPROF_DIR": str(self.store.root)}
        environment |= {"PYTHONIOENCODING": "utf-8"}
        async with attached("compare", "--json", *ids, environment=environment) as process:
            try:
                out, err = await asyncio.wait_for(process.communicate(), limit_s)
            except TimeoutError:
                raise Problem(
                    500,
                    f"Comparing took longer than {limit_s:.0f} s and was stopped: a trace among these may be "
                    "very large. `jaxprof compare` in a terminal has no such limit.",
                ) from None
        return process.returncode, out, err

    def _sentence(self, err: str, status: int | None) -> str:
        """Give the program's own sentence; what is no sentence goes to the log."""
        last = err.strip().splitlines()[-1] if err.strip() else ""
        told = last.removeprefix("jaxprof compare: ")
        if told != last:
            return told
        self.log.error("jaxprof compare ended with %s:\n%s", status, err)
        how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
        return f"Comparing failed: its process ended with {how}. The server's log says more."


ROUTES: list[tuple[str, Any]] = [
    (r"jaxprof/api/compare", CompareHandler),
    (rf"jaxprof/api/captures/{CAPTURE_ID}/history", HistoryHandler),
]
