"""A card's three forms stay small in a notebook's file, and what is left of a drawing is true."""

from __future__ import annotations

import copy
import json
from typing import Any

import nbformat
import pytest

from jupyterlab_jaxprof.cards import MIME_TYPE, bundle
from jupyterlab_jaxprof.cards.small import shrunk, size
from jupyterlab_jaxprof.diagnosis import diagnose
from jupyterlab_jaxprof.timeline import read
from tests.cards.test_cards import HERE, record
from tests.support.captures import unpacked

LARGEST = ["first_calls_of_two.xplane.pb", "dp_exposed_collectives.xplane.pb", "nsys_eager.sqlite"]


def diagnosed(name: str) -> dict[str, Any]:
    return diagnose(read([unpacked(name)])).to_json()


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_cards_take_less_than_100_kilobytes_of_a_notebook(name: str) -> None:
    found = diagnosed(name)
    kept = record(findings=tuple(found["findings"]), summary=found["summary"])
    forms = bundle(kept, directory=HERE, in_store=True)
    output = nbformat.v4.new_output("display_data", data=forms)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    assert len(nbformat.writes(notebook).encode()) < 100_000
    drawn, whole = forms[MIME_TYPE]["summary"], found["summary"]
    lanes = drawn["timeline"]["drawing"]["lanes"]
    assert [lane["label"] for lane in lanes] == [
        lane["label"] for lane in whole["timeline"]["drawing"]["lanes"]
    ]
    assert drawn["tables"] == whole["tables"]
    assert len(forms[MIME_TYPE]["findings"]) == len(found["findings"])


def test_what_is_left_of_a_drawing_covers_the_same_time() -> None:
    found = diagnosed("dp_balanced.xplane.pb")
    data = record(summary=found["summary"]).to_json()
    small = shrunk(copy.deepcopy(data), 22_000)
    assert size(small) <= 22_000 < size(data)
    lanes, whole = (one["summary"]["timeline"]["drawing"]["lanes"] for one in (small, data))
    assert any(
        len(lane["intervals"]) < len(all_of["intervals"]) for lane, all_of in zip(lanes, whole, strict=True)
    )
    for lane, all_of in zip(lanes, whole, strict=True):
        ends = [{one[0] for one in all_of["intervals"]}, {one[1] for one in all_of["intervals"]}]
        for start, end, *_ in lane["intervals"]:
            assert start in ends[0]
            assert end in ends[1]
        if lane["kind"] == "device":
            assert lane["intervals"][0][0] == min(ends[0])
            assert lane["intervals"][-1][1] == max(ends[1])


def test_what_can_not_be_drawn_is_left_out_before_figures_and_findings() -> None:
    found = diagnosed("dp_balanced.xplane.pb")
    data = record(findings=tuple(found["findings"]), summary=found["summary"], cell="x" * 60_000).to_json()
    data["summary"]["timeline"]["drawing"]["lanes"][0]["intervals"] += [None, ["x", 3], 7]
    small = shrunk(copy.deepcopy(data), 1)
    assert "drawing" not in small["summary"]["timeline"]
    assert len(small["cell"]) < 5_000
    assert small["findings"] == json.loads(json.dumps(data["findings"]))
    assert len(small["summary"]["tables"]["kernels"]) == 5
    left_out = found["summary"]["tables_left_out"]["kernels"]
    rows = len(found["summary"]["tables"]["kernels"])
    assert small["summary"]["tables_left_out"]["kernels"] == left_out + rows - 5
