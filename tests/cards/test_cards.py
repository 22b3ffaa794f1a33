"""Cards: what they say, that no text of a capture becomes markup, and that they read well in Chromium."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser

from jupyterlab_jaxprof.captures import CaptureFile, Record, Status
from jupyterlab_jaxprof.cards import MIME_TYPE, bundle
from tests.support.browser import chromium

ID = "20261130-094001-993-cb3da3"
HERE = Path("/home/me/.local/share/jupyter/jaxprof/captures") / ID


def record(**changes: object) -> Record:
    steps = {"name": "train_step", "count": 3, "median_ms": 1.63, "min_ms": 1.52, "max_ms": 40.2}
    steps["durations_ms"] = [40.2, 1.63, 1.52]
    fields = {
        "id": ID,
        "kind": "trace",
        "name": "baseline",
        "created": "2026-11-30T09:40:01.993Z",
        "status": Status.OK,
        "environment": {
            "devices": [{"id": number, "platform": "gpu", "kind": "NVIDIA H200"} for number in (0, 1)]
        },
        "files": (
            CaptureFile("plugins/profile/x/vm.xplane.pb", 1_284_033, "xplane"),
            CaptureFile("plugins/profile/x/vm.trace.json.gz", 284_033, "trace_json"),
        ),
        "summary": {
            "headline": {"label": "step", "value": 1.63, "unit": "ms"},
            "wall_ms": 14.2,
            "steps": steps,
        },
        "xprof_run": f"{ID}/x",
    }
    return Record(**(fields | changes))


class Outline(HTMLParser):
    """The elements of a card with the names of their attributes, its text, and its links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""
        self.links: list[dict[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == [], "an element was not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        self._open.append(tag)
        if tag == "a":
            self.links.append({name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n" if "style" not in self._open else ""


def shown(**changes: object) -> tuple[str, Outline]:
    made = bundle(record(**changes), directory=HERE, in_store=True)
    return made["text/plain"], Outline(made["text/html"])


@pytest.fixture(autouse=True)
def base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXPROF_BASE_URL", "/user/me@host.org/")


def test_a_card_says_what_was_captured() -> None:
    text, outline = shown()
    for form in (text, outline.text):
        for fact in (
            "trace", "baseline", "ok", "2026-11-30 09:40 UTC", "train_step", "1.63 ms", "1.52 ms", "40.2 ms",
            "14.2 ms", "2 × NVIDIA H200", "2 files, 1.57 MB", "vm.xplane.pb", "1.28 MB", "vm.trace.json.gz",
            "284 kB", str(HERE),
        ):  # fmt: skip
            assert fact in form, fact
    (link,) = outline.links
    assert (link["data-jaxprof-run"], link["data-jaxprof-tool"]) == (f"{ID}/x", "trace_viewer@")
    assert (link["target"], link["rel"]) == ("_blank", "noopener")
    address = urlsplit(link["href"])
    assert (address.scheme, address.netloc, address.path) == ("", "", "/user/me@host.org/jaxprof/xprof")
    assert parse_qs(address.query) == {"run": [f"{ID}/x"], "tool": ["trace_viewer@"]}


@pytest.mark.parametrize("status", [Status.PARTIAL, Status.FAILED, Status.INTERRUPTED])
def test_what_went_wrong_is_said_with_its_reason(status: Status) -> None:
    notices = ("The Python tracer was on.", "Two events are missing.")
    text, outline = shown(
        status=status, reason="The cell raised ValueError.", notices=notices, files=(), xprof_run=None,
        summary={}, environment={},
    )  # fmt: skip
    for form in (text, outline.text):
        for fact in (str(status), "The cell raised ValueError.", *notices, "none"):
            assert fact in form, fact
        assert "XProf" not in form
    assert outline.links == []


def test_a_number_is_said_once() -> None:
    headline = {"label": "wall time", "value": 14.2, "unit": "ms"}
    text, outline = shown(summary={"headline": headline, "wall_ms": 14.2})
    assert text.count("14.2 ms") == outline.text.count("14.2 ms") == 1
    assert (
        shown(summary={"headline": headline | {"label": "busy"}, "wall_ms": 20})[1].text.count("14.2 ms") == 1
    )


@pytest.mark.parametrize("label", ["wall time", "from start to stop"])
def test_a_headline_that_is_the_wall_time_keeps_its_own_label(label: str) -> None:
    headline = {"label": label, "value": 5440.0, "unit": "ms"}
    text, html = shown(summary={"headline": headline, "wall_ms": 5440.0, "steps": None})
    for form in (text, html.text):
        assert form.count("5.44 s") == 1
        assert label in form


def test_without_a_server_the_card_says_how_to_open_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAXPROF_BASE_URL")
    text, outline = shown()
    for form in (text, outline.text):
        assert "sidebar" in form
        assert f"xprof --logdir {HERE.parent}" in form
    assert outline.links == []


def test_outside_the_store_the_card_says_so() -> None:
    made = bundle(record(), directory=Path("/data/my traces") / ID, in_store=False)
    for form in (made["text/plain"], Outline(made["text/html"]).text):
        assert "outside the store: the sidebar doesn't list it" in form
        assert "xprof --logdir '/data/my traces'" in form
    assert "<a " not in made["text/html"]
    assert made[MIME_TYPE]["in_store"] is False


@pytest.mark.parametrize(
    ("base", "start"),
    [
        ("/", "/jaxprof/"), ("/user/alice", "/user/alice/jaxprof/"),
        ("https://hub.org/a/", "https://hub.org/a/"),
        ("javascript:alert(1)//", None), ("//evil.org/", None), ("", None),
        ('/"><script>/', '/"><script>/jaxprof/'),
    ],
)  # fmt: skip
def test_base_urls(monkeypatch: pytest.MonkeyPatch, base: str, start: str | None) -> None:
    monkeypatch.setenv("JAXPROF_BASE_URL", base)
    links = shown()[1].links
    assert [link["href"].startswith(start or "?") for link in links] == ([True] if start else [])


HOSTILE = [
    "</style><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "<!--",
    "]]>",
    "&lt;b&gt;", "{{7*7}} ${7*7}", "\u202egnp.exe", "javascript:alert(1)", "\x1b[2J\x1b]0;owned\x07",
    "a\r\nb\u2028c\0", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_a_capture_becomes_markup_or_commands_a_terminal(hostile: str) -> None:
    def changes(text: str) -> dict[str, object]:
        return {
            "kind": text, "name": text, "reason": text, "notices": (text, text), "notebook": text,
            "magic": text,
            "cell": text, "notes": text, "files": (CaptureFile(f"d/{text}", 1, text),),
            "environment": {"devices": [{"kind": text, "platform": text}, text]},
            "summary": {"wall_ms": 1, "headline": {"label": text, "value": 1, "unit": text},
                        "steps": {"name": text, "count": 2, "median_ms": 1, "durations_ms": [1, 2]}},
        }  # fmt: skip

    made = bundle(record(**changes(hostile)), directory=Path("/x") / "plain", in_store=True)
    plain = bundle(record(**changes("plain")), directory=Path("/x") / "plain", in_store=True)
    assert Outline(made["text/html"]).elements == Outline(plain["text/html"]).elements
    assert made["text/plain"].count("\n") == plain["text/plain"].count("\n")
    for form in (made["text/plain"], made["text/html"]):
        form.encode("utf-8")
        odd = {character for character in form if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
        assert odd <= {"\n"}
    json.dumps(made, allow_nan=False)


def test_an_enormous_capture_has_a_small_card() -> None:
    count = 100_000
    made = bundle(
        record(
            name="x" * 200,
            reason="r" * 100_000,
            notices=tuple(f"notice {number} " + "n" * 10_000 for number in range(500)),
            files=tuple(
                CaptureFile(f"plugins/profile/x/{number}.xplane.pb", 10**6, "xplane")
                for number in range(1000)
            ),
            summary={"steps": {"count": count, "median_ms": 1.0, "durations_ms": [1.0] * count}},
        ),
        directory=HERE,
        in_store=True,
    )
    assert len(made["text/html"]) < 100_000
    assert len(made["text/plain"]) < 100_000
    assert "1,000 files, 1.00 GB" in made["text/plain"]
    assert "and 992 more" in made["text/plain"]
    assert "durations_ms" not in made[MIME_TYPE]["summary"]["steps"]


def test_the_json_form_is_the_record() -> None:
    kept = record(summary={"steps": {"count": 1000, "durations_ms": [1.5] * 1000}})
    data = bundle(kept, directory=HERE, in_store=True)[MIME_TYPE]
    assert data["size_bytes"] == 1_568_066
    assert data["directory"] == str(HERE)
    assert len(data["summary"]["steps"]["durations_ms"]) == 1000
    assert Record.from_json(data) == kept


@pytest.mark.parametrize(
    "durations",
    [[], [1.0], [0.0, 0.0], [None, 1.0, None], [1.0, 2.0], [1.0] * 61, [5.0, *[1.0] * 999], [1e300, 1e-9]],
)
def test_any_durations_can_be_drawn(durations: list[float | None]) -> None:
    steps = {"name": "s", "count": len(durations) or 1, "median_ms": 1.0, "durations_ms": durations}
    text, outline = shown(summary={"steps": steps})
    bars = sum("style" in element and element[0] == "span" for element in outline.elements)
    assert bars <= 60
    assert (bars > 0) == (sum(value is not None for value in durations) > 1 and any(durations))
    assert "s" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


# For each text: its contrast with what is behind it (WCAG 2), and whether it fits in its card.
MEASURE = """() => {
  const parse = text => { const [r, g, b, a = 1] = text.match(/[0-9.]+/g).map(Number); return [r, g, b, a]; };
  const over = ([r, g, b, a], under) => [r, g, b].map((value, i) => value * a + under[i] * (1 - a));
  const behind = element => element
    ? over(parse(getComputedStyle(element).backgroundColor), behind(element.parentElement))
    : [255, 255, 255];
  const light = colour => colour
    .map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const card = document.querySelector('.jaxprof-card');
  const right = card.getBoundingClientRect().right + 1;
  const found = [];
  for (const element of card.querySelectorAll('*:not(style)')) {
    const text = [...element.childNodes].filter(node => node.nodeType === 3 && node.textContent.trim());
    if (!text.length) continue;
    const under = behind(element);
    const shades = [light(over(parse(getComputedStyle(element).color), under)), light(under)];
    const [bright, dim] = shades.sort((x, y) => y - x);
    const box = element.getBoundingClientRect();
    found.push({text: element.textContent, contrast: (bright + 0.05) / (dim + 0.05),
                inside: box.right <= right && box.height > 0});
  }
  return found;
}"""


def theme(name: str) -> str:
    """Give the variables of a theme of the installed JupyterLab."""
    path = Path(sys.prefix, f"share/jupyter/lab/themes/@jupyterlab/theme-{name}-extension/index.css")
    variables = re.findall(r"(--(?:jp|md)-[\w-]+:[^;{}]+);", path.read_text("utf-8"))
    assert len(variables) > 100
    return ":root{" + ";".join(variables) + "}"


# The system's scheme, the body's attributes, and the style sheet that the front end brings.
PLACES: dict[str, tuple[str, str, str]] = {
    "a page, light": ("light", "", ""),
    "a page, dark": ("dark", "", ""),
    "JupyterLab dark on a light system": ("light", 'data-jp-theme-light="false"', "dark"),
    "JupyterLab light on a dark system": ("dark", 'data-jp-theme-light="true"', "light"),
    "VS Code dark": (
        "dark",
        'class="vscode-dark" style="--vscode-editor-background:#1e1e1e;--vscode-foreground:#ccc"',
        "",
    ),
}


@pytest.mark.parametrize("width", [900, 340])
@pytest.mark.parametrize("place", PLACES)
def test_cards_can_be_read_everywhere(browser: Browser, place: str, width: int) -> None:
    scheme, attributes, sheet = PLACES[place]
    made = bundle(
        record(
            status=Status.PARTIAL, reason="Some events are missing.", notices=("A notice.",), name="n" * 150
        ),
        directory=Path("/a" * 60) / ID,
        in_store=True,
    )
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 700})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    variables = theme(sheet) if sheet else ""
    page.set_content(f"<!doctype html><style>{variables}</style><body {attributes}>{made['text/html']}")
    found = page.evaluate(MEASURE)
    page.close()
    assert len(found) > 12
    for item in found:
        assert item["contrast"] >= 4.5, item
        assert item["inside"], item
    assert requests == []
