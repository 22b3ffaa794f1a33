"""`capture.json`, `settings.json` and `nsys-trials.json` with anything in them."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import InvalidValue, Store, StoreError, progress
from jupyterlab_jaxprof.captures.record import RecordError, parse, serialize
from jupyterlab_jaxprof.captures.settings import read_settings, write_settings
from jupyterlab_jaxprof.nsight import trial
from tests.cards.test_cards import ID, Outline
from tests.support.fuzz_checks import assert_card, assert_sentence
from tests.support.fuzzed_records import DIRECTORY, contents
from tests.support.fuzzing import fuzzed
from tests.support.odd_values import byte_changes, changed_json, mutated, odd_change, odd_json, odd_text, pool


@fuzzed(250, content=contents)
def test_any_record_is_read_or_refused_in_a_sentence_and_has_a_card(content: bytes) -> None:
    problem = ""
    try:
        record = parse(content)
    except RecordError as error:
        problem = str(error)
    if problem:
        assert_sentence(problem)
        return
    assert parse(serialize(record)) == parse(serialize(parse(serialize(record))))
    assert_card(record, DIRECTORY)
    Outline(cards.page(record, directory=DIRECTORY, in_store=False).partition("<body")[2].partition(">")[2]
            .partition("</body")[0])  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("fuzz") / "store")
    store.prepare()
    (store.captures_dir / ID).mkdir()
    return store


@fuzzed(120, content=contents, word=pool(odd_text, 500))
def test_a_store_lists_any_record(store: Store, content: bytes, word: str) -> None:
    (store.captures_dir / ID / "capture.json").write_bytes(content)
    for page in (Store(store.root, size_limit_bytes=1).list(), Store(store.root).list(text=word)):
        json.dumps(page.to_json(), allow_nan=False).encode()
        assert page.total == 1
        for row in page.rows:
            assert row.size_bytes >= 0
            assert row.disk_bytes >= 0
            if row.record is None:
                assert_sentence(row.problem or "")
    problem = ""
    try:
        renamed = store.update(ID, name="renamed", pinned=True)
    except StoreError as error:
        problem = str(error)
    if problem:
        assert_sentence(problem)
    else:
        assert (renamed.name, store.get(ID)) == ("renamed", renamed)


_SETTINGS: dict[str, Any] = {
    "defaults": {"jaxtrace": "--steps 5", "jaxtime": "-r 3", "nsys": "--graphs=off"},
    "size_limit": "20 GB",
    "panel": {"open": True},
}
_SIZES = (
    "",
    "5",
    "1e5 GB",
    "9" * 400 + " GB",
    "9" * 5000,
    "1.5TB",
    "-1",
    "٣ GB",
    "nan",
    "1_0",
    "0x5",
    "20 GB\n",
)


def _settings(changes: list[Any], size: str, damage: list[tuple[int, int, bytes]]) -> bytes:
    data = copy.deepcopy(_SETTINGS) | {"size_limit": size}
    for change in changes:
        changed_json(data, copy.deepcopy(change))
    return mutated(json.dumps(data).encode(), damage)


def _setting(chance: Random) -> tuple[str, Any]:
    key = chance.choice(["defaults", "size_limit", "panel"])
    usable = {"defaults": {"jaxtime": odd_text(chance)}, "size_limit": chance.choice(_SIZES)}
    return key, usable[key] if key in usable and chance.random() < 0.7 else odd_json(chance)


@fuzzed(
    100,
    content=st.builds(
        _settings,
        st.lists(pool(odd_change, 2000), max_size=3),
        st.sampled_from(_SIZES),
        st.one_of(st.just([]), st.just([]), byte_changes(2)),
    ),
    change=pool(_setting, 2000),
)
def test_any_settings_are_read_with_a_sentence_and_kept(
    store: Store, content: bytes, change: tuple[str, Any]
) -> None:
    path = store.root / "settings.json"
    path.write_bytes(content)
    settings = read_settings(store.root)
    json.dumps({"settings": settings.values, "problem": settings.problem}, allow_nan=False)
    assert all(isinstance(options, str) for options in settings.defaults.values())
    if settings.problem:
        assert_sentence(settings.problem)
    assert store.list(limit=0).size_limit_bytes is None or store.list(limit=0).size_limit_bytes > 0
    problem = ""
    try:
        written = write_settings(store.root, dict([change]))
    except (InvalidValue, StoreError) as error:
        problem = str(error)
    if problem:
        assert_sentence(problem)
        assert path.read_bytes() == content
    else:
        assert written.values[change[0]] == change[1]
    path.unlink()


_VERDICT = {"records": True, "reports": True, "reason": "", "tried": 1.0}


def _trials(changes: list[Any], damage: list[tuple[int, int, bytes]]) -> bytes:
    data: dict[str, Any] = {"key": dict(_VERDICT), "other": dict(_VERDICT)}
    for change in changes:
        changed_json(data, copy.deepcopy(change))
    return mutated(json.dumps(data).encode(), damage)


@fuzzed(
    100,
    content=st.builds(
        _trials, st.lists(pool(odd_change, 2000), max_size=3), st.one_of(st.just([]), byte_changes(2))
    ),
)
def test_any_file_of_trials_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / trial.FILE
    path.write_bytes(content)
    for verdict in trial._known(path).values():
        assert isinstance(verdict.reason, str)
        assert isinstance(verdict.records, bool)
        assert isinstance(verdict.reports, bool)
        assert math.isfinite(verdict.tried)
    trial._keep(path, "new", trial.Verdict(True, True, "", 2.0))
    assert trial._known(path)["new"].tried == 2.0


_PROGRESS: dict[str, Any] = {
    **dict.fromkeys(("kind", "name", "magic", "notebook", "cell_id", "kernel_id", "host", "phase"), "x"),
    "interruptible": True,
    "pid": 1,
    "since": 1.0,
    "fraction": None,
}


def _progress(changes: list[Any], damage: list[tuple[int, int, bytes]]) -> bytes:
    data = dict(_PROGRESS)
    for change in changes:
        changed_json(data, copy.deepcopy(change))
    return mutated(json.dumps(data).encode(), damage)


@fuzzed(
    100,
    content=st.builds(
        _progress, st.lists(pool(odd_change, 2000), max_size=3), st.one_of(st.just([]), byte_changes(2))
    ),
)
def test_any_progress_of_another_process_can_be_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = Path(tmp_path_factory.getbasetemp())
    (directory / progress.PROGRESS_FILE).write_bytes(content)
    about = progress._read(directory)
    if about is not None:
        progress._has_ended(about)
        told = progress.Running("x", about).to_json(2.0)
        json.dumps(told, allow_nan=False)
        assert told["elapsed_s"] >= 0
