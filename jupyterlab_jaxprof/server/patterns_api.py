"""The documentation's pages about findings over REST: part of the package, so no network is needed."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.environment.documentation import finding_page
from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem


class PatternHandler(ApiHandler):
    """`GET patterns/<name>`: what a finding means."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Answer with the page's Markdown."""
        page = await self.off_loop(finding_page, name)
        if page is None:
            raise Problem(404, f"There is no page about {name} in this installation of jupyterlab-jaxprof.")
        self.answer({"markdown": page})


ROUTES = [(r"jaxprof/api/patterns/([a-z0-9-]{1,80})", PatternHandler)]
