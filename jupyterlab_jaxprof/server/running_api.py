"""What runs now over REST: measurements in any kernel, and the viewers; and what one kernel uses."""

from __future__ import annotations

import time
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem
from jupyterlab_jaxprof.server.viewers.registry import SPECS


class RunningHandler(ApiHandler):
    """`GET running`: measurements and viewers."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with what runs; of a kernel that this server can't interrupt the identifier is empty."""
        found = await self.off_loop(self.store.running)
        now_s = time.time()
        viewers = self.jaxprof.viewers
        rows = [one.to_json(now_s) for one in found]
        for row in rows:
            if row["kernel_id"] not in self.kernel_manager:
                row["kernel_id"] = ""
        self.answer({"running": rows, "viewers": [await viewers.describe(name) for name in SPECS]})


class UsageHandler(ApiHandler):
    """`GET kernels/<id>/usage`: the memory and the busy share of one kernel; the kernel isn't asked."""

    @web.authenticated
    @authorized
    async def get(self, kernel_id: str) -> None:
        """Answer with what it uses, or that nobody looks because something is being measured."""
        if kernel_id not in self.kernel_manager:
            raise Problem(404, "This kernel does not run on this server.")
        if await self.off_loop(self.store.running):
            self.answer({"paused": True})
            return
        pid = _pid(self.kernel_manager.get_kernel(kernel_id))
        if pid is None:
            raise Problem(409, "This kernel runs elsewhere, where its memory can't be looked at.")
        self.answer({"paused": False, **await self.off_loop(self.jaxprof.usage.of, pid)})


def _pid(manager: Any) -> int | None:
    """The process of a kernel that runs on this machine."""
    pid = getattr(getattr(manager, "provisioner", None), "pid", None)
    return pid if isinstance(pid, int) else None


ROUTES = [
    (r"jaxprof/api/running", RunningHandler),
    (r"jaxprof/api/kernels/([0-9A-Za-z-]{1,64})/usage", UsageHandler),
]
