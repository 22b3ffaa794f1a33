"""The command of the benchmarks: its quickest figures, and what it does with a limit that is missed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import bench.__main__ as command
from bench import GROUPS
from bench.document import document
from bench.table import MISSED, Figure, Limit, markdown_table, quantity, text_table
from tests.support.servers import ROOT

SLOW = Figure.of_pairs("slow", [2.2e-3, 2.0e-3, 2.4e-3], "a peer", [1e-3, 1e-3, 1e-3], "s", Limit("ratio", 2))
QUICK = replace(SLOW, name="quick", limits=(Limit("ratio", 3), Limit("above", 0.0024)))


def test_the_command_measures_and_prints_json() -> None:
    command_line = [sys.executable, "-m", "bench", "--only", "imports", "--json"]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    figures = {one["name"]: one for one in told["figures"]}
    part, whole = figures["our start-up file in a kernel"], figures["import jupyterlab_jaxprof"]
    assert part["value"] > 0
    assert part["limits"] == [{"of": "value", "most": 0.02}]
    assert whole["peer_value"] > 0
    assert whole["ratio"] > 0
    assert whole["samples"] > 3
    # a busy machine may miss the limits, and then says so
    assert done.returncode == (0 if all(one["ok"] for one in told["figures"]) else 1), done.stderr
    assert "[1/1] imports" in done.stderr
    assert set(told["machine"]) >= {
        "processor",
        "memory",
        "Python",
        "JAX",
        "JupyterLab",
        "load when it began",
    }


def test_a_missed_limit_is_marked_and_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(command, "measured", lambda *_: [QUICK, SLOW])
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert command.main() == 1
    printed = capsys.readouterr()
    quick, slow = printed.out.splitlines()[-2:]
    assert quick.split("  ")[0] == "quick"
    assert not quick.endswith(MISSED)
    assert slow.endswith(f"110%          {MISSED}")
    assert "1 of 2 figures miss their limit: slow" in printed.err
    monkeypatch.setattr(command, "measured", lambda *_: [QUICK])
    assert command.main() == 0


def test_a_figure_bears_on_its_narrowest_limit() -> None:
    assert (QUICK.value, QUICK.peer_value, QUICK.samples) == (2.2e-3, 1e-3, 3)
    assert QUICK.share == pytest.approx(2.2 / 3)
    assert not replace(QUICK, limits=(Limit("ratio", 3), Limit("above", 0.001))).ok
    assert not replace(QUICK, value=float("nan"), limits=(Limit("value", 1),)).ok
    failed = replace(QUICK, problem="not measured: the disk is full")
    assert not failed.ok
    assert failed.problem in text_table([failed])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.5e-7, "s", "150 ns"), (0.9999, "s", "1.00 s"), (1e9, "bytes", "1.00 GB"), (123.4, "%", "123 %")],
)
def test_numbers_have_three_digits(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_the_page_has_every_group_and_the_machine() -> None:
    page = document([replace(QUICK, group="store")], {"processor": "2 cores"}, long=False)
    assert all(f"(`{group}`)" in page for group in GROUPS)
    assert "| processor | 2 cores |" in page
    assert markdown_table([replace(QUICK, group="store")]).splitlines()[-1] in page
    assert "all 1 within their limits" in page
