from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Store
from tests.support.captures import unpacked_to
from tests.support.findings import finding, note, summary


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, which the process under test takes for its own."""
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    monkeypatch.setenv("JAXPROF_SIZE_LIMIT", "")
    return Store.default()


def add_trace(store: Store, name: str, trace: str) -> str:
    """Put a real trace into the store that was not diagnosed when it was taken; gives its identifier."""
    with store.begin("trace", name) as draft:
        unpacked_to(draft.directory / "plugins" / "profile" / draft.session, f"{trace}.xplane.pb")
        draft.publish(status="ok", notices=["A notice of its own."])
        return draft.id


def add_diagnosed(store: Store, name: str, **changes: object) -> str:
    """Put a record with findings into the store, without any file."""
    with store.begin("trace", name) as draft:
        draft.publish(status="ok", summary=summary() | changes, findings=[finding(), note()])
        return draft.id


def add_timing(store: Store, name: str) -> str:
    with store.begin("time", name) as draft:
        draft.publish(status="ok", summary={"sentence": "2.47 s."})
        return draft.id
