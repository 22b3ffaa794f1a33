"""The viewers over REST: what XProf and TensorBoard do, and start, stop or restart them."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem

ACTIONS = ("start", "stop", "restart")


class ViewerHandler(ApiHandler):
    """`viewers/<name>`."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Answer with the viewer's state."""
        self.answer(self.jaxprof.viewers.describe(name))

    @web.authenticated
    @authorized(action="execute")
    async def post(self, name: str) -> None:
        """Start, stop or restart; answers when the viewer is ready, has failed, or is gone."""
        action = self.json_object({"action": str}, required=True)["action"]
        if action not in ACTIONS:
            raise Problem(400, f"'action' must be one of {', '.join(ACTIONS)}.")
        viewers = self.jaxprof.viewers
        process = viewers.process(name)
        reason = viewers.problem(name)
        if process is None or (reason is not None and action != "stop"):
            raise Problem(409, reason or f"{name} can't be started here.")
        if action != "stop":
            await self.off_loop(self.store.captures_dir.mkdir, 0o700, parents=True, exist_ok=True)
        await getattr(process, action)()
        self.answer(viewers.describe(name))


ROUTES = [(r"jaxprof/api/viewers/(xprof|tensorboard)", ViewerHandler)]
