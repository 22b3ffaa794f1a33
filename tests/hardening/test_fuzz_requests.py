"""Every route of the server with anything in its address, query, headers and body; and XProf's gate."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import strategies as st
from werkzeug.wrappers import Response

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.xprof_rules import DATA_ROUTES, PARAMETERS, PREFIX, XProfRules
from tests.support.captures import content
from tests.support.fuzz_checks import assert_sentence
from tests.support.fuzzing import fuzzed
from tests.support.odd_values import NUMBERS, odd_json, odd_text, pool
from tests.support.servers import TOKEN, Server, running_server

GONE = "20200101-000000-000-abcdef"
#: `<id>`: a capture's that is there, one's that isn't, or something else. `<text>`, `<number>`: anything.
ADDRESSES = (
    "status", "captures", "captures/<id>", "captures/<id>/history", "captures/<id>/files/<path>", "settings",
    "captures/<id>/archive", "compare", "imports", "imports/<hex>", "imports/<hex>/<number>", "running",
    "kernels/<text>/usage", "patterns/<text>", "viewers/<text>", "<text>", "captures/<text>",
    "imports/<text>", "captures/<id>/<text>",
)  # fmt: skip
METHODS = ("GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "FETCH")
QUERIES = ("offset", "limit", "kind", "notebook", "q", "ids", "id", "no_track_activity", "x", "")
KEYS = (
    "name", "notes", "pinned", "action", "path", "files", "defaults", "size_limit", "size_bytes",
    "modified_s", "x",
)  # fmt: skip
RANGES = (
    "bytes=0-0", "bytes=-5", "bytes=5-", "bytes=" + "9" * 5000 + "-", "bytes=-" + "9" * 30, "bytes=0-1,3-4",
    "bytes=5-1", "bytes=²-", "bytes=-0", "items=1-2", "bytes=", "bytes=" + "9" * 30 + "-",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One request, with `<id>` and the rest still to be filled in."""

    method: str
    address: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    body: bytes


def _part(chance: Random) -> str:
    return chance.choice(
        [odd_text(chance), str(chance.choice(NUMBERS)), "9" * 5000, "../../etc/passwd", "%2e%2e/x"]
    )


def _text(chance: Random) -> str:
    return quote(
        _part(chance).encode("utf-8", "surrogatepass"), safe=chance.choice(["", "/%:;=@", "/%<>\"'{}|\\^`"])
    )


def _body(chance: Random) -> bytes:
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(
            [b"", b"{", b"[]", b"null", b"\xff", b"[" * 50_000, b'{"a":' * 50_000, b"1" * 5000]
        )
    if kind < 0.3:
        files = [
            {"path": _part(chance), "size_bytes": chance.choice(NUMBERS), "modified_s": odd_json(chance, 0)}
        ]
        return json.dumps({"files": files * chance.choice([1, 1, 2])}).encode()
    if kind < 0.4:
        path = _part(chance)
        return json.dumps({"path": path if path.strip("/. ") else "x"}).encode()
    keys = [chance.choice(KEYS) for _ in range(chance.randrange(1, 3))]
    return json.dumps({key: odd_json(chance) for key in keys if key != "path"}).encode()


def _request(chance: Random) -> Request:
    address = chance.choice(ADDRESSES)
    for mark in ("<text>", "<path>", "<number>", "<hex>", "<id>"):
        if mark in address and (mark != "<id>" or chance.random() < 0.4):
            known = {"<number>": "0", "<hex>": "0123456789abcdef", "<id>": GONE}.get(mark, "vm.xplane.pb")
            address = address.replace(mark, known if chance.random() < 0.3 else _text(chance) or "x")
    query = tuple(
        (chance.choice(QUERIES), chance.choice([_text(chance), "<id>", GONE]))
        for _ in range(chance.randrange(4))
    )
    headers = {"Range": chance.choice(RANGES)} if "files" in address and chance.random() < 0.7 else {}
    if chance.random() < 0.1:
        headers["If-Range"] = headers["If-None-Match"] = chance.choice(["*", '"x"', "W/x", "9" * 3000])
    return Request(chance.choice(METHODS), address, query, headers, _body(chance))


