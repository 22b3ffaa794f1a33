"""What is said of the viewers: whether they may be started, looked up without holding anybody up."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

from jupyterlab_jaxprof.server.viewers import registry
from jupyterlab_jaxprof.server.viewers.process import Limits
from jupyterlab_jaxprof.server.viewers.registry import Viewers, ViewerSettings


def test_what_is_installed_is_looked_up_off_the_event_loop_until_it_is_found(tmp_path: Path, monkeypatch):
    installed: set[str] = set()
    looked_up: list[str] = []
    threads: set[int] = set()

    def is_installed(name: str) -> bool:
        looked_up.append(name)
        threads.add(threading.get_ident())
        return name in installed

    monkeypatch.setattr(registry, "_is_installed", is_installed)
    enabled = {"xprof": True, "tensorboard": False}
    viewers = Viewers(ViewerSettings(tmp_path, Limits(), enabled), logging.getLogger("viewers"))

    async def check():
        for _ in range(2):
            assert "pip install" in (await viewers.problem("xprof") or "")
        installed.add("xprof")  # while the server runs
        for _ in range(5):
            assert (await viewers.describe("xprof"))["available"] is True
        assert "switched off" in (await viewers.describe("tensorboard"))["message"]

    asyncio.run(check())
    assert looked_up == ["xprof"] * 3
    assert threading.get_ident() not in threads
