"""What stands in front of a viewer's WSGI application, whichever it is.

A viewer's rules say which requests pass and what they become; the gate takes away credentials, turns what the
viewer raises into JSON with a sentence, and keeps every answer within what jupyter-server-proxy passes on.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol
from urllib.parse import unquote_plus

from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers.protocol import READY_PATH

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# jupyter-server-proxy answers 599, with no word why, to a body over 100 MiB (tornado's max_buffer_size); the
# head of the answer counts too.
MAX_BODY_BYTES = 104_857_600 - (1 << 20)
# What may hold a token of Jupyter's: REQUEST_URI has the query as it came.
CREDENTIALS = (
    *("HTTP_COOKIE", "HTTP_AUTHORIZATION", "HTTP_X_XSRFTOKEN", "HTTP_PROXY_AUTHORIZATION"),
    *("HTTP_REFERER", "REQUEST_URI", "RAW_URI"),
)
# Jupyter takes its token from the query as well.
CREDENTIAL_PARAMETERS = frozenset(["token"])
# XProf and its plugin in TensorBoard allow this host, from which no tool of theirs loads anything.
UNUSED_SOURCE = "https://cdn.jsdelivr.net/npm/"


class Refused(Exception):
    """A request that does not pass; the message is a sentence for the user."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Rules(Protocol):
    """What is particular about one viewer."""

    title: str

    def check(self, environ: Environ) -> Response | None:
        """Let the request pass (None), perhaps rewritten in place, or answer it here.

        Raises:
            Refused: if it must not pass.
        """
        ...

    def working(self, environ: Environ) -> AbstractContextManager[None]:
        """What to do around the viewer's work on a request that passed."""
        ...

    def explain(self, environ: Environ, error: Exception) -> str:
        """Say in a sentence what an exception of the viewer means."""
        ...

    def mend(self, environ: Environ, response: Response) -> Response:
        """Change the viewer's answer where it needs it."""
        ...


class Gate:
    """The WSGI application that is served: the viewer's, behind its rules."""

    def __init__(
        self, application: Application, rules: Rules, *, notice: str = "", external_scripts: bool = True
    ) -> None:
        self._application = application
        self._rules = rules
        self._notice = notice
        self._external_scripts = external_scripts
        self._lock = threading.Lock()
        self._busy = 0
        self._served = 0
        self._idle_since = time.monotonic()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if environ.get("PATH_INFO") == READY_PATH:
            return self._describe()(environ, start_response)
        with self._counted():
            response = self._answer(environ)
        return response(environ, start_response)

    def _describe(self) -> Response:
        """What the supervisor asks for: whether anybody waits for an answer, and for how long nobody has."""
        with self._lock:
            idle_s = 0.0 if self._busy else time.monotonic() - self._idle_since
            state = {"busy": self._busy, "idle_s": idle_s, "served": self._served, "notice": self._notice}
        return json_response(200, state)

    @contextmanager
    def _counted(self) -> Generator[None]:
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._served += 1
                self._idle_since = time.monotonic()

    def _answer(self, environ: Environ) -> Response:
        _remove_credentials(environ)
        try:
            _require_plain_path(environ)
            response = self._rules.check(environ)
            if response is None:
                with self._rules.working(environ):
                    response = Response.from_app(self._application, environ, buffered=True)
                response = self._rules.mend(environ, response)
            response = self._within_limit(response)
        except Refused as refusal:
            response = json_response(refusal.status, {"message": str(refusal)})
        except Exception as error:  # noqa: BLE001 - else the connection is just dropped
            traceback.print_exc(file=sys.stderr)
            response = json_response(500, {"message": self._rules.explain(environ, error)})
        _confine(response, external_scripts=self._external_scripts)
        return response

    def _within_limit(self, response: Response) -> Response:
        size = sum(len(part) for part in response.iter_encoded())
        if size <= MAX_BODY_BYTES:
            return response
        raise Refused(
            413,
            f"{self._rules.title}'s answer has {size >> 20} MiB, more than the proxy passes on (100 MiB): "
            "look at a shorter stretch of time or another tool, or download the trace and open it locally.",
        )


def json_response(status: int, data: Any) -> Response:
    """An answer in JSON that no cache keeps."""
    return Response(
        json.dumps(data),
        status,
        {"Cache-Control": "no-store"},
        content_type="application/json; charset=utf-8",
    )


def _remove_credentials(environ: Environ) -> None:
    for name in CREDENTIALS:
        environ.pop(name, None)
    parts = environ.get("QUERY_STRING", "").split("&")
    environ["QUERY_STRING"] = "&".join(
        part for part in parts if unquote_plus(part.partition("=")[0]) not in CREDENTIAL_PARAMETERS
    )


def _require_plain_path(environ: Environ) -> None:
    """Refuse what a viewer might take for another address than its rules have checked."""
    if {".", ".."} & set(environ.get("PATH_INFO", "").split("/")):
        raise Refused(404, "There is no such address: it has '.' or '..' in its path.")


def _confine(response: Response, *, external_scripts: bool) -> None:
    """Only pages of this server may frame the viewer, and those may; no more comes from elsewhere than must.

    Without `external_scripts` nothing at all does, except into a frame of another origin.
    """
    policy: list[str] = []
    for directive in response.headers.get("Content-Security-Policy", "").split(";"):
        name, *sources = directive.split() or [""]
        if not name or name == "frame-ancestors":
            continue
        if external_scripts or name == "frame-src":
            sources = [source for source in sources if source != UNUSED_SOURCE]
        else:
            sources = [source for source in sources if not _is_external(source)]
        policy.append(" ".join([name, *(sources or ["'none'"])]))
    if not external_scripts and not any(part.startswith(("default-src", "script-src")) for part in policy):
        policy.append("script-src 'self' 'unsafe-inline' 'unsafe-eval'")
    response.headers["Content-Security-Policy"] = ";".join([*policy, "frame-ancestors 'self'"])
    response.headers.pop("X-Frame-Options", None)
    response.headers["X-Content-Type-Options"] = "nosniff"


def _is_external(source: str) -> bool:
    """Whether a source of a policy is a host or a scheme, rather than a keyword, a hash or own data."""
    return not source.startswith("'") and source not in ("data:", "blob:", "filesystem:")
