"""One real Jupyter server, shared by the tests that leave its viewers and settings as they are."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Record, Status, Store
from tests.support.servers import DATA, Server, running_server

Publish = Callable[..., Record]
TRACE = "no_steps"


def publish_capture(
    store: Path, name: str = "step", files: Mapping[str, bytes] | None = None, **fields: object
) -> Record:
    """Publish one capture; without `files` it holds a real trace of an H200."""
    with Store(store).begin("trace", name) as draft:
        if files is None:
            trace = lzma.decompress((DATA / f"{TRACE}.xplane.pb.xz").read_bytes())
            files = {f"plugins/profile/{draft.session}/vm.xplane.pb": trace}
        for path, content in files.items():
            place = draft.directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return draft.publish(status=Status.OK, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server("/user/me@host.org/") as running:
        yield running


@pytest.fixture
def publish(server: Server) -> Publish:
    return lambda *args, **fields: publish_capture(server.store, *args, **fields)
