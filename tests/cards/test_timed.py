"""Cards of timings: their first line, every figure in text and HTML, and that they read well in Chromium."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from jupyterlab_jaxprof.captures import Record, Status
from jupyterlab_jaxprof.captures.shapes import SUMMARY, misfit
from jupyterlab_jaxprof.cards import bundle
from tests.cards.test_cards import HERE, HOSTILE, ID, MEASURE, PLACES, Outline, browser, theme

__all__ = ["browser"]  # a fixture

SENTENCE = "2.47 s, of which 2.31 s compiled train_step; run again it takes 148 µs."


def samples(median: float) -> dict[str, Any]:
    return {
        "count": 60, "minimum": median * 0.9, "p20": median * 0.95, "lower_quartile": median * 0.97,
        "median": median, "upper_quartile": median * 1.1, "maximum": median * 9, "drift": 0.01,
        "halves": [median, median],
        "histogram": {
            "edges": [0.13 + 0.01 * n for n in range(21)], "counts": [5] * 11 + [0] * 9, "beyond": 5,
        },
    }  # fmt: skip


def summary(text: str = "train_step") -> dict[str, Any]:
    """A timing's summary that has everything; `text` stands wherever a user's text may."""
    device = {"device": "cuda:0", "in_use_bytes": 10**9, "peak_bytes": 2 * 10**9, "limit_bytes": 10**11}
    return {
        "headline": {"label": "cached run", "value": 0.148, "unit": "ms"},
        "wall_ms": 2470.0,
        "steps": None,
        "sentence": SENTENCE.replace("train_step", text),
        "first": {
            "total_ms": 2470.0, "returned_ms": 2460.0, "trace_ms": 110.0, "lower_ms": 200.0,
            "compile_ms": 1900.0, "cache_read_ms": 100.0, "run_ms": 160.0, "gc_ms": 300.0,
        },
        "cached": samples(0.148),
        "cached_returned": samples(0.057),
        "repeats": {"loops": 12, "left_out": 0, "stopped": "", "gc_ms": 0.0},
        "compiles": [
            {
                "name": text, "line": 7, "trace_ms": 110.0, "lower_ms": 200.0, "compile_ms": 1900.0,
                "cache": "hit", "cause": "shape", "reason": f"Another shape: {text}.", "again": True,
                "operation": False, "arguments": [f"{text}: float32[256,1024]"],
            },
            {"name": text, "arguments": None},
        ],
        "compiles_left_out": {"count": 3, "total_ms": 30.0},
        "transfers": [
            {"direction": "read", "way": text, "line": 9, "count": 30, "bytes": 120, "waited_ms": 41.5},
            {"direction": "write", "way": "argument", "line": 8, "count": 2, "bytes": 20, "unsized": 1,
             "waited_ms": 0},
        ],
        "transfers_left_out": 4,
        "memory": {
            "before": [device], "after": [device | {"in_use_bytes": 3 * 10**9, "peak_bytes": 4 * 10**9}],
            "programs": [{"name": text, "argument_bytes": 1000, "output_bytes": 2000, "temporary_bytes": 30}],
            "arrays": [{"shape": [1024, 1024], "dtype": text, "size_bytes": 4_194_304, "new": True,
                        "holders": [f"params['{text}']"]}],
            "arrays_bytes": 5_000_000, "arrays_count": 7,
        },
        "comparison": [
            {"name": text, "id": ID, "basis": "p20", "value_ms": 0.3, "own_ms": 0.148,
             "differences": [f"jax: 0.10 here, {text} there"],
             "ratio": {"value": 0.493, "low": 0.46, "high": 0.53, "differs": True}},
            {"name": "alike", "id": ID, "basis": "p20", "value_ms": 0.15, "own_ms": 0.148, "differences": [],
             "ratio": {"value": 0.99, "low": 0.92, "high": 1.06, "differs": False}},
            {"name": "single", "id": ID, "basis": "first", "value_ms": 3000.0, "own_ms": 2470.0,
             "ratio": {"value": 0.823}, "differences": []},
        ],
    }  # fmt: skip


def record(kept: dict[str, Any], **changes: object) -> Record:
    fields: dict[str, Any] = {
        "id": ID, "kind": "time", "name": "batch 256", "created": "2026-11-30T09:40:01.993Z",
        "status": Status.OK, "environment": {"devices": [{"platform": "gpu", "kind": "NVIDIA H200"}]},
        "summary": kept,
    }  # fmt: skip
    return Record(**(fields | changes))


def forms(kept: dict[str, Any], **changes: object) -> tuple[str, Outline, str]:
    made = bundle(record(kept, **changes), directory=HERE, in_store=True)
    json.dumps(made, allow_nan=False)
    return made["text/plain"], Outline(made["text/html"]), made["text/html"]


def test_the_first_line_is_the_sentence_and_all_figures_follow() -> None:
    text, outline, _ = forms(summary(), notices=("A notice.",))
    assert text.splitlines()[0] == SENTENCE
    assert outline.text.strip().splitlines()[0] == SENTENCE
    for form in (text, outline.text):
        words = " ".join(form.split())
        for fact in (
            "time", "batch 256", "2026-11-30 09:40 UTC", "A notice.", "NVIDIA H200", str(HERE),
            "First run, 2.47 s", "tracing", "110 ms", "lowering", "200 ms", "XLA compiling", "1.90 s",
            "reading the compilation cache", "100 ms", "running", "160 ms",
            "Returned to Python after 2.46 s, device done after 2.47 s.", "garbage collector took 300 ms",
            "Run again, 12 runs a sample", "median", "148 µs", "interquartile range", "144 µs to 163 µs",
            "minimum", "133 µs", "p20", "141 µs", "60", "5 beyond, up to 1.33 ms",
            "Returned to Python after 57.0 µs a run, device done after 148 µs",
            "this is 2.03 × faster (1.89 to 2.17)", "no difference that can be told",
            "this takes 0.823 × as long; single first runs", "this, by the first run", "≥ 20 B",
            "this, by the 20th percentile of the runs",
            "Not alike with train_step: jax: 0.10 here, train_step there.",
            "function", "hit", "train_step: float32[256,1024] · Another shape: train_step.",
            "and 3 more, 30.0 ms in all", "read by train_step", "30", "120 B", "41.5 ms",
            "written as argument", "and 4 more places",
            "cuda:0", "1.00 GB", "3.00 GB", "+2.00 GB", "4.00 GB (raised)", "100 GB",
            "2.00 kB", "30 B", "params['train_step']", "[1024,1024]", "4.19 MB", "7 arrays alive, 5.00 MB",
        ):  # fmt: skip
            assert " ".join(fact.split()) in words, fact
        assert "XProf" not in form


def test_the_widths_are_the_shares() -> None:
    html = forms(summary())[2]
    assert 'class="jx-tone2" style="width:76.92%" title="XLA compiling: 1.90 s"' in html
    assert 'class="jx-tone4" style="width:6.48%" title="running: 160 ms"' in html


def test_autotuning_is_named_where_compiling_includes_it() -> None:
    assert "and autotuning" not in forms(summary())[0]
    assert "XLA compiling and autotuning 1.90 s" in forms(summary() | {"autotuning": True})[0]


def test_what_was_not_asked_for_is_not_there() -> None:
    kept = {"sentence": "42 µs; nothing compiled.", "first": {"total_ms": 0.042, "run_ms": 0.042}}
    text, outline, _ = forms(kept, status=Status.FAILED, reason="The cell raised ValueError.")
    for form in (text, outline.text):
        for absent in ("Run again", "Compared", "Compiled", "transfer", "emory", "arrays", "Files"):
            assert absent not in form
        assert "The cell raised ValueError." in form
    assert "No implicit transfer" in forms(kept | {"transfers": []})[0]


def emptied(value: Any) -> list[Any]:
    """Every summary that lacks one part of `value`, and those in which it is null."""
    if isinstance(value, dict):
        found = [{k: v for k, v in value.items() if k != key} for key in value]
        found += [value | {key: None} for key in value]
        return found + [value | {key: less} for key, part in value.items() for less in emptied(part)]
    if isinstance(value, list):
        return [[], *([less, *value[1:]] for less in (emptied(value[0]) if value else []))]
    return []


def test_anything_may_be_missing() -> None:
    cases = emptied(summary())
    assert len(cases) > 200
    for kept in cases:
        assert misfit(kept, SUMMARY) is None
        bundle(record(kept), directory=HERE, in_store=True)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"first": {"run_ms": "1"}}, ".first.run_ms"),
        ({"first": []}, ".first"),
        ({"cached": {"histogram": {"counts": [1, "2"]}}}, ".cached.histogram.counts"),
        ({"compiles": {}}, ".compiles"),
        ({"compiles": [{"name": 3}]}, ".compiles.name"),
        ({"compiles": [{"arguments": "x"}]}, ".compiles.arguments"),
        ({"compiles": [{"again": 1}]}, ".compiles.again"),
        ({"transfers": [{"count": True}]}, ".transfers.count"),
        ({"memory": {"arrays": [{"holders": [None, 1]}]}}, ".memory.arrays.holders"),
        ({"comparison": [{"ratio": {"value": []}}]}, ".comparison.ratio.value"),
        ({"sentence": 5}, ".sentence"),
        ({"steps": {"count": 2**63}}, ".steps.count"),
    ],
)
def test_a_wrong_type_is_found(change: dict[str, Any], where: str) -> None:
    assert misfit(summary() | change, SUMMARY) == where
    data = record(summary()).to_json()
    with pytest.raises(ValueError, match=f"'summary{where}' is of a wrong type"):
        Record.from_json(data | {"summary": summary() | change})
    assert Record.from_json(data).to_json() == data


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_of_a_timing_becomes_markup_or_commands_a_terminal(hostile: str) -> None:
    text, outline, html = forms(summary(hostile), name=hostile)
    assert outline.elements == forms(summary("plain"), name="plain")[1].elements
    for form in (text, html):
        form.encode("utf-8")
        odd = {character for character in form if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
        assert odd <= {"\n"}


def test_an_enormous_timing_has_a_small_card() -> None:
    kept = summary("n" * 500)
    for key in ("compiles", "transfers"):
        kept[key] = kept[key] * 100
    kept["memory"] = {
        key: value * 50 if isinstance(value, list) else value for key, value in kept["memory"].items()
    }
    text, _, html = forms(kept)
    assert len(html) < 100_000
    assert len(text) < 100_000
    assert "and 191 more, " in text
    assert "and 42 more devices" in text


@pytest.mark.parametrize("width", [900, 340])
@pytest.mark.parametrize("place", PLACES)
def test_a_timing_can_be_read_everywhere(browser: Browser, place: str, width: int) -> None:
    scheme, attributes, sheet = PLACES[place]
    html = forms(summary("a_function_with_a_long_name"), notices=("A notice.",))[2]
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 700})
    page.set_content(
        f"<!doctype html><style>{theme(sheet) if sheet else ''}</style><body {attributes}>{html}"
    )
    found = page.evaluate(MEASURE)
    scrolling = page.evaluate(
        "() => [document.documentElement.scrollWidth > innerWidth,"
        " [...document.querySelectorAll('.jx-wide-table')].map(e => e.scrollWidth > e.clientWidth)]"
    )
    heights = page.evaluate(
        "() => [...document.querySelectorAll('.jx-histogram .jx-chart span')].map(e => e.offsetHeight)"
    )
    page.close()
    for item in found:
        assert item["contrast"] >= 4.5, item
        assert item["inside"] or width == 340, item
    assert not scrolling[0]
    assert width == 340 or not any(scrolling[1])
    assert max(heights) > 20
    assert min(heights) == 0


def test_the_place_is_where_it_lies() -> None:
    made = bundle(record(summary()), directory=Path("/data") / ID, in_store=True)
    assert f"/data/{ID}" in made["text/plain"]
