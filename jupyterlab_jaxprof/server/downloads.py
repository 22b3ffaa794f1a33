"""Files and whole captures, streamed at constant memory: ranges, any Unicode name, a zip without a copy."""

from __future__ import annotations

import mimetypes
import os
import re
import unicodedata
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any, BinaryIO
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from jupyterlab_jaxprof.captures import Store, disk
from jupyterlab_jaxprof.captures.record import RECORD_FILE
from jupyterlab_jaxprof.server.archive import Entry, zip_chunks
from jupyterlab_jaxprof.server.handlers import CAPTURE_ID, ApiHandler, Problem

CHUNK_BYTES = 1 << 20
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class DownloadHandler(ApiHandler):
    """What a file and an archive have in common: an attachment, streamed chunk by chunk."""

    @property
    def content_security_policy(self) -> str:
        """Should a browser show the file after all, it has no origin and runs nothing."""
        return f"{super().content_security_policy}; sandbox"

    def start_attachment(self, name: str, content_type: str) -> None:
        """Set the headers of a download called `name`."""
        self.content_type = content_type
        self.set_header("Content-Type", content_type)
        self.set_header("Content-Disposition", content_disposition(name))
        self.set_header("Cache-Control", "private, no-cache")

    async def send(self, chunk: bytes) -> bool:
        """Hand a chunk to the client; False once the client is gone. Returns when the client has taken it."""
        self.write(chunk)
        try:
            await self.flush()
        except StreamClosedError:
            return False
        return True

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """After the first bytes break the connection off: an answer that is ended would look whole."""
        if self._headers_written:
            self.request.connection.stream.close()  # type: ignore[union-attr]
        else:
            super().send_error(status_code, **kwargs)

    def close_attachment(self) -> None:
        """End the answer."""
        self.finish(set_content_type=self.content_type)


class FileHandler(DownloadHandler):
    """`captures/<id>/files/<path>`: one file that the capture's record lists."""

    @web.authenticated
    @authorized
    async def get(self, capture_id: str, path: str) -> None:
        """Stream the file, or the range of it that was asked for."""
        await self._answer(capture_id, path, with_body=True)

    @web.authenticated
    @authorized
    async def head(self, capture_id: str, path: str) -> None:
        """Answer with the headers of a GET."""
        await self._answer(capture_id, path, with_body=False)

    async def _answer(self, capture_id: str, path: str, *, with_body: bool) -> None:
        file = await self.off_loop(self.store.open, capture_id, path)
        with file:
            status = os.fstat(file.fileno())
            size, etag = status.st_size, f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
            modified = formatdate(status.st_mtime, usegmt=True)
            name = path.rpartition("/")[2]
            self.start_attachment(name, mimetypes.guess_type(name)[0] or "application/octet-stream")
            self.set_header("Accept-Ranges", "bytes")
            self.set_header("ETag", etag)
            self.set_header("Last-Modified", modified)
            if self.request.headers.get("If-None-Match") in (etag, "*"):
                self.set_status(304)
                self.close_attachment()
                return
            start, end = self._range(size, etag, modified)
            self.set_header("Content-Length", str(end - start))
            if with_body:
                await self._stream(file, start, end)
            if not self.request.connection.stream.closed():  # type: ignore[union-attr]
                self.close_attachment()

    def _range(self, size: int, etag: str, modified: str) -> tuple[int, int]:
        """The half-open range of bytes to send; sets 206 and Content-Range where it isn't the whole file.

        Several ranges at once, a malformed header and an outdated If-Range get the whole file (RFC 9110).
        """
        condition = self.request.headers.get("If-Range")
        match = RANGE.fullmatch(self.request.headers.get("Range", "").replace(" ", ""))
        if match is None or (condition is not None and condition not in (etag, modified)):
            return 0, size
        first, last = match.groups()
        if not first and not last:
            return 0, size
        if first and last and int(last) < int(first):
            return 0, size
        if first:
            start, end = int(first), min(int(last) + 1, size) if last else size
        else:
            start, end = max(size - int(last), 0), size
        if start >= end:
            sentence = f"The file has {size} bytes; the range that was asked for lies outside of it."
            raise Problem(416, sentence, {"Content-Range": f"bytes */{size}"})
        self.set_status(206)
        self.set_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        return start, end

    async def _stream(self, file: BinaryIO, start: int, end: int) -> None:
        position = start
        while position < end:
            chunk = await self.off_loop(os.pread, file.fileno(), min(CHUNK_BYTES, end - position), position)
            if not chunk:
                raise OSError("The file became shorter while it was sent.")
            position += len(chunk)
            if not await self.send(chunk):
                return


class ArchiveHandler(DownloadHandler):
    """`captures/<id>/archive`: the capture's files and its record in a zip that is made while it is sent."""

    @web.authenticated
    @authorized
    async def get(self, capture_id: str) -> None:
        """Stream the zip."""
        entries = await self._prepare(capture_id)
        chunks = zip_chunks(entries, capture_id)
        try:
            while chunk := await self.off_loop(_next_chunk, chunks):
                if not await self.send(chunk):
                    return
        finally:
            await self.off_loop(chunks.close)
        self.close_attachment()

    @web.authenticated
    @authorized
    async def head(self, capture_id: str) -> None:
        """Answer with the headers of a GET; a zip's length isn't known before it is made."""
        await self._prepare(capture_id)
        self.close_attachment()

    async def _prepare(self, capture_id: str) -> list[Entry]:
        name, entries = await self.off_loop(archive_contents, self.store, capture_id)
        self.start_attachment(f"{name}.zip", "application/zip")
        return entries


def archive_contents(store: Store, capture_id: str) -> tuple[str, list[Entry]]:
    """The archive's name and entries; every file is tried now, while an error can still be answered."""
    record = store.get(capture_id)
    directory = store.directory(capture_id)
    entries = [Entry(RECORD_FILE, lambda: os.fdopen(disk.open_below(directory, RECORD_FILE), "rb"))]
    for file in record.files:
        store.open(capture_id, file.path).close()
        entries.append(Entry(file.path, lambda path=file.path: store.open(capture_id, path)))
    return record.name, entries


def _next_chunk(chunks: Iterator[bytes]) -> bytes:
    return next(chunks, b"")


def content_disposition(name: str) -> str:
    """The header for a download called `name`, whatever characters it has (RFC 6266).

    What no file system takes becomes `_`; readers that don't know `filename*` get a plain ASCII name.
    """
    name = "".join(
        "_" if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "/\\" else c for c in name
    )
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r'["%\\]', "_", plain).strip() or "download"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


ROUTES: list[tuple[Any, ...]] = [
    (rf"jaxprof/api/captures/{CAPTURE_ID}/files/(.+)", FileHandler),
    (rf"jaxprof/api/captures/{CAPTURE_ID}/archive", ArchiveHandler),
]
