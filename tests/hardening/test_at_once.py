"""Two kernels and two Jupyter servers at one store, all at once: nothing is lost, and nothing mixed."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.disk import plain_files
from tests.support.endurance import tries
from tests.support.kernels import ROOT, Kernel, running_kernel
from tests.support.servers import Server, running_server

#: In a process that starts with this, no file system has locks, as on some network mounts.
WITHOUT_LOCKS = """
import errno, fcntl, os

def flock(descriptor, operation):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

fcntl.flock = flock
"""
#: Every fourth capture is of another kind, and without a file. The mark is in the trace itself.
WRITE = """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x @ x)
x = jnp.ones((8, 8))

def write(kernel, count):
    for number in range(count):
        name = f"{kernel} {number}"
        magic = "jaxtime" if number % 4 == 3 else "jaxtrace"
        mark = f"mark of {kernel}-{number}-"
        cell = f"with jax.profiler.TraceAnnotation({mark!r}): step(x)"
        get_ipython().run_cell_magic(magic, f"'{name}' -r 1" if magic == "jaxtime" else f"'{name}'", cell)
"""


@dataclass
class Changes:
    """What the servers have answered to be done."""

    names: dict[str, str] = field(default_factory=dict)
    pins: dict[str, bool] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """The captures' first names."""


def is_deleted(name: str) -> bool:
    return int(name.split()[1]) % 10 == 5


@dataclass
class Crowd:
    """All that changes the store while the kernels write, until `is_over`."""

    servers: list[Server]
    changes: Changes
    is_over: threading.Event

    def rows(self, server: Server) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while True:
            page = server.get_json(f"jaxprof/api/captures?limit=500&offset={len(rows)}")
            rows += page["captures"]
            if not page["captures"] or len(rows) >= page["total"]:
                return rows

    def patch(self, server: Server, row: dict[str, Any], **change: Any) -> bool:
        """Change a capture; False where the other server has deleted it meanwhile."""
        answer = server.request("PATCH", f"jaxprof/api/captures/{row['id']}", json=change)
        if answer.status_code == 404:
            assert is_deleted(row["name"])
            return False
        answer.raise_for_status()
        assert answer.json()[next(iter(change))] == next(iter(change.values()))
        return True

    def rename(self, server: Server) -> None:
        """Give captures that have the name from their magic another."""
        for row in self.rows(server):
            if "renamed" not in row["name"] and self.patch(server, row, name=f"{row['name']} renamed"):
                self.changes.names[row["id"]] = f"{row['name']} renamed"

    def pin(self, server: Server) -> None:
        """Pin two in three captures."""
        for row in self.rows(server):
            if not row["pinned"] and int(row["name"].split()[1]) % 3 and self.patch(server, row, pinned=True):
                self.changes.pins[row["id"]] = True

    def delete(self, server: Server) -> None:
        for row in self.rows(server):
            if is_deleted(row["name"]):
                answer = server.request("DELETE", f"jaxprof/api/captures/{row['id']}")
                assert answer.status_code == 204, answer.text
                self.changes.deleted.add(" ".join(row["name"].split()[:2]))

    def look(self, server: Server) -> None:
        """What is listed is whole at any time, or deleted since."""
        for row in self.rows(server):
            check_row(row)
        server.get_json("jaxprof/api/running")

    def go_on(self, what: Callable[[Server], None], server: Server) -> None:
        while not self.is_over.is_set():
            what(server)
            time.sleep(0.05)
        what(server)


def check_row(row: dict[str, Any]) -> None:
    if not is_deleted(row["name"]):
        assert (row["problem"], row["status"]) == (None, "ok"), row
    assert row["size_bytes"] == sum(file["size_bytes"] for file in row["files"])


