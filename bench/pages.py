"""Pages of a JupyterLab whose application the benchmarks' scripts may call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.browser import set_theme
from tests.support.servers import Server, running_server

EXPOSED = "--LabApp.expose_app_in_browser=True"


@contextmanager
def lab_server(*arguments: str) -> Iterator[Server]:
    """A JupyterLab that asks nothing and fetches no news."""
    with running_server("/user/me/", lab=True, arguments=[EXPOSED, *arguments]) as server:
        set_theme(server, "JupyterLab Light")
        yield server
