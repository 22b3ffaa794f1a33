"""Cards with findings: what is said first, every figure in text and HTML, the drawing, and how they read."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from jupyterlab_jaxprof.captures import Record
from jupyterlab_jaxprof.captures.record import DamagedRecord
from jupyterlab_jaxprof.captures.shapes import FINDING, SUMMARY, misfit
from jupyterlab_jaxprof.cards import MIME_TYPE, Paper, bundle, page, plain
from tests.cards.test_cards import HERE, HOSTILE, MEASURE, PLACES, Outline, browser, record, theme
from tests.support.findings import FINE, finding, note, summary

__all__ = ["browser"]  # a fixture


def made(*findings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    kept = record(findings=findings, summary=changes.pop("summary", summary()), **changes)
    return bundle(kept, directory=HERE, in_store=True)


def test_what_is_wrong_is_said_first_with_its_cost_and_all_that_is_known_of_it() -> None:
    bundled = made(finding(), note())
    text, html = bundled["text/plain"], Outline(bundled["text/html"]).text
    for form in (" ".join(text.split()), html):
        places = [
            form.index(fact)
            for fact in (
                "baseline", "The host starves the device: it waits for load_data",
                "The device was idle for 178 ms", "load_data takes 28.6 ms of a step",
                "The program makes each batch while the device waits", "Run load_data in a thread",
                "Make the batches once", "load_data, step 0: 1,204 ms to 1,233 ms",
                "jaxprof explain host-starves-device", "A batch is copied to the device in every step",
                "jax.device_put does not wait",
            )
        ]  # fmt: skip
        assert places == sorted(places)
        assert places[-1] < form.index("wall time") < form.index("Timeline")
        for cost in ("178 ms, 93 %", "1.31 ms, 0.69 %"):
            assert cost in form
    assert [element for element in Outline(bundled["text/html"]).elements if "open" in element] == [
        ("details", "class", "open")
    ], "the first problem alone is opened"


def test_figures_of_steps_devices_and_tables_are_in_both_forms() -> None:
    bundled = made(finding())
    for form in (" ".join(bundled["text/plain"].split()), Outline(bundled["text/html"]).text):
        for fact in (
            "Where the time of the median step goes (31.9 ms)", "29.9 ms, 94 %", "1.40 ms, 4.4 %", "1.9 %",
            "188 ms", "171 ms in 6 gaps", "1,203 ms", "1,395 ms", "Kernels (24)", "125 µs", "131 µs",
            "4.8 GB/s",
            "host to device, pageable", "6.29 MB", "jit(train_step)/jvp()/load_data · model.py:12",
            "API calls (101)", "and 100 more", "Python's calls", "load_data took 2.1 ms longer",
            "From the first step's start to the last step's end.",
        ):  # fmt: skip
            assert fact in form, fact
    assert "and 12 more" in bundled["text/html"]
    assert bundled[MIME_TYPE]["findings"][0]["id"] == "host-starves-device"
    assert bundled[MIME_TYPE]["summary"]["tables"]["kernels"][19]["count"] == 6


def test_what_the_steps_leave_out_is_said() -> None:
    whole = summary()
    whole["steps"] |= {
        "others": [{"name": "evaluate", "count": 5, "median_ms": 8.4}],
        "marks_dispatch": True,
        "device_ms": 7.61,
        "parts": None,
        "slowest": None,
    }
    bundled = made(summary=whole)
    for form in (" ".join(bundled["text/plain"].split()), Outline(bundled["text/html"]).text):
        assert "load_data (dispatch only), median" in form
        assert "they work 7.61 ms a step" in form
        assert "Where the time of the median step goes" not in form
    assert "5 × `evaluate`, median 8.40 ms" in " ".join(bundled["text/plain"].split())


def test_what_is_well_is_said_calmly() -> None:
    bundled = made(FINE)
    assert "✓ Nothing wrong: the device was busy 92 % of the time" in bundled["text/plain"]
    assert "jx-problem" not in bundled["text/html"].partition("</style>")[2]


def test_a_terminal_gets_its_own_width_and_colours() -> None:
    kept = record(findings=(finding(), note()), summary=summary(), xprof_run=None)
    for width in (40, 80, 110):
        text = plain(kept, directory=Path("/short"), in_store=True, paper=Paper(width))
        most = max(len(line) for line in text.splitlines() if "wall" not in line)
        assert most <= max(width, 76), text  # a table has its least width
    coloured = plain(kept, directory=HERE, in_store=True, paper=Paper(80, colours=True))
    bare = plain(kept, directory=HERE, in_store=True, paper=Paper(80))
    assert re.sub(r"\x1b\[\d+m", "", coloured) == bare
    assert "\x1b[1m" in coloured


def test_names_between_backticks_are_code_in_html() -> None:
    html = made(finding("`load`"), note("a ` alone"))["text/html"]
    assert "it waits for <code>load</code></strong>" in html
    assert "218 µs each, in a ` alone." in html
    whole = summary()
    whole["steps"]["slowest"][0]["why"] = "Longer: (`make_batch`)."
    html = made(summary=whole, notices=("Call `f`.",), reason="`g` raised.")["text/html"]
    for code in ("make_batch", "f", "g"):
        assert f"<code>{code}</code>" in html


def test_the_drawing_has_each_lane_gap_and_tooltip() -> None:
    outline = Outline(made(finding())["text/html"])
    lanes = [element for element in outline.elements if element[0] == "svg"]
    assert len(lanes) == 4
    assert "idle 28.5 ms: load_data" in outline.text
    assert "load_data 3: 31.5 ms" in outline.text
    assert not {"script", "foreignObject", "image", "use", "style"} & {
        element[0] for element in outline.elements if element[0] != "style"
    }
    text = made(finding())["text/plain"]
    (device,) = [line for line in text.splitlines() if line.strip().startswith("GPU 0  ") and "aaa" in line]
    assert 6 <= len(re.findall("[▁▂▃▄▅▆▇█]", device)) <= 12
    assert device.endswith("1.9 %")
    (steps,) = [line for line in text.splitlines() if line.count("|") == 6]
    assert "load_data" in steps


def test_the_lanes_of_several_processes_can_be_told_apart() -> None:
    devices = ["GPU 0 of process 0", "GPU 1 of process 1"]
    lanes = [
        {"label": label, "kind": kind, "intervals": [[1203.2, 1300.0]]}
        for device in devices
        for label, kind in ((device, "device"), (f"{device} collectives", "collectives"))
    ]
    bundled = made(finding(), summary=drawing(lanes=lanes))
    text = bundled["text/plain"]
    assert [line.split("  ")[2] for line in text.splitlines() if " of process " in line] == devices
    assert sum(line.startswith("      collectives  ") for line in text.splitlines()) == 2
    assert len(re.findall("jx-lane-name jx-part", bundled["text/html"])) == 2


def test_a_cause_has_its_colour_in_every_drawing() -> None:
    def tones(*causes: str) -> dict[str, str]:
        gaps = [
            {"start_ms": 1204.0 + 20 * n, "end_ms": 1220.0 + 20 * n - n, "device": "GPU 0", "cause": cause}
            for n, cause in enumerate(causes)
        ]
        html = made(finding(), summary=drawing(gaps=gaps))["text/html"]
        return {cause: tone for tone, cause in re.findall(r'jx-gap(\d)"></span> ([^<]*?) <strong>', html)}

    alone = tones("dispatching")["dispatching"]
    assert tones("dispatching", "Python", "sleep")["dispatching"] == alone
    many = tones(*"abcdefg")
    assert len({many[cause] for cause in "abcd"}) == 4
    assert many["other causes"] not in {many[cause] for cause in "abcd"}


def test_what_ran_several_at_a_time_has_no_share_of_the_time() -> None:
    whole = summary()
    whole["tables"]["annotations"] = [
        {"name": "load", "count": 30, "total_ms": 367.0, "share_wall": 1.92, "device_ms": None},
        {"name": "", "count": 1, "total_ms": 1.0, "share_wall": 1.0, "device_ms": None},
    ]
    bundled = made(summary=whole)
    for form in (" ".join(bundled["text/plain"].split()), Outline(bundled["text/html"]).text):
        assert "192 %" not in form
        assert "Several ran at a time" in form
        assert "(no name)" in form
        assert "100 %" in form


def test_many_steps_with_some_slow_ones_are_not_drawn_as_slow() -> None:
    durations_ms = [1.0] * 5000
    durations_ms[40::80] = [9.0] * len(durations_ms[40::80])
    whole = summary()
    whole["steps"] |= {"count": 5000, "durations_ms": durations_ms, "median_ms": 1.0, "max_ms": 9.0}
    html = made(summary=whole)["text/html"].partition("</style>")[2]
    assert "class=jx-beyond" not in html
    assert "steps 0 to 83: median 1.00 ms, longest 9.00 ms" in html


def test_a_moment_is_told_once() -> None:
    place = {"start_ms": 13.8983861, "end_ms": 13.8983861, "label": "x"}
    assert "see:  x: 13.898 ms in the trace" in made(finding() | {"ranges": [place]})["text/plain"]


def drawing(**changes: Any) -> dict[str, Any]:
    found = summary()
    found["timeline"]["drawing"] |= changes
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {"lanes": []}, {"lanes": None}, {"gaps": None}, {"start_ms": None}, {"end_ms": 1203.2}, {"end_ms": 0},
        {"lanes": [None, {}, {"intervals": [None, [], [1], [None, 2], ["a", "b"], [True, 2], [9, 3]]}]},
        {"lanes": [{"kind": "device", "intervals": [[-1e300, 1e300], [1203.2, 1203.2, None]]}]},
        {"gaps": [None, {}, {"start_ms": 5, "end_ms": 1}, {"start_ms": 1, "end_ms": 1e300}]},
    ],
)  # fmt: skip
def test_whatever_the_record_holds_there_is_a_card(changes: dict[str, Any]) -> None:
    bundled = made(finding(), summary=drawing(**changes))
    for form in (bundled["text/plain"], Outline(bundled["text/html"]).text):
        assert "The host starves the device" in form
        assert "nan" not in form
        assert "inf " not in form


@pytest.mark.parametrize("key", ["timeline", "tables", "tables_left_out", "steps"])
def test_any_part_may_be_missing_or_empty(key: str) -> None:
    hollow = dict.fromkeys(summary()[key] or {})
    for value in (None, {}, hollow):
        bundled = made(
            {}, {"id": None, "evidence": None, "ranges": [None, {}]}, summary=summary() | {key: value}
        )
        Outline(bundled["text/html"])
        assert misfit(bundled[MIME_TYPE]["summary"], SUMMARY) is None


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_name_of_a_user_becomes_markup_or_commands_a_terminal(hostile: str) -> None:
    def shown(text: str) -> dict[str, Any]:
        told = finding(text) | {"id": text, "title": text, "level": text, "doc": text}
        whole = summary(text)
        whole["timeline"] |= {"window": text, "blind": [text]}
        whole["timeline"]["devices"][0]["device"] = text
        for lane in whole["timeline"]["drawing"]["lanes"]:
            lane |= {"label": text}
        for gap in whole["timeline"]["drawing"]["gaps"]:
            gap["device"] = text
        whole["tables"] = {
            name: [{key: text if isinstance(value, str) else value for key, value in rows[0].items()}]
            for name, rows in whole["tables"].items()
        }
        return made(told, summary=whole)

    hostiles, plains = shown(hostile), shown("plain")
    assert Outline(hostiles["text/html"]).elements == Outline(plains["text/html"]).elements
    for form in (hostiles["text/plain"], hostiles["text/html"]):
        form.encode("utf-8")
        assert {c for c in form if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} <= {"\n"}
    json.dumps(hostiles, allow_nan=False)


def enormous() -> dict[str, Any]:
    """As much as the diagnosis gives for 64 devices, with names as long as C++ makes them."""
    name = "void cutlass::" + "x" * 400
    whole = summary(name)
    window = whole["timeline"]["drawing"]
    width = (window["end_ms"] - window["start_ms"]) / 300
    spans = [
        [window["start_ms"] + width * n, window["start_ms"] + width * (n + 0.4), name] for n in range(300)
    ]
    window["lanes"] = [
        {"label": f"GPU {number // 3} {kind}", "kind": kind, "intervals": spans}
        for number in range(192)
        for kind in ("device",)
    ]
    window["gaps"] = [
        {
            "start_ms": start + width * 0.4,
            "end_ms": start + width,
            "device": f"GPU {n % 60} device",
            "cause": name + str(n),
        }
        for n, (start, _, _) in enumerate(spans)
    ]
    whole["timeline"]["devices"] *= 64
    whole["tables"] = {key: rows[:1] * 30 for key, rows in whole["tables"].items()}
    whole["tables"]["kernels"] = [
        row | {"device": f"GPU {n}"} for n, row in enumerate(whole["tables"]["kernels"])
    ]
    return whole


def test_an_enormous_timeline_has_a_small_card() -> None:
    long = finding("y" * 5000) | {"evidence": ["e" * 5000] * 50, "next": ["n" * 5000] * 50}
    bundled = made(*[long] * 30, summary=enormous())
    assert len(bundled["text/html"]) < 150_000
    usual = made(*[finding("load_data" * 4)] * 12, summary=enormous())
    assert len(usual["text/html"]) < 100_000
    assert len(usual["text/plain"]) < 100_000
    assert len(json.dumps(usual[MIME_TYPE])) < 100_000
    assert "and 176 more lanes" in usual["text/html"]
    assert "and 48 more" in usual["text/html"]


def test_a_record_of_wrong_types_is_not_read() -> None:
    kept = record(findings=(finding(), note(), FINE), summary=summary()).to_json()
    assert Record.from_json(json.loads(json.dumps(kept))).findings[0]["id"] == "host-starves-device"
    for wrong in ({"title": 3}, {"lost_ms": "x"}, {"evidence": "x"}, {"ranges": [{"start_ms": "x"}]}):
        with pytest.raises(DamagedRecord, match=r"'findings\."):
            Record.from_json(kept | {"findings": [finding() | wrong]})
    assert misfit(finding(), FINDING) is None
    with pytest.raises(DamagedRecord, match=r"summary\.timeline\.drawing\.lanes"):
        Record.from_json(kept | {"summary": drawing(lanes=[{"intervals": [3]}])})


def test_a_page_is_whole_html() -> None:
    kept = record(findings=(finding(),), summary=summary(), name="<b>")
    text = page(kept, directory=HERE, in_store=False)
    assert text.startswith("<!doctype html>")
    assert "<title>&lt;b&gt;</title>" in text
    assert '<meta charset="utf-8">' in text


@pytest.mark.parametrize(("place", "width"), [*((place, 340) for place in PLACES), (next(iter(PLACES)), 900)])
def test_cards_can_be_read_everywhere(browser: Browser, place: str, width: int) -> None:
    scheme, attributes, sheet = PLACES[place]
    html = made(finding(), note(), FINE)["text/html"].replace("<details", "<details open")
    view = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    requests: list[str] = []
    view.on("request", lambda request: requests.append(request.url))
    view.set_content(
        f"<!doctype html><style>{theme(sheet) if sheet else ''}</style><body {attributes}>{html}"
    )
    found = view.evaluate(MEASURE)
    lanes = view.evaluate("[...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().width)")
    family = view.evaluate("getComputedStyle(document.querySelector('.jaxprof-card')).fontFamily")
    view.close()
    assert len(found) > 60
    for item in found:
        assert item["contrast"] >= 4.5, item
    assert min(lanes) > 120
    assert family.startswith(("system-ui", "-apple-system")) or sheet
    assert requests == []
