"""A store of 10,000 captures, as a person who measures every day has one after some years."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jupyterlab_jaxprof.captures import CaptureFile, Record, Status, Store
from jupyterlab_jaxprof.captures.record import serialize

COUNT = 10_000
CELL = "params, loss = train_step(params, batch)\n" * 30


def fill(root: Path) -> Store:
    """Write the captures straight to the disk, one a minute from the first of January on, oldest first."""
    store = Store(root)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(COUNT):
        when = start + timedelta(minutes=number)
        capture_id = f"{when:%Y%m%d-%H%M%S}-000-{number:06x}"
        session = store.captures_dir / capture_id / "plugins/profile/run"
        session.mkdir(parents=True, mode=0o700)
        (session / "vm.xplane.pb").write_bytes(b"x" * 100)
        record = Record(
            id=capture_id,
            kind="trace" if number % 2 else "time",
            name=f"run {number}",
            created=when.isoformat(),
            status=Status.OK,
            notebook=f"notebook {number % 7}.ipynb",
            cell=CELL,
            environment={"jax": "0.10.2", "devices": [{"id": 0, "platform": "gpu", "kind": "H200"}]},
            files=(CaptureFile("plugins/profile/run/vm.xplane.pb", 100, "xplane"),),
            summary={"wall_ms": 1.0, "headline": {"label": "median step", "value": 1.0, "unit": "ms"}},
            xprof_run=f"{capture_id}/run",
        )
        (store.captures_dir / capture_id / "capture.json").write_bytes(serialize(record))
    os.utime(store.captures_dir)
    return store
