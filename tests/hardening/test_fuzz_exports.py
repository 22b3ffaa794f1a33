"""Exports of Nsight reports with other tables, columns, types and numbers: a timeline, or a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzz_checks import examined
from tests.support.fuzzed_exports import exports
from tests.support.fuzzing import fuzzed


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "report.sqlite"


@fuzzed(60, content=exports)
def test_any_export_gives_figures_that_can_be_or_a_sentence(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    examined(path)
