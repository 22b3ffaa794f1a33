"""The viewers that this server offers, by name."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.environment import XPROF_REQUIREMENT
from jupyterlab_jaxprof.server.viewers import sockets
from jupyterlab_jaxprof.server.viewers.process import Limits, State, ViewerProcess, ViewerSpec

VIEWERS = "jupyterlab_jaxprof.server.viewers"
SPECS = {
    "xprof": ViewerSpec("xprof", "XProf", f"{VIEWERS}.xprof_app", "jaxprof/xprof"),
    "tensorboard": ViewerSpec(
        "tensorboard", "TensorBoard", f"{VIEWERS}.tensorboard_app", "jaxprof/tensorboard"
    ),
}
INSTALL = {
    "xprof": "XProf is not installed in the Jupyter server's environment: run "
    f"'pip install \"{XPROF_REQUIREMENT}\"' there and try again.",
    "tensorboard": "TensorBoard is not installed in the Jupyter server's environment: run "
    "'pip install \"jupyterlab-jaxprof[tensorboard]\"' there and try again.",
}


@dataclass(frozen=True)
class ViewerSettings:
    """What the configuration says about the viewers."""

    logdir: Path
    limits: Limits
    enabled: Mapping[str, bool]
    external_scripts: bool = True


class Viewers:
    """All viewers of one Jupyter server."""

    def __init__(self, settings: ViewerSettings, log: logging.Logger) -> None:
        self.settings = settings
        self.log = log
        self._processes: dict[str, ViewerProcess] = {}
        self._problems: dict[str, str] = {}
        self._installed: set[str] = set()

    def listen(self) -> None:
        """Listen for every viewer that is switched on; each starts at its first use."""
        for name, spec in SPECS.items():
            if not self.settings.enabled[name]:
                continue
            process = ViewerProcess(
                spec,
                self._arguments(),
                self.settings.limits,
                self.log,
                sockets.path(name),
            )
            try:
                process.listen()
            except OSError as error:
                self._problems[name] = (
                    f"{spec.title} can't be reached: the socket {process.socket_path} can't be made "
                    f"({error.strerror or error})."
                )
                self.log.warning("%s", self._problems[name])
            else:
                self._processes[name] = process

    def _arguments(self) -> tuple[str, ...]:
        external = () if self.settings.external_scripts else ("--no-external-scripts",)
        return ("--logdir", str(self.settings.logdir), *external)

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(process.close() for process in self._processes.values()))

    async def problem(self, name: str) -> str | None:
        """Why a viewer can't be started, or None."""
        if not self.settings.enabled[name]:
            title = SPECS[name].title
            return (
                f"{title} is switched off in the Jupyter server's configuration (JaxProfApp.{name}_enabled)."
            )
        if name in self._problems:
            return self._problems[name]
        # In a thread: it looks through the directories of sys.path, which may be on a slow network.
        if name not in self._installed and await asyncio.to_thread(_is_installed, name):
            self._installed.add(name)
        return None if name in self._installed else INSTALL[name]

    def states(self) -> tuple[tuple[str, State], ...]:
        """Give each viewer's name and what it does."""
        return tuple((name, process.state) for name, process in self._processes.items())

    def process(self, name: str) -> ViewerProcess | None:
        """The supervised process of a viewer, or None where it is switched off."""
        return self._processes.get(name)

    async def describe(self, name: str) -> dict[str, Any]:
        """What the REST interface says of a viewer."""
        problem = await self.problem(name)
        process = self._processes.get(name)
        if process is not None:
            await process.settle()
        state = process.state if process else State.STOPPED
        return {
            "name": name,
            "available": problem is None,
            "state": str(state),
            "message": (process.message if process else "") or problem or "",
            "pid": process.pid if process else None,
            "memory_bytes": process.memory_bytes() if process else None,
            "since": process.since if process else "",
            "ended": process.ended if process else None,
            "url": SPECS[name].page,
        }


def _is_installed(name: str) -> bool:
    importlib.invalidate_caches()  # it may have been installed since the server started
    return importlib.util.find_spec(name) is not None
