"""Cards of sweeps and of memory: every figure in text and HTML, and that they read well in Chromium."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from playwright.sync_api import Browser

from jupyterlab_jaxprof.captures.shapes import SUMMARY, misfit
from tests.cards.test_cards import HERE, HOSTILE, MEASURE, PLACES, browser, theme
from tests.cards.test_timed import emptied, forms

__all__ = ["browser"]  # a fixture

GB = 10**9


def point(value: str, **changes: object) -> dict[str, Any]:
    return {
        "value": value, "ending": "ok", "error": None, "median_ms": 2.5, "lower_quartile_ms": 2.4,
        "upper_quartile_ms": 2.7, "samples": 40, "first_ms": 90.0, "compiling_ms": 80.0, "rate": 12_345.6,
        "knee": False, "peak_bytes": 3 * GB, "peak_raised": True, "peaks": [], "need_bytes": 1_500_000,
        "stopped": "", "doubts": [],
    } | changes  # fmt: skip


def swept(text: str = "batch") -> dict[str, Any]:
    """A sweep's summary that has everything; `text` stands wherever a user's text may."""
    failed = {"median_ms": None, "lower_quartile_ms": None, "rate": None, "peak_raised": False}
    peaks = [
        {"device": "cuda:0", "peak_bytes": 3 * GB, "raised": True},
        {"device": "cuda:1", "peak_bytes": 7 * GB, "raised": False},
    ]
    points = [
        point(f"8{text}", doubts=["wide spread"], peaks=peaks),
        point("16", knee=True, rate=24_000.0),
        point("32", ending="out of memory", error=f"RESOURCE_EXHAUSTED {text}", compiling_ms=0.0, **failed),
        point("64", stopped=f"Not repeated: {text}", **failed),
    ]
    return {
        "sentence": f"4 values of {text}: the rate stops growing at 16.",
        "headline": {"label": "best rate", "value": 24_000.0, "unit": "batch/s"},
        "sweep": {
            "names": [text, "kind"], "rate_unit": f"{text}/s", "planned": 8,
            "series": [
                {"label": f"kind={text}", "along": text, "verdict": "the rate stops growing at 16",
                 "points": points},
                {"label": "kind=b", "along": text, "verdict": "", "points": [point("8")]},
            ],
        },
    }  # fmt: skip


def watched(text: str = "step(x)") -> dict[str, Any]:
    """A memory summary that has everything."""
    device = {
        "device": "cuda:0", "in_use_bytes": 3 * GB, "peak_bytes": 9 * GB, "limit_bytes": 60 * GB,
        "pool_bytes": 61 * GB, "largest_free_block_bytes": 50 * GB,
    }  # fmt: skip
    columns = [1.0 * GB] * 60 + [9.0 * GB] * 20 + [3.0 * GB] * 40
    return {
        "sentence": f"In 12.0 s cuda:0 took 9.00 GB at most. {text}",
        "headline": {"label": "most in use", "value": 9 * GB, "unit": "bytes"},
        "wall_ms": 12_000.0,
        "memory": {
            "before": [], "after": [device], "programs": [], "arrays_bytes": 2 * GB, "arrays_count": 40,
            "arrays": [{"shape": [1024, 1024], "dtype": "float32", "size_bytes": 4_194_304, "new": False,
                        "holders": [f"params['{text}']"]}],
        },
        "process_bytes": 5 * GB,
        "remarks": [f"Why nvidia-smi shows more: {text}."],
        "variables": [
            {"name": "XLA_PYTHON_CLIENT_PREALLOCATE", "value": f"false{text}", "read": "true", "late": True},
            {"name": "XLA_PYTHON_CLIENT_ALLOCATOR", "value": "", "read": "", "late": False},
        ],
        "watch": {
            "duration_ms": 12_000.0, "samples": 1200, "interval_ms": 10.0, "cost": 0.001,
            "series": [
                {"label": "cuda:0", "device": "cuda:0", "least_bytes": GB, "most_bytes": 9 * GB,
                 "limit_bytes": 60 * GB, "columns": columns},
                {"label": "the process", "device": "process", "least_bytes": GB, "most_bytes": 5 * GB,
                 "columns": [5.0 * GB] * 120},
            ],
            "cells": [
                {"label": "In [5]", "code": text, "start_ms": 1000.0, "end_ms": 6000.0},
                {"label": "In [6]", "code": "y = 2", "start_ms": 6500.0, "end_ms": 9000.0},
            ],
            "cells_left_out": 2,
        },
    }  # fmt: skip


KINDS = {"sweep": swept, "memory": watched}
FACTS = {
    "sweep": (
        "4 values of batch: the rate stops growing at 16.", "kind=batch", "kind=b", "batch/s", "12,300",
        "16 ◂ knee", "24,000", "2.50 ms", "2.40 ms to 2.70 ms", "80.0 ms", "3.00 GB", "≤ 3.00 GB", "1.50 MB",
        "out of memory: RESOURCE_EXHAUSTED batch", "Not repeated: batch", "Doubtful: wide spread.",
        "cuda:0 3.00 GB, cuda:1 ≤ 7.00 GB", "The rate stops growing at 16.", "Rate, batch/s",
        "kind=batch, batch=16",
    ),
    "memory": (
        "In 12.0 s cuda:0 took 9.00 GB at most.", "most 9.00 GB of 60.0 GB", "most 5.00 GB", "0 s", "12.0 s",
        "In [5] step(x)", "1.00 s", "5.00 s", "and 2 more cells", "61.0 GB", "50.0 GB", "params['step(x)']",
        "40 arrays alive, 2.00 GB in all", "and 39 more arrays", "Why nvidia-smi shows more: step(x).",
        "Too late: JAX read true when it started", "not set",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_was_measured_is_told(kind: str) -> None:
    text, outline, _ = forms(KINDS[kind](), kind=kind, notices=("A notice.",))
    assert text.splitlines()[0] == KINDS[kind]()["sentence"]
    for form in (text, outline.text):
        words = " ".join(form.split())
        for fact in (*FACTS[kind], kind, "A notice.", str(HERE)):
            assert fact in words, fact


@pytest.mark.parametrize("kind", KINDS)
def test_anything_may_be_missing(kind: str) -> None:
    cases = emptied(KINDS[kind]())
    assert len(cases) > 50
    for kept in cases:
        assert misfit(kept, SUMMARY) is None
        forms(kept, kind=kind)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_markup_or_commands_a_terminal(kind: str, hostile: str) -> None:
    text, outline, html = forms(KINDS[kind](hostile), kind=kind, name=hostile)
    assert outline.elements == forms(KINDS[kind]("plain"), kind=kind, name="plain")[1].elements
    for form in (text, html):
        form.encode("utf-8")
        odd = {character for character in form if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
        assert odd <= {"\n"}


def test_enormous_ones_have_small_cards() -> None:
    kept = swept("n" * 300)
    kept["sweep"]["series"] = [
        one | {"points": one["points"] * 50} for one in kept["sweep"]["series"] for _ in range(20)
    ]
    text, _, html = forms(kept, kind="sweep")
    assert len(html) < 300_000
    assert "and 176 more values between these" in text
    assert "And 34 more series" in text
    kept = watched("c" * 300)
    kept["watch"]["series"] = kept["watch"]["series"] * 40
    kept["watch"]["cells"] = kept["watch"]["cells"] * 90
    text, _, html = forms(kept, kind="memory")
    assert len(html) < 200_000
    assert "And 72 more curves" in text
    assert "and 166 more cells" in text


def test_what_a_long_sweep_is_about_is_in_the_table_and_all_of_it_in_the_charts() -> None:
    kept = swept()
    points = [point(str(n), rate=float(n), label=f"batch={n}") for n in range(200)]
    points[150] |= {"knee": True}
    points[170] |= {"rate": 9e12}
    points[60] |= {"ending": "out of memory", "rate": None}
    points[61] |= {"ending": "failed", "error": "ValueError", "rate": None}
    kept["sweep"]["series"] = [{"label": "", "along": "batch", "verdict": "", "points": points}]
    text, _, html = forms(kept, kind="sweep")
    lines = text.splitlines()
    rows = [line.split()[0] for line in lines if "2.40 ms to 2.70 ms" in line]
    assert {"0", "60", "61", "150", "170", "199"} < set(rows)
    assert rows == sorted(rows, key=int)
    assert len(rows) == 24
    assert "and 176 more values between these" in text
    for form in (text, html):
        for fact in ("highest 9.00e12, at batch=170", "Time a call", "Compiling", "Peak memory", "batch=199"):
            assert fact in form, fact
    assert "from the knee on" in html


def test_the_series_that_is_named_is_shown() -> None:
    kept = swept()
    kept["sweep"]["series"] = [
        {"label": f"kind={kind}", "along": "batch", "verdict": "", "points": [
            point(str(n), rate=float(n * kind), label=f"batch={n}") for n in (1, 2)]}
        for kind in (1, 2, 3, 4, 5, 6, 7, 900, 9)
    ]  # fmt: skip
    text = forms(kept, kind="sweep")[0]
    assert "kind=900, batch=2" in text
    assert "And 3 more series" in text


def test_stretches_lie_where_the_cells_ran() -> None:
    text, _, html = forms(watched(), kind="memory")
    assert '<span style="width:8.33%"></span><span class="jx-stretch" style="width:41.67%"' in html
    rule = next(line for line in text.splitlines() if "[5]" in line)
    assert rule.index("[6]") > rule.index("[5]")


@pytest.mark.parametrize("width", [900, 340])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_they_can_be_read_everywhere(browser: Browser, kind: str, place: str, width: int) -> None:
    scheme, attributes, sheet = PLACES[place]
    html = forms(KINDS[kind](), kind=kind, notices=("A notice.",))[2]
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 700})
    page.set_content(
        f"<!doctype html><style>{theme(sheet) if sheet else ''}</style><body {attributes}>{html}"
    )
    found = page.evaluate(MEASURE)
    scrolls = page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
    heights = page.evaluate(
        "() => [...document.querySelectorAll('.jx-curve .jx-chart span')].map(e => e.offsetHeight)"
    )
    stretches = page.evaluate(
        "() => [...document.querySelectorAll('.jx-stretch')].map(e => e.getBoundingClientRect().width)"
    )
    page.close()
    for item in found:
        assert item["contrast"] >= 4.5, item
        assert item["inside"] or width == 340, item
    assert not scrolls
    if kind == "memory":
        assert max(heights) > 50
        assert 4 <= min(heights) < 10
        assert stretches[0] == pytest.approx(2 * stretches[1], rel=0.05)
