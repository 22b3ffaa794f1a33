"""What all REST handlers share: JSON errors with a sentence, checked bodies, work off the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_server.base.handlers import APIHandler
from tornado import web

from jupyterlab_jaxprof.captures import (
    InvalidValue,
    RecordError,
    StoreError,
    UnknownCapture,
    UnreadableCapture,
)
from jupyterlab_jaxprof.captures.names import ID_PATTERN

if TYPE_CHECKING:
    from jupyterlab_jaxprof.captures import Store
    from jupyterlab_jaxprof.server.app import JaxProfApp

T = TypeVar("T")

RESOURCE = "jaxprof"
BODY_LIMIT_BYTES = 1 << 20
CAPTURE_ID = f"({ID_PATTERN.pattern})"

DEFAULT_SENTENCES = {
    400: "The request could not be understood.",
    403: "This request is not allowed: log in to this Jupyter server, or reload the page if you have.",
    404: "There is nothing at this address.",
    405: "This address does not take such a request.",
    413: "The request is too large.",
    500: "The server failed on this request; its log says why.",
}


class ApiHandler(APIHandler):
    """A REST handler under `jaxprof/`: Jupyter's login and authorizer apply, errors are sentences in JSON."""

    auth_resource = RESOURCE

    @property
    def jaxprof(self) -> JaxProfApp:
        """The extension's application."""
        return self.settings["jaxprof"]

    @property
    def store(self) -> Store:
        """The captures."""
        return self.jaxprof.store

    async def off_loop(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run work that touches the disk in a thread; the store's complaints become HTTP errors.

        Raises:
            web.HTTPError: 400, 404, 409 or 500 with the store's own sentence.
        """
        loop = asyncio.get_running_loop()
        reads = self.request.method in ("GET", "HEAD")
        executor = self.jaxprof.readers if reads else self.jaxprof.writers
        try:
            return await loop.run_in_executor(executor, lambda: function(*args, **kwargs))
        except (StoreError, RecordError) as error:
            raise as_http_error(error) from error

    async def prepare(self) -> None:
        """Let nobody in without a login, whatever the method and the address."""
        await super().prepare()
        if not self.current_user:
            raise web.HTTPError(403)

    def json_object(self, types: Mapping[str, type], *, required: bool = False) -> dict[str, Any]:
        """The request's body: a JSON object with some (or all: `required`) of the keys of `types`, no other.

        Raises:
            web.HTTPError: 400 or 413, saying what is wrong with the body.
        """
        data = self.json_body()
        expected = ", ".join(types)
        for key, value in data.items():
            if key not in types:
                raise Problem(400, f"Unknown key {json.dumps(key)[:80]}; this address takes: {expected}.")
            if type(value) is not types[key]:
                raise Problem(400, f"'{key}' must be {JSON_NAMES[types[key]]}.")
        if not data or (required and len(data) != len(types)):
            raise Problem(400, f"The body lacks a key; this address takes: {expected}.")
        return data

    def json_body(self) -> dict[str, Any]:
        """The request's body: any JSON object.

        Raises:
            web.HTTPError: 400 or 413, saying what is wrong with the body.
        """
        body = self.request.body
        if len(body) > BODY_LIMIT_BYTES:
            raise Problem(
                413, f"The body is larger than {BODY_LIMIT_BYTES >> 20} MiB; nothing here needs that much."
            )
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Problem(400, "The body must be a JSON object.") from error
        if not isinstance(data, dict):
            raise Problem(400, "The body must be a JSON object.")
        return data

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number from the query, between `low` and `high`.

        Raises:
            web.HTTPError: 400 if it is something else.
        """
        text = self.get_query_argument(name, None)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19) or not low <= int(text) <= high:
            raise Problem(400, f"'{name}' must be a whole number from {low} to {high}.")
        return int(text)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer `{"message": sentence}`; an unexpected error's text stays in the log."""
        error = kwargs.get("exc_info", (None, None))[1]
        message = DEFAULT_SENTENCES.get(status_code) or HTTPStatus(status_code).phrase + "."
        if isinstance(error, Problem):
            message = error.sentence
            for name, value in error.headers.items():
                self.set_header(name, value)
        elif isinstance(error, web.MissingArgumentError):
            message = f"The query lacks '{error.arg_name}'."
        elif status_code == 400 and isinstance(error, web.HTTPError) and error.log_message:
            message = "The request could not be understood: its address or query is not valid text."
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps({"message": message}))

    def answer(self, data: Any) -> None:
        """Answer with JSON."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(data))


JSON_NAMES: dict[type, str] = {str: "a string", bool: "true or false", int: "a whole number", list: "a list"}


STATUSES: dict[type[Exception], int] = {UnknownCapture: 404, InvalidValue: 400, UnreadableCapture: 409}


class Problem(web.HTTPError):
    """An HTTP error with a sentence for the user."""

    def __init__(self, status_code: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status_code, sentence.replace("%", "%%"))
        self.sentence = sentence
        self.headers = headers or {}


def as_http_error(error: Exception) -> Problem:
    """The HTTP form of a complaint of the store; what the disk refuses is a 500 with its sentence."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return Problem(status, str(error))
    return Problem(500, str(error))


class UnknownRouteHandler(ApiHandler):
    """Any other address under `jaxprof/api/`."""

    async def prepare(self) -> None:
        """Refuse after the login has been checked."""
        await super().prepare()
        raise Problem(
            404, "There is no such address in this version of jupyterlab-jaxprof's server extension."
        )