def check_belongs(store: Store, capture_id: str) -> str:
    """A capture's name, cell, kind and file are of one and the same run; returns the name it had first."""
    record = store.get(capture_id)
    kernel, number, *_ = record.name.split()
    mark = f"mark of {kernel}-{number}-"
    assert mark in record.cell
    assert f"'{kernel} {number}'" in record.magic
    assert record.kind == ("time" if int(number) % 4 == 3 else "trace")
    traces = [file for file in record.files if file.role == "xplane"]
    assert len(traces) == (record.kind == "trace")
    for file in traces:
        with store.open(capture_id, file.path) as content:
            trace = content.read()
        assert len(trace) == file.size_bytes
        assert mark.encode() in trace
        assert trace.count(b"mark of ") == trace.count(mark.encode()), record.name
    return f"{kernel} {number}"


@contextmanager
def at_work(store: Store, **environment: str) -> Iterator[tuple[list[Server], list[Kernel]]]:
    """Start two servers and two kernels at the same time, since each takes seconds to."""
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        contexts = [running_server(store=store.root, environment=environment) for _ in range(2)]
        contexts += [running_kernel(JAXPROF_DIR=str(store.root), **environment) for _ in range(2)]
        started = [pool.submit(stack.enter_context, context) for context in contexts]
        servers_and_kernels = [each.result() for each in started]
        yield servers_and_kernels[:2], servers_and_kernels[2:]


def write_at_once(store: Store, count: int, **environment: str) -> None:
    """Let two kernels write `count` captures while two servers list, rename, pin and delete."""
    with at_work(store, **environment) as (servers, kernels), ThreadPoolExecutor(8) as pool:
        crowd = Crowd(servers, Changes(), threading.Event())
        first, second = servers
        jobs = [
            pool.submit(crowd.go_on, crowd.rename, first),
            pool.submit(crowd.go_on, crowd.pin, second),
            pool.submit(crowd.go_on, crowd.delete, second),
            *(pool.submit(crowd.go_on, crowd.look, server) for server in servers),
        ]
        try:
            sent = [
                kernel.send(f"{WRITE}\nwrite('{name}', {count // 2})")
                for kernel, name in zip(kernels, "ab", strict=True)
            ]
            for kernel, message in zip(kernels, sent, strict=True):
                reply = kernel.wait_for(message, 60 + 10 * count)
                assert (reply.status, reply.traceback) == ("ok", "")
        finally:
            crowd.is_over.set()
        for job in jobs:
            job.result()
        pages = [server.get_json("jaxprof/api/captures?limit=500") for server in servers]
        assert pages[0] == pages[1]
        rows = crowd.rows(first)
        assert rows == crowd.rows(second)
    check_all(store, count, rows, pages[0]["size_bytes"], crowd.changes)


def check_all(
    store: Store, count: int, rows: list[dict[str, Any]], size_bytes: int, changes: Changes
) -> None:
    everything = {f"{kernel} {number}" for kernel in "ab" for number in range(count // 2)}
    assert changes.deleted == {name for name in everything if is_deleted(name)}
    found = [check_belongs(store, row["id"]) for row in rows]
    assert sorted(found) == sorted(everything - changes.deleted)
    for row in rows:
        check_row(row)
        assert row["name"] == changes.names[row["id"]]
        assert row["pinned"] == changes.pins.get(row["id"], False)
        directory = store.captures_dir / row["id"]
        assert row["disk_bytes"] == sum(
            path.stat().st_size for path in directory.rglob("*") if path.is_file()
        )
    assert size_bytes == sum(row["disk_bytes"] for row in rows)
    # Nothing is left beside the captures, once the next one has swept.
    store.begin("trace", "x").discard()
    assert {path.name for path in store.captures_dir.iterdir()} == {row["id"] for row in rows}
    assert list((store.root / "partial").iterdir()) == []
    assert {path.name for path in store.root.iterdir()} <= {"captures", "partial", "lock", "nsys-trials.json"}
    hidden = [path for path in itertools.chain(plain_files(store.captures_dir)) if "/." in path]
    assert hidden == []


def test_two_kernels_and_two_servers_write_at_once(tmp_path: Path) -> None:
    write_at_once(Store(tmp_path / "store"), tries(60, 1000))


def test_the_same_where_there_are_no_locks(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITHOUT_LOCKS)
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT)])
    write_at_once(Store(tmp_path / "store"), tries(20, 200), PYTHONPATH=path)
