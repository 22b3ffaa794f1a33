"""Our own page around each viewer, and its script and style.

`<base_url>jaxprof/xprof?run=&tool=&host=` starts the viewer, says why it failed if it does, and shows it in
a frame. XProf rewrites the address of whatever page frames it; this page takes that upon itself, so that
JupyterLab's own address and history stay as they are.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import AuthenticatedFileHandler, JupyterHandler
from tornado import web

from jupyterlab_jaxprof.server.handlers import RESOURCE
from jupyterlab_jaxprof.server.viewers.registry import SPECS

if TYPE_CHECKING:
    from jupyterlab_jaxprof.server.app import JaxProfApp

STATIC = Path(__file__).parent / "static"

# Nothing comes from elsewhere, and only this server's own pages may frame it, whatever the server's settings
# say: a hub forbids frames altogether, which would leave the tab in JupyterLab grey.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "img-src 'self' data:",
        "frame-ancestors 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{base_url}jaxprof/static/viewer.css">
<script type="module" src="{base_url}jaxprof/static/viewer.js"></script>
</head>
<body data-base-url="{base_url}" data-viewer="{viewer}" data-title="{title}" data-xsrf="{xsrf}"
  data-external-scripts="{external_scripts}">
<main id="status">
<p id="message" role="status"></p>
<p id="actions" hidden>
<button id="retry" type="button">Try again</button>
<a id="plain" target="_blank"></a>
</p>
</main>
<aside id="notice" aria-label="Notice" hidden>
<div id="notice-text"></div>
<button id="dismiss" type="button">Don’t show again</button>
</aside>
<nav id="tools" aria-label="Tools" hidden></nav>
<section id="tables" aria-label="Figures" tabindex="-1" hidden></section>
<iframe id="viewer" title="{title}" allow="clipboard-write; fullscreen" hidden></iframe>
<noscript><p>{title} needs JavaScript.</p></noscript>
</body>
</html>
"""


class PageHandler(JupyterHandler):
    """`jaxprof/xprof` and `jaxprof/tensorboard`; the page reads run, tool and host from its own address."""

    auth_resource = RESOURCE

    @property
    def content_security_policy(self) -> str:
        """The policy of this page, instead of the server's."""
        return CONTENT_SECURITY_POLICY

    @web.authenticated
    @authorized
    def get(self, viewer: str) -> None:
        """Answer with the page."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "same-origin")
        app: JaxProfApp = self.settings["jaxprof"]
        values = {
            "base_url": self.base_url,
            "viewer": viewer,
            "title": SPECS[viewer].title,
            "xsrf": self.xsrf_token.decode(),
            "external_scripts": "yes" if app.external_scripts else "no",
        }
        self.finish(PAGE.format_map({key: escape(value) for key, value in values.items()}))


class AssetHandler(AuthenticatedFileHandler):
    """The page's scripts and style; Jupyter's login applies to them as well."""

    auth_resource = RESOURCE

    def check_xsrf_cookie(self) -> None:
        """Nothing secret is in them."""

    def set_extra_headers(self, path: str) -> None:
        """Let the browser ask whether they have changed: the scripts import each other by name."""
        self.set_header("Cache-Control", "no-cache")


ROUTES: list[tuple[Any, ...]] = [
    (r"jaxprof/(xprof|tensorboard)", PageHandler),
    (r"jaxprof/static/([a-z]+\.(?:js|css))", AssetHandler, {"path": str(STATIC)}),
]
