"""Traces of odd contents, and damaged: a timeline with findings and a card, or a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzz_checks import examined
from tests.support.fuzzed_traces import traces
from tests.support.fuzzing import fuzzed


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "vm.xplane.pb"


@fuzzed(150, content=traces)
def test_any_trace_gives_figures_that_can_be_or_a_sentence(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    examined(path)
