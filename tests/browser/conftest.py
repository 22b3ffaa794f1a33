"""One Chromium for all browser tests, and one server for each base URL.

Both end with this folder: the event loop of Playwright runs as long as its browser, in the way of tests that
start one of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Lab, chromium, lab_page, set_theme
from tests.support.servers import Server, running_server

MAIN_URL = "/user/me@host.org/"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def server_at() -> Iterator[Callable[[str], Server]]:
    """Give the JupyterLab server of a base URL, started when first asked for."""
    servers: dict[str, Server] = {}
    with ExitStack() as stack:

        def get(base_url: str) -> Server:
            if base_url not in servers:
                servers[base_url] = stack.enter_context(running_server(base_url, lab=True))
                set_theme(servers[base_url], "JupyterLab Light")
            return servers[base_url]

        yield get


@pytest.fixture
def server(server_at: Callable[[str], Server]) -> Server:
    """The server of all tests that need no base URL in particular, in the theme that they begin with."""
    server = server_at(MAIN_URL)
    set_theme(server, "JupyterLab Light")  # whatever an earlier test has left, or was ended in
    return server


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[Lab]:
    with lab_page(browser, server) as lab:
        yield lab
