"""The routes that carry the viewers' traffic: jupyter-server-proxy's, behind Jupyter's authorizer.

jupyter-server-proxy asks for a login only, whatever the authorizer says. So its handler of an entry is taken
here, given the authorizer's check, and registered by this package instead of as an entry point.

The entries have no command: this package's server extension starts the processes, since jupyter-server-proxy
can neither stop nor restart one, and leaves them behind when the server is killed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server_proxy.config import ServerProcess
from jupyter_server_proxy.handlers import AddSlashHandler

from jupyterlab_jaxprof.server.handlers import RESOURCE
from jupyterlab_jaxprof.server.viewers import sockets

if TYPE_CHECKING:
    from jupyterlab_jaxprof.server.app import JaxProfApp

# Where each viewer is, below base_url.
PREFIXES = {"xprof": "xprof", "tensorboard": "jaxprof-tensorboard"}

# TensorBoard asks long questions by POST; they change nothing.
METHODS = {"xprof": ("GET", "HEAD"), "tensorboard": ("GET", "HEAD", "POST")}

# What a viewer's page asks for when the user looks at something. An open tab that nobody touches asks for
# none of it (TensorBoard's asks for its runs and scalars by itself), so a hub may still end an idle server.
USED = re.compile(r"/data/plugin/profile/data(_csv)?$")


def is_use(handler: JupyterHandler) -> bool:
    """Whether a request tells of somebody who uses the viewer."""
    return USED.search(handler.request.path) is not None


class AuthorizedHandler(JupyterHandler):
    """Asks Jupyter's authorizer before anything is passed on: `read`, `execute` where it starts a viewer."""

    viewer = ""

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Let a request by if the authorizer allows it."""
        await super().prepare(*args, **kwargs)
        user = self.current_user
        if self._finished or not user:  # sent to the login, now or by the method itself
            return
        refusal = self._refusal()
        if refusal is not None:
            self.set_status(refusal[0])
            self.finish({"message": refusal[1]})
            return
        app: JaxProfApp = self.settings["jaxprof"]
        process = app.viewers.process(self.viewer)
        action = "execute" if process is not None and process.would_start else "read"
        if not await ensure_async(self.authorizer.is_authorized(self, user, action, RESOURCE)):
            self.set_status(403)
            done = "read captures" if action == "read" else "start their viewers"
            self.finish({"message": f"This Jupyter server doesn't allow you to {done}."})

    def _refusal(self) -> tuple[int, str] | None:
        """Say, with a status, why no viewer is to hear of this request: it may start one."""
        headers = self.request.headers
        if self.request.method not in METHODS[self.viewer]:
            return 405, "This address is for reading only."
        if headers.get("Upgrade", "").lower() == "websocket":
            return 404, "The viewers have no web sockets."
        # Proxied addresses need no XSRF token. A page that is opened, or framed, is no request of another's.
        elsewhere = headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        navigates = headers.get("Sec-Fetch-Mode") == "navigate" and self.request.method != "POST"
        allowed = "Origin" in headers and JupyterHandler.check_origin(self)
        if (elsewhere and not navigates and not allowed) or ("Origin" in headers and not allowed):
            return 403, "A page of another site has asked for this, which this Jupyter server doesn't allow."
        return None


def _routes(viewer: str, prefix: str) -> list[tuple[Any, ...]]:
    entry = ServerProcess(
        name=prefix,
        unix_socket=str(sockets.path(viewer)),
        timeout=30,
        update_last_activity=is_use,
        # The viewers have no business with Jupyter's credentials.
        request_headers_override={"Cookie": "", "Authorization": "", "X-XSRFToken": ""},
    )
    proxy, arguments = entry.make_proxy_handler()
    assert proxy is not None
    attributes = {"viewer": viewer}
    return [
        (rf"{prefix}/(.*)", type("ViewerProxyHandler", (AuthorizedHandler, proxy), attributes), arguments),
        (prefix, type("ViewerSlashHandler", (AuthorizedHandler, AddSlashHandler), attributes)),
    ]


def routes() -> list[tuple[Any, ...]]:
    """The routes `<base_url>xprof/` and `<base_url>jaxprof-tensorboard/`, with their handlers."""
    return [route for viewer, prefix in PREFIXES.items() for route in _routes(viewer, prefix)]
