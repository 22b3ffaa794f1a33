"""Change notices: a look at two directories each second, and an event when what they hold has changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from jupyter_events import EventLogger

from jupyterlab_jaxprof.captures import Store

_SCHEMAS = "https://jupyterlab-jaxprof.readthedocs.io/events"
SCHEMA_ID = f"{_SCHEMAS}/captures/v1"
RUNNING_SCHEMA_ID = f"{_SCHEMAS}/running/v1"
INTERVAL_S = 1.0
#: How often what dead processes have left is looked for, while anything is there.
SWEEP_S = 10.0


def _schema(schema_id: str, title: str, description: str, version: str) -> dict[str, Any]:
    return {
        "$id": schema_id,
        "version": "1",
        "title": title,
        "description": description,
        "personal-data": False,
        "type": "object",
        "properties": {"version": {"type": "number", "title": "Version", "description": version}},
        "required": ["version"],
    }


SCHEMAS = [
    _schema(
        SCHEMA_ID,
        "Captures changed",
        "A capture came, changed or went; the list is worth reading again.",
        "The store's version after the change",
    ),
    _schema(
        RUNNING_SCHEMA_ID,
        "What runs has changed",
        "A measurement or a viewer began, ended or went on to its next phase.",
        "Grows with each change, as long as the server runs",
    ),
]


class StoreWatcher:
    """Emits an event whenever the captures change, and one whenever what runs does, whoever changed it.

    `viewers` tells the viewers' states, whatever they are made of.
    """

    def __init__(
        self, store: Store, events: EventLogger, log: logging.Logger, viewers: Callable[[], object]
    ) -> None:
        self._store = store
        self._events = events
        self._log = log
        self._viewers = viewers
        self._task: asyncio.Task[None] | None = None
        self._running_version = 0.0
        self._running: tuple[tuple[str, object, object], ...] = ()
        self._sweep_at_s = 0.0
        self._is_any_left = True
        for schema in SCHEMAS:
            events.register_event_schema(schema)

    def start(self) -> None:
        """Begin to watch; to be called on the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        seen, changes = await asyncio.to_thread(self._look), 0
        # A store of thousands takes its time at first: read it before somebody waits for the list.
        await asyncio.to_thread(self._store.look)
        viewers = self._viewers()
        while True:
            await asyncio.sleep(INTERVAL_S)
            # In a thread: a stat on a network file system can take long.
            found = await asyncio.to_thread(self._look)
            if found[0] != seen[0]:
                await asyncio.to_thread(self._store.look)
                self._emit(SCHEMA_ID, found[0])
            if found[1] != seen[1] or self._viewers() != viewers:
                changes += 1
                viewers = self._viewers()
                self._emit(RUNNING_SCHEMA_ID, float(changes))
            seen = found

    def _look(self) -> tuple[float, tuple[tuple[str, object, object], ...]]:
        """Give the store's version, and what runs; one stat tells that nothing does, and still nothing.

        A process that is killed changes no directory: what runs is looked at each time.
        """
        version = self._store.running_version()
        if self._running or version != self._running_version:
            self._running_version = version
            self._is_any_left = True
            before = {one[0] for one in self._running}
            self._running = tuple(
                (one.id, one.about["phase"], one.about["fraction"]) for one in self._store.running()
            )
            if before - {one[0] for one in self._running}:
                self._sweep_at_s = 0.0
        self._sweep()
        return self._store.version(), self._running

    def _sweep(self) -> None:
        """Remove what a killed process has left: gigabytes, maybe, and nobody may measure here for long."""
        now_s = time.monotonic()
        if self._is_any_left and now_s >= self._sweep_at_s:
            self._sweep_at_s = now_s + SWEEP_S
            self._is_any_left = self._store.sweep()

    def _emit(self, schema_id: str, version: float) -> None:
        try:
            self._events.emit(schema_id=schema_id, data={"version": version})
        except Exception:  # noqa: BLE001 - a listener's fault must not end the watch
            self._log.exception("A change of the captures could not be announced.")
