"""The documentation's pages about findings over REST: part of the package, so no network is needed."""

from __future__ import annotations

import re
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem

_PACKAGE = Path(__file__).parents[1]
#: In an installed package, and in a checkout.
_PLACES = (_PACKAGE / "docs" / "patterns", _PACKAGE.parent / "docs" / "patterns")
#: A link to another page leads nowhere here.
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)]*)\)")


class PatternHandler(ApiHandler):
    """`GET patterns/<name>`: what a finding means."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Answer with the page's Markdown."""
        self.answer({"markdown": await self.off_loop(_page, name)})


def _page(name: str) -> str:
    for place in _PLACES:
        path = place / f"{name}.md"
        if path.is_file():
            return _LINK.sub(r"\1", path.read_text("utf-8"))
    raise Problem(404, f"There is no page about {name} in this installation of jupyterlab-jaxprof.")


ROUTES = [(r"jaxprof/api/patterns/([a-z0-9-]{1,80})", PatternHandler)]
