"""Captures of any kinds side by side, each against the first."""

from __future__ import annotations

import json

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.captures.samples import summarize
from jupyterlab_jaxprof.cards import Paper
from jupyterlab_jaxprof.reports import ReportError, SideBySide, columns, side_by_side
from tests.cards.test_cards import Outline
from tests.cli.conftest import add_diagnosed, add_timing, add_trace
from tests.support.captures import unpacked


def json_of(found: SideBySide) -> dict[str, object]:
    return json.loads(json.dumps(found.to_json(), allow_nan=False))


def add_samples(store: Store, name: str, milliseconds: float, **summary: object) -> str:
    samples = [milliseconds * (1 + number / 1000) for number in range(20)]
    with store.begin("time", name) as draft:
        cached = summarize(samples).to_dict()
        draft.publish(status=Status.OK, cell="f(x)", summary={"cached": cached, "wall_ms": 500.0, **summary})
        return draft.id


def row(found: SideBySide, label: str) -> dict[str, object]:
    (row,) = [row for row in found.measures if row["label"] == label]
    return dict(row)


def test_three_traces_and_a_timing(store: Store) -> None:
    add_trace(store, "before", "host_starved")
    add_timing(store, "timing")
    targets = ["before", str(unpacked("healthy.xplane.pb")), str(unpacked("gpu_bound.xplane.pb")), "timing"]
    found = side_by_side(store, targets)
    assert found.per_step
    median = row(found, "train_step, median")
    assert median["values"] == [pytest.approx(31.9, rel=0.01), pytest.approx(1.63, rel=0.01),
                                pytest.approx(11.6, rel=0.01), None]  # fmt: skip
    assert [one and one["verdict"] for one in median["judgements"]] == [None, "faster", "faster", None]
    kernels = found.tables["kernels"]
    worst = [max(change for change in kernel["changes_ms"] if change is not None) for kernel in kernels]
    assert worst == sorted(worst, reverse=True), "the worst first"
    (starved,) = [finding for finding in found.findings if finding["id"] == "host-starves-device"]
    assert starved["cells"][0]["lost_ms"] == pytest.approx(30.3, rel=0.01), "of a step"
    assert [cell and cell["state"] for cell in starved["cells"]] == ["", "gone", "gone", None]
    assert found.shares_nothing[:3] == ["", "", ""]
    assert "'timing' (of kind 'time') and 'before' (of kind 'trace')" in found.shares_nothing[3]
    data = json_of(found)
    assert [capture["name"] for capture in data["captures"]] == [
        "before", "healthy.xplane.pb", "gpu_bound.xplane.pb", "timing",
    ]  # fmt: skip
    for form in (columns.text(found, Paper(100)), Outline(columns.html(found)).text):
        words = " ".join(form.split())
        for fact in ("31.9 ms", "1.63 ms", "healthy.xplane.pb is 19.5 × faster", "gone",
                     "nothing that both have",
                     "before: The device was idle 99.7 % of the time; healthy.xplane.pb: The"):  # fmt: skip
            assert fact in words, fact


def test_timings_are_judged_as_jaxtime_judges_them(store: Store) -> None:
    add_samples(store, "a", 10.0)
    add_samples(store, "b", 10.3)
    add_samples(store, "c", 20.0, memory={"after": [{"device": "GPU 0", "in_use_bytes": 5}]})
    found = side_by_side(store, ["a", "b", "c"])
    judged = row(found, "cached run, 20th percentile")["judgements"]
    assert [one and one["verdict"] for one in judged] == [None, "alike", "slower"]
    assert judged[2]["low"] < judged[2]["ratio"] < judged[2]["high"]
    once = row(found, "the cell, run once")["judgements"][1]
    assert (once["ratio"], once["verdict"]) == (1, "unknown")
    assert "ran once" in once["reason"]
    assert row(found, "in use on the device")["values"] == [None, None, 5]
    assert [cell and cell["same"] for cell in found.cells] == [None, True, True]
    assert json_of(found)["tables"] == {"kernels": [], "hlo_ops": [], "copies": []}


def test_a_timing_and_a_trace_share_the_time_of_the_cell_but_no_verdict(store: Store) -> None:
    add_samples(store, "timing", 10.0)
    add_diagnosed(store, "trace")
    found = side_by_side(store, ["timing", "trace"])
    assert found.shares_nothing == ["", ""]
    wall = row(found, "the cell, run once")
    assert wall["values"] == [500.0, 192.7]
    assert "of different kinds" in wall["judgements"][1]["reason"]
    assert "of different kinds" in columns.text(found)


def test_points_of_sweeps_are_matched_and_doubtful_ones_are_not_judged(store: Store) -> None:
    def sweep(name: str, factor: float) -> None:
        points = [
            {"value": value, "label": f"n={value}", "median_ms": factor, "samples": 20,
             "lower_quartile_ms": factor * 0.99, "upper_quartile_ms": factor * 1.01, "doubts": doubts}
            for value, doubts in (("1", []), ("2", ["wide spread"]))
        ]  # fmt: skip
        with store.begin("sweep", name) as draft:
            draft.publish(
                status=Status.OK, summary={"sweep": {"names": ["n"], "series": [{"points": points}]}}
            )

    sweep("a", 1.0)
    sweep("b", 2.0)
    found = side_by_side(store, ["a", "b"])
    assert row(found, "n=1")["judgements"][1]["verdict"] == "slower"
    assert "wide spread" in row(found, "n=2")["judgements"][1]["reason"]


def test_what_differs_in_the_code_is_told_and_one_is_named_once(store: Store) -> None:
    for name, cell in (("a", "x = 1\ny = 2\n"), ("b", "x = 1\ny = 3\n"), ("c", "")):
        with store.begin("trace", name) as draft:
            draft.publish(status=Status.OK, cell=cell, summary={"wall_ms": 1.0})
    cells = side_by_side(store, ["a", "b", "c"]).cells
    assert cells[1]["diff"].splitlines()[1:] == [" x = 1", "-y = 2", "+y = 3"]
    assert cells[2] == {"same": None, "diff": ""}
    with pytest.raises(ReportError, match="Both are the capture"):
        side_by_side(store, ["a", "b", "a"])
    with pytest.raises(ReportError, match="From 2 to 12 captures"):
        side_by_side(store, ["a"])
