"""Imports over REST: begin one, send its files piece by piece, have them read, ask how it goes, cancel."""

from __future__ import annotations

import errno
import math
import shutil
from pathlib import Path
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyterlab_jaxprof.captures.record import is_relative_path
from jupyterlab_jaxprof.server.handlers import ApiHandler, Problem
from jupyterlab_jaxprof.server.imports import MOST_AT_ONCE, Import, State, Upload

MAX_FILES = 10_000
MAX_FILE_BYTES = 1 << 50
PIECE_BYTES = 16 << 20
_KEPT_FREE_BYTES = 200_000_000


class ImportsHandler(ApiHandler):
    """`POST imports`: begin."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin an upload (`files`), or read a file that JupyterLab's file browser shows (`path`)."""
        body = self.json_object({"path": str, "files": list})
        if self.jaxprof.imports.at_work >= MOST_AT_ONCE:
            raise Problem(429, f"{MOST_AT_ONCE} imports are at work already: wait until one has ended.")
        if set(body) == {"path"}:
            one = Import(body["path"].rpartition("/")[2], path=await self._path(body["path"]))
            self.jaxprof.imports.add(one)
            self.jaxprof.imports.read(one)
        elif set(body) == {"files"}:
            uploads = [_upload(item) for item in body["files"]]
            await self.off_loop(_check_room, self.store.root, uploads)
            one = Import(_title(uploads), uploads, workspace=await self.off_loop(self.store.workspace))
            self.jaxprof.imports.add(one)
        else:
            raise Problem(400, "The body must hold either 'path' or 'files'.")
        self.set_status(201)
        self.answer(one.to_json())

    async def _path(self, path: str) -> Path:
        """Give the place on the disk of what the contents API calls `path`, if the user may read it there."""
        user: Any = self.current_user
        allowed = await ensure_async(self.authorizer.is_authorized(self, user, "read", "contents"))
        if not allowed:
            raise Problem(403, "This Jupyter server doesn't allow you to read its files.")
        manager: Any = self.contents_manager
        place = getattr(manager, "_get_os_path", None)
        if place is None:
            raise Problem(
                409,
                "This Jupyter server keeps its files elsewhere than on its disk: download the file, and drop "
                "it on the sidebar.",
            )
        hidden = await ensure_async(manager.is_hidden(path)) and not manager.allow_hidden
        exists = await ensure_async(manager.file_exists(path)) or await ensure_async(manager.dir_exists(path))
        if hidden or not exists:
            raise Problem(404, f"There is no {path[:200]!r} among the files of this Jupyter server.")
        return Path(place(path.strip("/")))


class _OfOne(ApiHandler):
    """Of one import."""

    def _import(self, import_id: str) -> Import:
        one = self.jaxprof.imports.get(import_id)
        if one is None:
            raise Problem(404, "There is no such import: it was cancelled, or the server was restarted.")
        return one


class ImportHandler(_OfOne):
    """`imports/<id>`."""

    @web.authenticated
    @authorized
    async def get(self, import_id: str) -> None:
        """Answer with how far it is."""
        self.answer(self._import(import_id).to_json())

    @web.authenticated
    @authorized
    async def post(self, import_id: str) -> None:
        """All files have arrived: let them be read."""
        one = self._import(import_id)
        if one.state is not State.UPLOADING:
            raise Problem(409, "It is being read already, or has ended.")
        if one.missing:
            raise Problem(409, f"{one.missing[0]} has not arrived whole.")
        self.jaxprof.imports.read(one)
        self.set_status(202)
        self.answer(one.to_json())

    @web.authenticated
    @authorized
    async def delete(self, import_id: str) -> None:
        """Cancel it, or forget that it has ended."""
        await self.jaxprof.imports.drop(self._import(import_id))
        self.set_status(204)
        self.finish()


@web.stream_request_body
class PieceHandler(_OfOne):
    """`PUT imports/<id>/<n>?offset=`: the next piece of the n-th file, at most 16 MiB.

    The body is gathered here and let go at the end: Tornado's own copies of it would stay, in reference
    cycles, until Python looks for garbage, dozens of pieces later.
    """

    def initialize(self) -> None:
        """No part of the body is there yet."""
        self._piece = bytearray()

    def data_received(self, chunk: bytes) -> None:
        """Take the next part of the body; of a body that is too large no more than shows that it is."""
        if len(self._piece) <= PIECE_BYTES:
            self._piece += chunk

    def on_finish(self) -> None:
        """Let the body go."""
        self._piece = bytearray()
        super().on_finish()

    @web.authenticated
    @authorized
    async def put(self, import_id: str, number: str) -> None:
        """Keep the piece; answers with the bytes of that file that are there now."""
        one, index, piece = self._import(import_id), int(number), self._piece
        if one.state is not State.UPLOADING or index >= len(one.uploads):
            raise Problem(409, "No such file is awaited.")
        offset = self.integer("offset", 0, low=0, high=MAX_FILE_BYTES)
        if len(piece) > PIECE_BYTES:
            raise Problem(413, f"A piece holds at most {PIECE_BYTES >> 20} MiB.")
        there = one.received.get(index, 0)
        if offset + len(piece) == there > 0:  # sent again, since the answer was lost
            self.answer({"received": there})
            return
        if offset != there or offset + len(piece) > one.uploads[index].size_bytes:
            raise Problem(409, "This piece is not the next one of its file.")
        try:
            await self.off_loop(one.write, index, offset, piece)
        except OSError as error:
            await self.jaxprof.imports.drop(one)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise Problem(
                507 if full else 500,
                "The disk of the store is full: delete captures, or make room otherwise."
                if full
                else f"The file can't be written into the store: {error.strerror or error}.",
            ) from error
        self.jaxprof.imports.touch(one)
        self.answer({"received": one.received[index]})


def _upload(item: Any) -> Upload:
    """Read one entry of `files`."""
    values: dict[str, Any] = item if isinstance(item, dict) else {}
    path, size, modified_s = values.get("path"), values.get("size_bytes"), values.get("modified_s", 0)
    if not isinstance(path, str) or not is_relative_path(path) or len(path) > 1024:
        raise Problem(400, "'path' of a file must be relative, without '..'.")
    if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES:
        raise Problem(400, "'size_bytes' of a file must be a whole number.")
    if type(modified_s) not in (int, float) or not math.isfinite(modified_s):
        raise Problem(400, "'modified_s' of a file must be a number.")
    return Upload(path, size, float(modified_s))


def _title(uploads: list[Upload]) -> str:
    if not uploads or len(uploads) > MAX_FILES or len({one.path for one in uploads}) != len(uploads):
        raise Problem(400, f"'files' must list from 1 to {MAX_FILES} different files.")
    return uploads[0].path.partition("/")[0]


def _check_room(root: Path, uploads: list[Upload]) -> None:
    """Refuse, before anything is sent, what the disk has no room for."""
    while not root.exists():
        root = root.parent
    needed, free = sum(one.size_bytes for one in uploads), shutil.disk_usage(root).free
    if needed > free - _KEPT_FREE_BYTES:
        raise Problem(
            507,
            f"It has {needed / 1e6:,.0f} MB, and the disk of the store {free / 1e6:,.0f} MB free: delete "
            "captures, or make room otherwise.",
        )


_ID = "([0-9a-f]{16})"
ROUTES = [
    (r"jaxprof/api/imports", ImportsHandler),
    (rf"jaxprof/api/imports/{_ID}", ImportHandler),
    (rf"jaxprof/api/imports/{_ID}/(\d{{1,5}})", PieceHandler),
]
