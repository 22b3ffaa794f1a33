"""The viewers over REST: what XProf and TensorBoard do, and start, stop or restart them."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem

ACTIONS = ("start", "stop", "restart")


class ViewerHandler(ApiHandler):
    """`viewers/<name>`."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Answer with the viewer's state."""
        self.answer(await self.jaxprof.viewers.describe(name))

    @web.authenticated
    @authorized(action="execute")
    async def post(self, name: str) -> None:
        """Start, stop or restart; answers when the viewer is ready, has failed, or is gone."""
        action = self.json_object({"action": str}, required=True)["action"]
        if action not in ACTIONS:
            raise Problem(400, f"'action' must be one of {', '.join(ACTIONS)}.")
        viewers = self.jaxprof.viewers
        process = viewers.process(name)
        reason = await viewers.problem(name)
        if process is None or (reason is not None and action != "stop"):
            raise Problem(409, reason or f"{name} can't be started here.")
        if action != "stop":
            await self.off_loop(_make_logdir, self.store)
        await getattr(process, action)()
        self.answer(await viewers.describe(name))


def _make_logdir(store: Store) -> None:
    """Make the directory that the viewers show; one that is there may be read-only."""
    if not store.captures_dir.is_dir():
        store.prepare()


ROUTES = [(r"jaxprof/api/viewers/(xprof|tensorboard)", ViewerHandler)]
