"""The tables of a real report add up, and are those of `nsys stats`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Record, Status
from jupyterlab_jaxprof.diagnosis import diagnose
from jupyterlab_jaxprof.timeline.model import RangeKind
from jupyterlab_jaxprof.timeline.nsight import read_export
from tests.support import nsys_stats
from tests.support.captures import DATA, unpacked
from tests.support.timelines import Scene


def summary_of(name: str) -> dict[str, Any]:
    return diagnose(read_export(unpacked(f"{name}.sqlite"))).summary


def total_ms(rows: list[dict[str, Any]]) -> float:
    return sum(row["total_ms"] for row in rows)


@pytest.mark.parametrize("name", ["nsys_gpu_bound", "nsys_dp2"])
def test_kernels_and_copies_with_memsets_are_all_that_the_devices_do(name: str) -> None:
    summary = summary_of(name)
    tables, left_out = summary["tables"], summary["tables_left_out"]
    stats = nsys_stats.tables((DATA / f"{name}.stats.csv").read_text())
    expected = {row["Operation"]: int(row["Total Time (ns)"]) / 1e6 for row in stats["cuda_gpu_mem_time_sum"]}
    (sets,) = [row for row in tables["copies"] if row["kind"] == "memset"]
    assert sets["total_ms"] == expected["[CUDA memset]"]
    assert total_ms(tables["copies"]) == pytest.approx(sum(expected.values()), abs=1e-6)
    assert sum(row["ops"] for row in tables["modules"]) <= sum(
        device["ops"] for device in summary["timeline"]["devices"]
    )
    if not left_out["kernels"] and not left_out["modules"]:
        done = total_ms(tables["kernels"]) + total_ms(tables["copies"])
        assert total_ms(tables["modules"]) == pytest.approx(done, abs=1e-5)


def card(summary: dict[str, Any]) -> str:
    made = Record(
        id="20261130-141857-123-abcdef",
        kind="nsys",
        name="a",
        created="2026-11-30T14:18:57+00:00",
        status=Status.OK,
        summary=summary,
    )
    html = cards.bundle(made, directory=DATA, in_store=False)["text/html"]
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_with_several_devices_a_title_says_of_which_it_is() -> None:
    of_two, of_one = card(summary_of("nsys_dp2")), card(summary_of("nsys_gpu_bound"))
    assert ", shares of each one" in of_two
    assert ", of all 2 devices" in of_two
    assert "shares of each" not in of_one
    assert "of all 1" not in of_one


def test_calls_of_the_operating_system_have_a_table() -> None:
    scene = Scene()
    for start in (0, 100, 200):
        scene.range(start, 50, "write", RangeKind.SYSTEM)
    (row,) = diagnose(scene.timeline()).summary["tables"]["system_calls"]
    assert (row["name"], row["count"], row["total_ms"]) == ("write", 3, 0.15)
