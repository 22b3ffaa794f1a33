"""`%jaxprof report`, `%jaxprof compare`, and the findings of what `%%jaxtrace` took, in a real shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Capture, Store
from jupyterlab_jaxprof.reports import SideBySide
from tests.cli.conftest import add_diagnosed, add_timing, add_trace
from tests.support.captures import unpacked
from tests.support.shells import Shell, running_shell


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    return Store.default()


@pytest.fixture
def shell(store: Store) -> Iterator[Shell]:
    with running_shell("jupyterlab_jaxprof") as shell:
        yield shell


def test_the_card_of_a_capture_and_of_any_trace(shell: Shell, store: Store) -> None:
    add_trace(store, "a run", "host_starved")
    for target in ('"a run"', str(unpacked("host_starved.xplane.pb"))):
        outcome = shell.run(f"%jaxprof report {target} --save found")
        assert outcome.error is None
        assert "The host starves the device: `load_data`" in outcome.text
        found = shell.names["found"]
        assert isinstance(found, Capture)
        assert found.findings[0]["id"] == "host-starves-device"
        assert found.steps is not None
        assert found.steps["count"] == 6
        assert found.file("xplane").is_file()


def test_json_for_programs(shell: Shell, store: Store) -> None:
    for _ in range(2):
        add_diagnosed(store, "run")
    assert json.loads(shell.run("%jaxprof report run --json").text)["findings"][1]["level"] == "note"
    compared = json.loads(shell.run("%jaxprof compare run~1 run --json").text)
    assert compared["steps"][0]["verdict"] == "alike"


def test_compare(shell: Shell, store: Store) -> None:
    add_trace(store, "before", "host_starved")
    outcome = shell.run(f"%jaxprof compare before {unpacked('healthy.xplane.pb')} --save found")
    assert outcome.error is None
    for fact in ("before → healthy.xplane.pb", "31.9 ms", "1.63 ms", "faster"):
        assert fact in outcome.text
    assert isinstance(shell.names["found"], SideBySide)
    assert shell.names["found"].steps[0]["verdict"] == "faster"
    add_timing(store, "timing")
    assert "measured nothing that both have" in shell.run("%jaxprof compare before timing").text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report", "%jaxprof report: it needs the name or identifier of a capture, or a path."),
        ("report nothing", "%jaxprof report: No capture is called 'nothing'"),
        ("report a b", 'it takes one name. Put a name of several words in quotes: %jaxprof report "a b"'),
        ('report "a', "a quote is opened and never closed"),
        ("report known --jsn", "there is no option --jsn. Did you mean --json?"),
        ("report known --save 1x", "'1x' can't be one"),
        ("compare known", "%jaxprof compare: it needs two captures or paths"),
        ("compare known nothing", "No capture is called 'nothing'"),
    ],
)
def test_what_can_not_be_done_is_a_sentence(shell: Shell, store: Store, line: str, said: str) -> None:
    add_diagnosed(store, "known")
    add_timing(store, "timing")
    outcome = shell.run(f"%jaxprof {line}")
    assert said in outcome.text
    assert outcome.text.rstrip().endswith("Nothing has run.")
    assert "Traceback" not in outcome.text


def test_the_page_about_a_finding(shell: Shell) -> None:
    assert "# The host starves the device" in shell.run("%jaxprof explain host-starves-device").text
    assert "Did you mean recompilation?" in shell.run("%jaxprof explain recompilaton").text


def test_help(shell: Shell) -> None:
    for line in ("--help", "report --help", "compare -h"):
        assert "%jaxprof compare BEFORE AFTER" in shell.run(f"%jaxprof {line}").text


def test_what_jaxtrace_took_is_diagnosed_before_it_is_published(shell: Shell, store: Store) -> None:
    shell.run("import jax, jax.numpy as jnp")
    cell = "%%jaxtrace 'one cell' --steps 4 --step-name work\njax.jit(lambda x: x @ x)(jnp.ones((300, 300)))"
    outcome = shell.run(cell)
    assert outcome.error is None, outcome.text
    (row,) = store.list().rows
    record = row.record
    assert record is not None
    assert record.summary["timeline"]["source"] == "xplane"
    assert record.steps is not None
    assert (record.steps["name"], record.steps["count"]) == ("work", 4)
    assert record.findings, outcome.text
    assert str(record.findings[0]["title"])[:30] in outcome.text
    assert not [notice for notice in record.notices if "diagnos" in notice]
    annotations = {row["name"] for row in record.summary["tables"]["annotations"]}
    assert not [name for name in annotations if "fence" in name]


def test_what_ran_between_start_and_stop_is_diagnosed(shell: Shell, store: Store) -> None:
    shell.run("%jaxtrace start both")
    shell.run("import jax, jax.numpy as jnp; f = jax.jit(lambda x: x + 1); f(jnp.ones(3)); f(jnp.ones(4))")
    outcome = shell.run("%jaxtrace stop --save c")
    assert outcome.error is None
    assert shell.names["c"].summary["timeline"]["window_ms"] > 0
    assert shell.names["c"].findings
    again = shell.run("%jaxprof report both")
    assert str(shell.names["c"].findings[0]["title"])[:30] in again.text
