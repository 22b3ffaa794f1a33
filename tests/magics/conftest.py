"""A shell with the magics, and the store that they write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Record, Store
from tests.support.shells import Shell, running_shell


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def shell(store: Store, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell in which the test module's SETUP has run; no profiler of NVIDIA's is around it."""
    monkeypatch.setenv("JAXPROF_DIR", str(store.root))
    for name in [name for name in os.environ if name.startswith(("NSYS_", "QUADD_"))]:
        monkeypatch.delenv(name)
    with running_shell("jupyterlab_jaxprof") as shell:
        shell.run(request.module.SETUP)
        yield shell


def records(store: Store) -> list[Record]:
    """What the store has, the newest first."""
    return [row.record for row in store.list().rows if row.record is not None]


def only_record(store: Store) -> Record:
    (record,) = records(store)
    return record


def newest(store: Store) -> Record:
    return records(store)[0]
