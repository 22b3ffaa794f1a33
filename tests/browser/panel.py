"""What tests of the sidebar share: a store that is theirs, small captures, the panel in sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.record import Status
from tests.support.browser import Lab
from tests.support.servers import Server


def add(store: Store, name: str, **fields: Any) -> str:
    """Publish a small capture; gives its identifier."""
    with store.begin(fields.pop("kind", "trace"), name) as capture:
        directory = capture.directory / "plugins/profile" / capture.session
        directory.mkdir(parents=True)
        (directory / "vm.xplane.pb").write_bytes(b"x" * 2000)
        summary = {"headline": {"label": "median step", "value": 12.345, "unit": "ms"}, "wall_ms": 40.0}
        return capture.publish(**{"status": Status.OK, "summary": summary, **fields}).id


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """The server's store, empty before and after."""
    store = Store(server.store)
    _clear(store)
    yield store
    _clear(store)


def _clear(store: Store) -> None:
    while ids := [row.id for row in store.list(limit=500).rows]:
        for capture_id in ids:
            store.delete(capture_id)


def open_panel(lab: Lab) -> None:
    lab.go()
    lab.show_panel()
