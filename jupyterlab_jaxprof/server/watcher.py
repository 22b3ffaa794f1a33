"""Change notices: a look at the store's version each second, and an event when it has changed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from jupyter_events import EventLogger

from jupyterlab_jaxprof.captures import Store

SCHEMA_ID = "https://jupyterlab-jaxprof.readthedocs.io/events/captures/v1"
SCHEMA: dict[str, Any] = {
    "$id": SCHEMA_ID,
    "version": "1",
    "title": "Captures changed",
    "description": "A capture came, changed or went; the list is worth reading again.",
    "personal-data": False,
    "type": "object",
    "properties": {
        "version": {
            "type": "number",
            "title": "Version",
            "description": "The store's version after the change",
        }
    },
    "required": ["version"],
}
INTERVAL_S = 1.0


class StoreWatcher:
    """Emits an event whenever the store's version changes, whoever changed it."""

    def __init__(self, store: Store, events: EventLogger, log: logging.Logger) -> None:
        self._store = store
        self._events = events
        self._log = log
        self._task: asyncio.Task[None] | None = None
        events.register_event_schema(SCHEMA)

    def start(self) -> None:
        """Begin to watch; to be called on the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        seen = await loop.run_in_executor(None, self._store.version)
        while True:
            await asyncio.sleep(INTERVAL_S)
            # In a thread: a stat on a network file system can take long.
            version = await loop.run_in_executor(None, self._store.version)
            if version == seen:
                continue
            seen = version
            try:
                self._events.emit(schema_id=SCHEMA_ID, data={"version": version})
            except Exception:  # noqa: BLE001 - a listener's fault must not end the watch
                self._log.exception("The change of the captures could not be announced.")