class Client:
    """One connection to the server, kept open; it is logged in."""

    def __init__(self, server: Server, capture_id: str) -> None:
        self._place = urlsplit(server.url)
        self._capture_id = capture_id
        self._connection = self._connect()
        self._log_path, self._read = server.log_path, 0

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._place.hostname or "", self._place.port or 0, timeout=120)

    def send(self, request: Request) -> tuple[int, str, bytes]:
        """Give status, content type and body of the answer."""
        query = "&".join(f"{name}={value}" for name, value in request.query)
        address = f"{self._place.path}jaxprof/api/{request.address}?{query}".replace("<id>", self._capture_id)
        headers = {"Authorization": f"token {TOKEN}"}
        headers |= {name: value.encode().decode("latin-1") for name, value in request.headers.items()}
        try:
            self._connection.request(request.method, address, request.body, headers)
            answer = self._connection.getresponse()
            return answer.status, answer.headers.get("Content-Type") or "", answer.read()
        except (http.client.HTTPException, OSError):  # the server closes where a request is no HTTP
            self._connection.close()
            self._connection = self._connect()
            return 400, "", b""

    def new_log(self) -> str:
        """Give what the server has logged since this was asked last."""
        with self._log_path.open("rb") as file:
            file.seek(self._read)
            said = file.read()
        self._read += len(said)
        return said.decode(errors="replace")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with running_server("/user/me@host.org/") as server:
        store = Store(server.store)
        for name in ("one", "two"):
            with store.begin("time", name) as draft:
                (draft.directory / "vm.xplane.pb").write_bytes(bytes(1000))
                record = draft.publish(status=Status.OK)
        yield Client(server, record.id)


@fuzzed(500, request_=pool(_request, 20_000))
def test_any_request_is_answered_with_json_and_a_sentence(client: Client, request_: Request) -> None:
    status, kind, body = client.send(request_)
    log = client.new_log()
    assert "Traceback" not in log, (request_, log[-3000:])
    assert status < 500 or status == 507, (request_, status, body[:500])
    if request_.method in ("HEAD", "OPTIONS"):
        return
    if status >= 400 and kind.startswith("application/json"):
        assert_sentence(json.loads(body)["message"])
    elif status == 200 and kind.startswith("application/json"):
        json.loads(body, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON: {request_}"))
    if status == 201:  # an import that was begun: begin no sixteen of them
        number = json.loads(body)["id"]
        client.send(Request("PUT", f"imports/{number}/0", request_.query, {}, request_.body))
        client.send(Request("GET", f"imports/{number}", (), {}, b""))
        assert client.send(Request("DELETE", f"imports/{number}", (), {}, b""))[0] == 204


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    store = Store(tmp_path_factory.mktemp("gate") / "store")
    with store.begin("trace", "gate") as draft:
        session = draft.directory / "plugins" / "profile" / draft.session
        session.mkdir(parents=True)
        (session / "vm.xplane.pb").write_bytes(content("no_steps.xplane.pb"))
        record = draft.publish(status=Status.OK)
    return store.captures_dir, record.xprof_run or ""


_ROUTES = (
    *sorted(DATA_ROUTES),
    "/",
    "",
    "/index.html",
    "/trace_viewer@",
    "/-/run",
    "/../data",
    "/capture_profile",
    "/x y",
)
#: What XProf looks for in a trace, and makes no file's name of.
_TEXTS = ("event_name", "search_prefix")
_VALUES = (
    "<run>",
    "<run>",
    "<run>/",
    "../..",
    "<run>/../x",
    "trace_viewer@",
    "vm",
    "json",
    "1",
    "true",
    "%ff",
    "%00",
)


def _gate_query(chance: Random) -> str:
    names = (*PARAMETERS, "run", "run", "run", "session_path", "run_path", "token", "x")
    pairs = [
        (chance.choice(names), chance.choice([*_VALUES, _text(chance), "9" * 5000]))
        for _ in range(chance.randrange(6))
    ]
    return chance.choice(["", "", "run=<run>&"]) + "&".join(f"{name}={value}" for name, value in pairs)


@fuzzed(
    500,
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "POST"]),
    route=st.one_of(st.sampled_from(_ROUTES), pool(odd_text, 500)),
    query=pool(_gate_query, 20_000),
)
def test_xprof_gets_only_what_it_may(logdir: tuple[Path, str], method: str, route: str, query: str) -> None:
    directory, run = logdir
    passed: list[dict[str, str]] = []

    def xprof(environ: dict[str, Any], start_response: Any) -> Any:
        passed.append(dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)))
        assert environ["PATH_INFO"].startswith(PREFIX)
        return Response("{}", mimetype="application/json")(environ, start_response)

    answered: list[tuple[str, list[tuple[str, str]]]] = []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": (PREFIX + route).encode("utf-8", "surrogatepass").decode("latin-1"),
        "QUERY_STRING": query.replace("<run>", run),
        "SERVER_NAME": "x", "SERVER_PORT": "80", "wsgi.url_scheme": "http", "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_COOKIE": "secret", "wsgi.input": None,
    }  # fmt: skip
    gate = Gate(xprof, XProfRules(directory))
    body = b"".join(gate(environ, lambda status, headers, *_: answered.append((status, headers))))
    status = int(answered[0][0][:3])
    assert status < 500, (route, query, body)
    if status >= 400 and method != "HEAD":
        assert_sentence(json.loads(body)["message"])
    for parameters in passed:
        assert set(parameters) <= {"run", *PARAMETERS}
        assert parameters.get("run", run) == run
        assert "HTTP_COOKIE" not in environ
        paths = [value for name, value in parameters.items() if name not in _TEXTS]
        assert not any(part in (".", "..") for value in paths for part in value.split("/"))
