"""One real Jupyter server, shared by the tests that leave its viewers and settings as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from werkzeug.test import Client

from jupyterlab_jaxprof.captures import Record, Status, Store
from jupyterlab_jaxprof.server.viewers import xprof_app
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules
from tests.support.captures import content
from tests.support.servers import Server, running_server

Publish = Callable[..., Record]
TRACE = "no_steps"


def publish_capture(
    store: Path, name: str = "step", files: Mapping[str, bytes] | None = None, **fields: object
) -> Record:
    """Publish one capture; without `files` it holds a real trace of an H200."""
    with Store(store).begin("trace", name) as draft:
        if files is None:
            trace = content(f"{TRACE}.xplane.pb")
            files = {f"plugins/profile/{draft.session}/vm.xplane.pb": trace}
        for path, data in files.items():
            place = draft.directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return draft.publish(status=Status.OK, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with running_server("/user/me@host.org/") as running:
        yield running


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Iterator[Server]:
    """The shared server; its store is left empty to the next module, whichever that is."""
    yield shared_server
    store = Store(shared_server.store)
    for row in store.list(limit=1_000_000).rows:
        store.delete(row.id)


@pytest.fixture
def publish(server: Server) -> Publish:
    return lambda *args, **fields: publish_capture(server.store, *args, **fields)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run(store: Path) -> str:
    return publish_capture(store).xprof_run or ""


@pytest.fixture(scope="module")
def client(store: Path, run: str) -> Client:
    """The real XProf behind its gate."""
    logdir = store / "captures"
    application, notice = xprof_app.build(logdir)
    assert notice == ""
    return Client(Gate(application, XProfRules(logdir)))
