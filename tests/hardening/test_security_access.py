"""Nobody without Jupyter's login reaches a route; which there are is read from the running server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
import requests
import websocket
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from tests.server.conftest import publish_capture
from tests.support.servers import Server, running_server

pytestmark = pytest.mark.long

#: Also tells which routes there are: `routes.json` beside it.
AUTHORIZER = """
import inspect
import json
from pathlib import Path

from jupyter_server.auth import Authorizer

HERE = Path(__file__).parent

def tell_routes(application):
    rules = list(application.wildcard_router.rules)
    for outer in application.default_router.rules:
        rules += getattr(outer.target, "rules", [])
    found = [
        {
            "pattern": rule.matcher.regex.pattern,
            "module": rule.target.__module__,
        }
        for rule in rules if inspect.isclass(rule.target)
    ]
    (HERE / "routes.json").write_text(json.dumps(found))

class FromFile(Authorizer):
    async def is_authorized(self, handler, user, action, resource):
        if not (HERE / "routes.json").exists():
            tell_routes(handler.application)
        return (HERE / "allowed").exists()
"""
READS = ("GET", "HEAD", "OPTIONS")
CHANGES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass
class Opened:
    server: Server
    allowed: Path
    routes: list[str]
    """An address for each pattern of ours, and those of a capture that is there."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    place = tmp_path_factory.mktemp("authorizer")
    (place / "authorizers.py").write_text(AUTHORIZER)
    arguments = ["--ServerApp.authorizer_class=authorizers.FromFile"]
    with running_server("/user/alice/", arguments=arguments, python_path=[place]) as server:
        record = publish_capture(server.store, "one", {"a": b"x"})
        server.get("api/kernels")
        routes = [
            route
            for rule in json.loads((place / "routes.json").read_text())
            if re.search("jaxprof|xprof|tensorboard", rule["pattern"] + rule["module"])
            for route in examples(rule["pattern"], server.base_url, record.id)
        ]
        yield Opened(server, place / "allowed", routes)


def examples(pattern: str, base_url: str, capture: str) -> set[str]:
    """Give addresses that a pattern takes: with the shortest text for each part, and with a real capture."""
    path = example(parser.parse(pattern)).removeprefix(base_url)
    return {path, re.sub(r"captures/[0-9a-f-]{26}", f"captures/{capture}", path)}


def example(parsed: Any) -> str:
    """Make a text that a parsed regular expression takes."""
    text = ""
    for code, argument in parsed:
        if code is codes.LITERAL:
            text += chr(argument)
        elif code is codes.ANY:
            text += "x"
        elif code is codes.IN:
            first = argument[0]
            kind = {codes.CATEGORY_DIGIT: "1", codes.CATEGORY_WORD: "x"}
            text += kind.get(first[1]) or chr(first[1] if first[0] is codes.LITERAL else first[1][0])
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, inner = argument
            text += example(inner) * max(low, min(1, high))
        elif code is codes.SUBPATTERN:
            text += example(argument[-1])
        elif code is codes.BRANCH:
            text += example(argument[1][0])
        else:
            assert code is codes.AT, f"no example is known for {code}"
    return text


def test_all_routes_are_found(opened: Opened) -> None:
    assert len(opened.routes) > 25
    known = {"jaxprof/api/status", "jaxprof/xprof", "xprof", "xprof/x", "jaxprof-tensorboard/x", "jaxprof/x"}
    assert known <= set(opened.routes)
    assert sum("files" in path for path in opened.routes) == 2


def refuses(answer: requests.Response, *statuses: int) -> bool:
    return answer.status_code in statuses or (
        answer.status_code == 302 and "/login" in answer.headers["Location"]
    )


@pytest.mark.parametrize(
    ("headers", "query", "methods"),
    [
        ({}, "", (*READS, *CHANGES)),
        ({"Authorization": "token wrong"}, "", ("GET", "DELETE")),
        ({"Authorization": "token "}, "?token=wrong", ("GET", "POST")),
    ],
)
def test_without_a_login_nothing_is_reached(
    opened: Opened, headers: dict[str, str], query: str, methods: tuple[str, ...]
) -> None:
    with requests.Session() as session:
        for path, method in product(opened.routes, methods):
            answer = session.request(
                method,
                opened.server.url + path + query,
                headers=headers,
                data=b"{}" if method in CHANGES else None,
                allow_redirects=False,
                timeout=60,
            )
            if method != "OPTIONS":  # answers which methods there are, and reads nothing
                assert refuses(answer, 403, 405), (method, path, answer.status_code, answer.text[:200])
            assert answer.status_code == 403 or b"capture" not in answer.content.lower(), (method, path)


