"""Downloads: right bytes, right names, ranges, constant memory, and no other file of the machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socket
import threading
import time
import zipfile
from email.utils import formatdate
from urllib.parse import quote, unquote

import psutil
import pytest
import requests

from jupyterlab_jaxprof.captures import Store, StoreError
from jupyterlab_jaxprof.server.archive import Entry, zip_chunks
from jupyterlab_jaxprof.server.downloads import archive_contents, content_disposition
from tests.server.conftest import Publish
from tests.support.servers import Server

BIG_BYTES = 1_500_000_000
CONTENT = bytes(range(256)) * 4
NAMES = [
    "plain.txt",
    "my run.nsys-rep",
    "100%20 sure.txt",
    "a+b.xplane.pb",
    "#1 & ?.txt",
    "é ü 例え 🚀.txt",
    "'quoted' \"twice\".txt",
    "semi;colon, comma=.txt",
    "new\nline.txt",
    "back\\slash.txt",
    ".hidden/.file",
    "deep/er/%2e%2e/x.txt",
]


def address(identifier: str, path: str) -> str:
    return f"jaxprof/api/captures/{identifier}/files/{quote(path, safe='/')}"


def test_any_name_downloads_with_its_bytes_and_its_name(server: Server, publish: Publish):
    record = publish("names", {name: f"{name}:".encode() + CONTENT for name in NAMES})
    for name in NAMES:
        answer = server.get(address(record.id, name))
        assert answer.status_code == 200, name
        assert answer.content == f"{name}:".encode() + CONTENT
        assert answer.headers["Content-Length"] == str(len(answer.content))
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        header = answer.headers["Content-Disposition"]
        plain, _, encoded = header.partition("; filename*=UTF-8''")
        assert plain.startswith('attachment; filename="')
        assert plain.isascii()
        expected = name.rpartition("/")[2].replace("\n", "_").replace("\\", "_")
        assert unquote(encoded) == expected
        assert "+" not in encoded


def test_names_that_no_header_takes():
    assert content_disposition('a"\r\nX: y') == (
        "attachment; filename=\"a___X: y\"; filename*=UTF-8''a%22__X%3A%20y"
    )
    assert content_disposition("例") == "attachment; filename=\"download\"; filename*=UTF-8''%E4%BE%8B"
    assert content_disposition("\u2028\ud800/..") == "attachment; filename=\"___..\"; filename*=UTF-8''___.."


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=1000-", 1000, 1024),
        ("bytes=1000-99999", 1000, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=-99999", 0, 1024),
    ],
)
def test_ranges(server: Server, publish: Publish, header: str, start: int, end: int):
    record = publish("ranges", {"f": CONTENT})
    for method in ("GET", "HEAD"):
        answer = server.request(method, address(record.id, "f"), headers={"Range": header})
        assert answer.status_code == 206
        assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/1024"
        assert answer.headers["Content-Length"] == str(end - start)
        assert answer.content == (CONTENT[start:end] if method == "GET" else b"")


@pytest.mark.parametrize("header", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_ranges_outside_the_file(server: Server, publish: Publish, header: str):
    record = publish("ranges", {"f": CONTENT})
    answer = server.get(address(record.id, "f"), headers={"Range": header})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == "bytes */1024"
    assert "1024 bytes" in answer.json()["message"]


@pytest.mark.parametrize(
    "header",
    ["bytes=0-1,3-4", "bytes=5-2", "bytes=-", "bytes", "items=0-1", "bytes=" + "9" * 40 + "-", "bytes=x-y"],
)
def test_ranges_that_get_the_whole_file(server: Server, publish: Publish, header: str):
    record = publish("ranges", {"f": CONTENT})
    answer = server.get(address(record.id, "f"), headers={"Range": header})
    assert (answer.status_code, answer.content) == (200, CONTENT)


def test_conditional_requests(server: Server, publish: Publish):
    record = publish("conditions", {"f": CONTENT, "empty": b""})
    head = server.request("HEAD", address(record.id, "f"))
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == "1024"
    assert head.headers["Accept-Ranges"] == "bytes"
    etag, modified = head.headers["ETag"], head.headers["Last-Modified"]
    for condition, status in [
        (etag, 206),
        (modified, 206),
        ('"other"', 200),
        (formatdate(0, usegmt=True), 200),
    ]:
        headers = {"Range": "bytes=0-3", "If-Range": condition}
        assert server.get(address(record.id, "f"), headers=headers).status_code == status
    again = server.get(address(record.id, "f"), headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    empty = server.get(address(record.id, "empty"))
    assert (empty.status_code, empty.content, empty.headers["Content-Length"]) == (200, b"", "0")


def test_no_other_file(server: Server, publish: Publish):
    record = publish("inside", {"f": CONTENT, "sub/g": CONTENT, "link": b"was a file"})
    directory = server.store / "captures" / record.id
    secret = server.home / "secret"
    secret.write_text("what nobody may read")
    (directory / "link").unlink()
    (directory / "link").symlink_to(secret)
    (directory / "unlisted").write_text("what nobody may read")
    (directory / "sub").rename(directory / "moved")
    (directory / "sub").symlink_to(directory / "moved")
    for path in [
        "link",
        "unlisted",
        "sub/g",
        "capture.json",
        "../f",
        "..%2Ff",
        "%2e%2e/%2e%2e/%2e%2e/secret",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "sub",
        "f/",
        "f%00",
        "./f",
        str(secret),
    ]:
        # Sent as it is: requests would tidy the dots away.
        answer = raw_get(server, f"jaxprof/api/captures/{record.id}/files/{path}")
        assert b" 404 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0], path
        assert b"root:" not in answer
        assert b"what nobody may read" not in answer
    archive = server.get(f"jaxprof/api/captures/{record.id}/archive")
    assert archive.status_code == 404
    assert "can't be read" in archive.json()["message"]


def raw_get(server: Server, path: str) -> bytes:
    host, _, _ = server.url.removeprefix("http://").partition("/")
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=20) as connection:
        connection.sendall(
            f"GET {server.base_url}{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: token {server.token}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        answer = b""
        while block := connection.recv(65536):
            answer += block
    return answer


def test_zip_holds_the_files_and_the_record(server: Server, publish: Publish):
    files = {"a.txt": b"x" * 100_000, "b/é +#%20.gz": gzip.compress(os.urandom(50_000)), "empty": b""}
    record = publish("Zip é/1?", files)
    (server.store / "captures" / record.id / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"a viewer's cache")
    answer = server.get(f"jaxprof/api/captures/{record.id}/archive")
    assert answer.headers["Content-Type"] == "application/zip"
    assert unquote(answer.headers["Content-Disposition"].partition("''")[2]) == "Zip é_1?.zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {f"{record.id}/{path}" for path in (*files, "capture.json")}
        for path, content in files.items():
            assert archive.read(f"{record.id}/{path}") == content
        kinds = {info.filename.rpartition("/")[2]: info.compress_type for info in archive.infolist()}
        assert kinds["a.txt"] == zipfile.ZIP_DEFLATED
        assert kinds["é +#%20.gz"] == zipfile.ZIP_STORED
        info = archive.getinfo(f"{record.id}/a.txt")
        assert abs(time.mktime((*info.date_time, 0, 0, -1)) - time.time()) < 3600
    head = server.request("HEAD", f"jaxprof/api/captures/{record.id}/archive")
    assert (head.status_code, head.content) == (200, b"")


def test_zip_over_4_gib_is_whole(tmp_path):
    """Zip64, without a byte of it on disk: a sparse file that says .gz, so nothing is deflated."""
    big = tmp_path / "big.gz"
    size = (1 << 32) + 12_345
    with big.open("wb") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"tail")
    total = 0
    tail = b""
    for chunk in zip_chunks([Entry("big.gz", lambda: big.open("rb"))], "x"):
        total += len(chunk)
        tail = chunk if len(chunk) > 4096 else (tail + chunk)[-4096:]
    assert total > size
    directory = tail[tail.index(b"PK\x01\x02") :]
    assert b"PK\x06\x06" in directory, "no Zip64 end of central directory"
    assert size.to_bytes(8, "little") in directory


@pytest.fixture
def big_capture(server: Server, publish: Publish):
    """A capture with a sparse file of 1.5 GB, which takes no room on the disk."""
    record = publish("big", {"big.gz": b""})
    place = server.store / "captures" / record.id / "big.gz"
    with place.open("r+b") as file:
        file.truncate(BIG_BYTES)
    yield record
    server.request("DELETE", f"jaxprof/api/captures/{record.id}")


@pytest.mark.measures_time
@pytest.mark.parametrize("route", ["files/big.gz", "archive"])
def test_it_streams_in_constant_memory_while_others_are_served(server: Server, big_capture, route: str):
    process = psutil.Process(server.pid)
    before = process.memory_info().rss
    peak = 0
    waits: list[float] = []
    received = 0
    done = threading.Event()

    def ask_meanwhile():
        while not done.is_set():
            started = time.monotonic()
            server.get_json("jaxprof/api/status")
            waits.append(time.monotonic() - started)
            time.sleep(0.1)

    other = threading.Thread(target=ask_meanwhile)
    other.start()
    try:
        answer = server.get(f"jaxprof/api/captures/{big_capture.id}/{route}", stream=True)
        if route != "archive":
            assert answer.headers["Content-Length"] == str(BIG_BYTES)
        for count, block in enumerate(answer.iter_content(1 << 20)):
            received += len(block)
            if count % 100 == 0:
                peak = max(peak, process.memory_info().rss)
    finally:
        done.set()
        other.join()
    assert received == BIG_BYTES or (route == "archive" and 0 < received - BIG_BYTES < 1_000_000)
    assert peak - before < 64 << 20
    assert waits
    assert max(waits) < 1.5, max(waits)


@pytest.mark.parametrize("route", ["files/big.gz", "archive"])
def test_a_client_that_leaves_stops_the_work(server: Server, big_capture, route: str):
    answer = server.get(f"jaxprof/api/captures/{big_capture.id}/{route}", stream=True)
    assert len(answer.raw.read(1 << 20)) == 1 << 20
    place = str(server.store / "captures" / big_capture.id / "big.gz")
    process = psutil.Process(server.pid)
    assert place in [file.path for file in process.open_files()]
    answer.close()
    deadline = time.monotonic() + 10
    while place in [file.path for file in process.open_files()]:
        assert time.monotonic() < deadline, "the file is still being sent"
        time.sleep(0.1)
    assert server.get("jaxprof/api/status").status_code == 200


@pytest.mark.measures_time
def test_a_slow_client_holds_nobody_up(server: Server, big_capture):
    """As many stalled downloads as there are threads for the disk, and more."""
    stalled = [
        server.get(f"jaxprof/api/captures/{big_capture.id}/{route}", stream=True)
        for route in ("files/big.gz", "archive")
        for _ in range(4)
    ]
    started = time.monotonic()
    server.get_json("jaxprof/api/captures")
    assert time.monotonic() - started < 2
    for answer in stalled:
        answer.close()


def test_a_real_trace_arrives_unchanged(server: Server, publish: Publish):
    record = publish("trace")
    file = record.files[0]
    answer = server.get(address(record.id, file.path))
    place = server.store / "captures" / record.id / file.path
    assert hashlib.sha256(answer.content).digest() == hashlib.sha256(place.read_bytes()).digest()


def test_an_archive_that_breaks_midway_is_no_whole_answer(server: Server, publish: Publish):
    record = publish("breaks", {"a.gz": b"", "b.txt": b"gone before its turn"})
    directory = server.store / "captures" / record.id
    os.truncate(directory / "a.gz", 100 << 20)
    answer = server.get(f"jaxprof/api/captures/{record.id}/archive", stream=True)
    blocks = answer.iter_content(1 << 20)
    next(blocks)
    (directory / "b.txt").unlink()
    started = time.monotonic()
    with pytest.raises((requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        for _ in blocks:
            pass
    assert time.monotonic() - started < 20, "the client waits in vain"
    assert server.get("jaxprof/api/status").status_code == 200


def test_an_archive_follows_no_link_that_came_in_between(server: Server, publish: Publish):
    record = publish("link", {"f": CONTENT})
    _, entries = archive_contents(Store(server.store), record.id)
    directory = server.store / "captures" / record.id
    for path in ("capture.json", "f"):
        (directory / path).rename(directory / f"{path}.aside")
        (directory / path).symlink_to(f"{path}.aside")
    for entry in entries:
        with pytest.raises((OSError, StoreError)):
            entry.open()


def test_a_file_that_shrinks_while_it_is_sent_is_no_whole_answer(server: Server, big_capture):
    answer = server.get(f"jaxprof/api/captures/{big_capture.id}/files/big.gz", stream=True)
    answer.raw.read(1 << 20)
    os.truncate(server.store / "captures" / big_capture.id / "big.gz", 1000)
    with pytest.raises((requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        for _ in answer.iter_content(1 << 20):
            pass
