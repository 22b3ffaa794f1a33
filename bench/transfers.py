"""Gigabytes through the server: downloads, archives and uploads, beside Jupyter's own, zip and cp; in flat
memory.
"""

from __future__ import annotations

import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.table import Figure, Limit
from bench.turns import PeakOf, in_turns, timed
from jupyterlab_jaxprof.captures import Status, Store
from tests.support.servers import Server, running_server

ROUNDS = 3
SIZE_BYTES = 1_000_000_000
LONG_BYTES = 3_000_000_000
PIECE_BYTES = 4 << 20
"""As our page sends a file (PIECE_BYTES of labextension/src/importing/model.ts)."""
CHUNK_BYTES = 1 << 20
"""As JupyterLab's file browser does (CHUNK_SIZE of @jupyterlab/filebrowser)."""
FLAT = Limit("value", 64e6)
"""What a server may need for a transfer of any size."""


def sparse(place: Path, size_bytes: int) -> Path:
    """A file of zeros that takes no room on the disk: what is measured is the way, not the disk."""
    with place.open("wb") as file:
        file.truncate(size_bytes)
    return place


def receive(server: Server, path: str, size_bytes: int) -> None:
    """Download and drop it."""
    answer = server.get(path, stream=True)
    answer.raise_for_status()
    received = sum(len(block) for block in answer.iter_content(1 << 20))
    assert 0 <= received - size_bytes < 1_000_000, (received, size_bytes)


def upload(server: Server, size_bytes: int) -> None:
    """Send a file as the browser does, and take it back before it is read."""
    listed = [{"path": "big.nsys-rep", "size_bytes": size_bytes, "modified_s": 0}]
    begun = server.request("POST", "jaxprof/api/imports", json={"files": listed})
    begun.raise_for_status()
    address = f"jaxprof/api/imports/{begun.json()['id']}"
    piece = bytes(PIECE_BYTES)
    for offset in range(0, size_bytes, PIECE_BYTES):
        data = piece[: size_bytes - offset]
        server.request("PUT", f"{address}/0?offset={offset}", data=data).raise_for_status()
    server.request("DELETE", address).raise_for_status()


def upload_to_contents(server: Server, size_bytes: int) -> None:
    """Send a file as JupyterLab's file browser does: in chunks of base64, numbered, the last one -1."""
    chunk = bytes(CHUNK_BYTES)
    for offset in range(0, size_bytes, CHUNK_BYTES):
        last = offset + CHUNK_BYTES >= size_bytes
        body = {
            "type": "file",
            "format": "base64",
            "content": b64encode(chunk[: size_bytes - offset]).decode(),
            "chunk": -1 if last else offset // CHUNK_BYTES + 1,
        }
        server.request("PUT", "api/contents/uploaded.bin", json=body).raise_for_status()
    (server.home / "work/uploaded.bin").unlink()


def figures(long: bool) -> Iterator[Figure]:
    """Measure."""
    size_bytes = LONG_BYTES if long else SIZE_BYTES
    gb = f"{size_bytes / 1e9:.0f} GB"
    with running_server() as server:
        with Store(server.store).begin("nsys", "big") as draft:
            (draft.directory / "big.gz").touch()
            capture_id = draft.publish(status=Status.OK).id
        # named so that it isn't deflated, as what is compressed already isn't
        file = sparse(Store(server.store).directory(capture_id) / "big.gz", size_bytes)
        sparse(server.home / "work/big.gz", size_bytes)
        ours = f"jaxprof/api/captures/{capture_id}"
        yield from _pair(
            f"a download of {gb}",
            server,
            lambda: receive(server, f"{ours}/files/big.gz", size_bytes),
            "Jupyter's /files",
            lambda: receive(server, "files/big.gz", size_bytes),
            Limit("ratio", 1.1),
        )
        yield from _pair(
            f"an archive of {gb}, streamed",
            server,
            lambda: receive(server, f"{ours}/archive", size_bytes),
            "zip -0 to a pipe",
            lambda: _zip(file),
            Limit("ratio", 1.5),
        )
        yield from _pair(
            f"an upload of {gb}",
            server,
            lambda: upload(server, size_bytes),
            "JupyterLab's own (10 times a tenth)",
            lambda: upload_to_contents(server, size_bytes // 10),
            Limit("ratio", 1.1),
            peers_part=0.1,
        )


def _pair(
    name: str,
    server: Server,
    ours: Callable[[], None],
    peer: str,
    theirs: Callable[[], None],
    limit: Limit,
    *,
    peers_part: float = 1.0,
) -> Iterator[Figure]:
    """Seconds of both, the peer's for the whole where it did a part, and the server's memory for ours."""
    peaks: list[float] = []

    def watched() -> float:
        with PeakOf(server.pid) as peak:
            took_s = timed(ours)
        peaks.append(peak.extra)
        return took_s

    pairs = in_turns(ROUNDS, watched, lambda: timed(theirs) / peers_part)
    yield Figure.of_pairs(name, pairs[0], peer, pairs[1], "s", limit)
    yield Figure(f"{name}: the server's memory", max(peaks), "bytes", (FLAT,), samples=len(peaks))


def _zip(file: Path) -> None:
    made = subprocess.Popen(["zip", "-0", "-q", "-", str(file)], stdout=subprocess.PIPE)
    assert made.stdout is not None
    while made.stdout.read(1 << 20):
        pass
    assert made.wait() == 0
