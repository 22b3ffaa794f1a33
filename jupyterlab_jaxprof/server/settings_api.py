"""The user's settings over REST: the front end writes them here, and the magics read them from the store."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.captures.settings import Settings, read_settings, write_settings
from jupyterlab_jaxprof.server.handlers import ApiHandler


class SettingsHandler(ApiHandler):
    """`settings`: what the store's `settings.json` says."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the settings, and with what is wrong with their file."""
        self.answer(_shown(await self.off_loop(read_settings, self.store.root)))

    @web.authenticated
    @authorized
    async def put(self) -> None:
        """Put the keys of the body in place of those in the file; all others stay."""
        changes = self.json_body()
        self.answer(_shown(await self.off_loop(write_settings, self.store.root, changes)))


def _shown(settings: Settings) -> dict[str, Any]:
    return {"settings": dict(settings.values), "problem": settings.problem or None}


ROUTES = [(r"jaxprof/api/settings", SettingsHandler)]
