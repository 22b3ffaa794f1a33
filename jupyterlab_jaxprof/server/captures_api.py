"""The captures over REST: list, one, rename, notes, pin, delete; the status and the environment report."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof import environment
from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.server.handlers import CAPTURE_ID, ApiHandler, UnknownRouteHandler
from jupyterlab_jaxprof.server.viewers.registry import SPECS

API_VERSION = 1
MAX_PAGE = 500
MAX_OFFSET = 10**9


class StatusHandler(ApiHandler):
    """`GET status`: who answers here, and whether it can work."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the version, the store's state and the viewers'."""
        problem = await self.off_loop(self.store.problem)
        viewers = self.jaxprof.viewers
        self.answer(
            {
                "version": environment.own_version() or "development",
                "api": API_VERSION,
                "store": {"path": str(self.store.root), "writable": problem is None, "problem": problem},
                "viewers": {name: await viewers.describe(name) for name in SPECS},
            }
        )


class CapturesHandler(ApiHandler):
    """`GET captures`: one page of the list, newest first."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the rows that match, and what they and all take."""
        ids = self.get_query_argument("ids", None)
        page = await self.off_loop(
            self.store.list,
            offset=self.integer("offset", 0, low=0, high=MAX_OFFSET),
            limit=self.integer("limit", 50, low=0, high=MAX_PAGE),
            kind=self.get_query_argument("kind", None),
            notebook=self.get_query_argument("notebook", None),
            text=self.get_query_argument("q", None),
            ids=None if ids is None else frozenset(ids.split(",")),
        )
        self.answer(page.to_json())


class CaptureHandler(ApiHandler):
    """`captures/<id>`: one capture's record."""

    @web.authenticated
    @authorized
    async def get(self, capture_id: str) -> None:
        """Answer with the whole record."""
        self.answer(await self.off_loop(_whole, self.store, capture_id))

    @web.authenticated
    @authorized
    async def patch(self, capture_id: str) -> None:
        """Change the name, the notes or the pin."""
        changes = self.json_object({"name": str, "notes": str, "pinned": bool})
        await self.off_loop(self.store.update, capture_id, **changes)
        self.answer(await self.off_loop(_whole, self.store, capture_id))

    @web.authenticated
    @authorized
    async def delete(self, capture_id: str) -> None:
        """Delete the capture with all its files."""
        await self.off_loop(self.store.delete, capture_id)
        self.set_status(204)
        self.finish()


class EnvironmentHandler(ApiHandler):
    """`GET environment`: versions, tools and variables of the server's environment."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the report."""
        self.answer(await self.off_loop(environment.report))


def _whole(store: Store, capture_id: str) -> dict[str, Any]:
    record = store.get(capture_id)
    return {
        **record.to_json(),
        "size_bytes": record.size_bytes,
        "disk_bytes": store.disk_bytes(capture_id),
        "directory": str(store.directory(capture_id)),
    }


ROUTES = [
    (r"jaxprof/api/status", StatusHandler),
    (r"jaxprof/api/captures", CapturesHandler),
    (rf"jaxprof/api/captures/{CAPTURE_ID}", CaptureHandler),
    (r"jaxprof/api/environment", EnvironmentHandler),
]
FALLBACK_ROUTES = [(r"jaxprof(?:/.*)?", UnknownRouteHandler)]