def test_no_socket_opens_without_a_login(opened: Opened) -> None:
    for path in opened.routes:
        address = opened.server.url.replace("http:", "ws:") + path
        with pytest.raises(websocket.WebSocketException) as refused:
            websocket.create_connection(address, timeout=20, redirect_limit=0).close()
        assert re.search("Redirect limit|status 40[0345]", str(refused.value)), (path, refused.value)
    events = opened.server.url.replace("http:", "ws:") + "api/events/subscribe"
    with pytest.raises(websocket.WebSocketBadStatusException):
        websocket.create_connection(events, timeout=20, redirect_limit=0)


def test_an_authorizer_that_denies_is_asked_everywhere(opened: Opened) -> None:
    assert not opened.allowed.exists()
    for path, method in product(opened.routes, ("GET", "HEAD", *CHANGES)):
        if path.startswith("jaxprof/static/"):
            continue
        answer = opened.server.request(method, path, data=b"{}" if method not in READS else None)
        # What is not there, or takes no such body, may be told first; nothing else.
        assert answer.status_code in (403, 404, 405), (method, path, answer.status_code)


@pytest.fixture
def browser(opened: Opened) -> Iterator[tuple[requests.Session, str]]:
    """A browser that has logged in: its cookies, and its XSRF token."""
    opened.allowed.touch()
    with requests.Session() as session:
        # one that is refused before its body is read ends its connection, at times before the answer is read
        again = HTTPAdapter(max_retries=Retry(connect=0, read=4, allowed_methods=None))
        session.mount("http://", again)
        session.get(f"{opened.server.url}jaxprof/xprof?token={opened.server.token}")
        page = session.get(f"{opened.server.url}jaxprof/xprof").text
        match = re.search(r'data-xsrf="([^"]+)"', page)
        assert match
        yield session, match.group(1)
    opened.allowed.unlink()


@pytest.mark.parametrize("attack", ["no XSRF token", "a wrong XSRF token", "another origin"])
def test_nothing_changes_from_elsewhere(opened: Opened, browser: Any, attack: str) -> None:
    session, xsrf = browser
    headers = {
        "no XSRF token": {},
        "a wrong XSRF token": {"X-XSRFToken": "wrong"},
        "another origin": {"X-XSRFToken": xsrf, "Origin": "https://evil.example"},
    }[attack]
    for path, method in product(opened.routes, CHANGES):
        address = opened.server.url + path
        answer = session.request(method, address, headers=headers, data=b"{}", allow_redirects=False)
        assert answer.status_code in (403, 404, 405), (method, path, answer.status_code)
    socket = opened.server.url.replace("http:", "ws:") + "xprof/x"
    cookie = "; ".join(f"{one.name}={one.value}" for one in session.cookies)
    with pytest.raises(websocket.WebSocketBadStatusException):
        websocket.create_connection(socket, cookie=cookie, origin="https://evil.example", timeout=20)
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert session.get(f"{opened.server.url}xprof/data/plugin/profile/runs", headers=image).status_code == 403
    assert opened.server.get_json("jaxprof/api/viewers/xprof")["state"] == "stopped"
    (row,) = opened.server.get_json("jaxprof/api/captures")["captures"]
    assert row["name"] == "one"
    assert not opened.server.get_json("jaxprof/api/running")["running"]


def test_no_other_origin_reads_an_answer(opened: Opened, browser: Any) -> None:
    session, _ = browser
    for path, method in product(opened.routes, ("GET", "OPTIONS")):
        headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"}
        answer = session.request(method, opened.server.url + path, headers=headers, allow_redirects=False)
        assert "Access-Control-Allow-Origin" not in answer.headers, (method, path)
        policy = answer.headers.get("Content-Security-Policy", "")
        assert "frame-ancestors 'self'" in policy or answer.status_code in (204, 302), (method, path)


@pytest.mark.parametrize("name", ["page.html", "image.svg", "page.xhtml", "data.xml", "code.js", "x.pdf"])
def test_a_file_of_a_capture_runs_nowhere(opened: Opened, browser: Any, name: str) -> None:
    session, _ = browser
    record = publish_capture(opened.server.store, "files", {name: b"<script>alert(1)</script>"})
    answer = session.get(f"{opened.server.api}captures/{record.id}/files/{name}")
    opened.server.request("DELETE", f"jaxprof/api/captures/{record.id}")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    policy = answer.headers["Content-Security-Policy"].replace(" ", "").split(";")
    assert {"default-src'none'", "sandbox"} <= set(policy)


def test_no_log_of_the_server_tells_the_token(opened: Opened) -> None:
    """After all the tests above, in whose addresses it has been."""
    assert opened.server.log
    lines = [line for line in opened.server.log.splitlines() if opened.server.token in line]
    assert not [line for line in lines if "?token=" not in line and "http" not in line], lines
