"""The user's settings on disk: what can't be used counts for nothing, and nothing of others is lost."""

from __future__ import annotations

import json

import pytest

from jupyterlab_jaxprof.captures import InvalidValue, Status, Store, StoreError
from jupyterlab_jaxprof.captures.settings import SETTINGS_FILE, read_settings, write_settings

from .conftest import assert_sentence


def test_a_change_keeps_what_others_wrote(store: Store) -> None:
    assert read_settings(store.root).values == {}
    store.prepare()
    path = store.root / SETTINGS_FILE
    path.write_text(json.dumps({"of a later version": [1, 2], "defaults": {"jaxtime": "-r 3"}}))
    settings = write_settings(store.root, {"defaults": {"jaxtrace": "--no-perfetto"}})
    assert settings.defaults == {"jaxtrace": "--no-perfetto"}
    assert settings.problem == ""
    assert json.loads(path.read_text())["of a later version"] == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["{", "[]", "null", '"text"', "[" * 40_000, " " * 70_000, "\0"])
def test_a_damaged_file_is_told_and_not_overwritten(store: Store, content: str) -> None:
    store.prepare()
    path = store.root / SETTINGS_FILE
    path.write_text(content)
    settings = read_settings(store.root)
    assert settings.values == {}
    assert_sentence(settings.problem, str(path))
    with pytest.raises(StoreError) as error:
        write_settings(store.root, {"defaults": {}})
    assert_sentence(str(error.value), str(path))
    assert path.read_text() == content


@pytest.mark.parametrize("value", [[], "--steps 5", {"jaxtime": 5}, {"jaxtime": "a\nb"}, {"other": ""}])
def test_a_value_that_cannot_be_used_counts_for_nothing(store: Store, value: object) -> None:
    store.prepare()
    (store.root / SETTINGS_FILE).write_text(json.dumps({"defaults": value, "other": 1}))
    settings = read_settings(store.root)
    assert (settings.defaults, settings.values["other"]) == ({}, 1)
    assert_sentence(settings.problem, "he settings' 'defaults'")
    with pytest.raises(InvalidValue):
        write_settings(store.root, {"defaults": value})
    with pytest.raises(InvalidValue, match="no setting 'other'"):
        write_settings(store.root, {"other": 1})


def test_the_users_size_limit_counts_for_more_than_the_configurations(store: Store) -> None:
    store.size_limit_bytes = 5000
    assert store.list().size_limit_bytes == 5000
    write_settings(store.root, {"size_limit": "2 kB"})
    assert store.list().size_limit_bytes == 2000
    with store.begin("trace", "large") as draft:
        (draft.directory / "a").write_bytes(bytes(3000))
        record = draft.publish(status=Status.OK)
    assert store.list().over_limit.ids == (record.id,)
    write_settings(store.root, {"size_limit": ""})
    assert store.list().size_limit_bytes == 5000
    with pytest.raises(InvalidValue, match="is no size"):
        write_settings(store.root, {"size_limit": "much"})


def test_no_number_in_the_settings_breaks_a_list_or_an_answer(store: Store) -> None:
    store.prepare()
    path = store.root / SETTINGS_FILE
    path.write_text('{"size_limit": "' + "9" * 400 + ' GB", "panel": {"width": Infinity, "name": "\\ud800"}}')
    settings = read_settings(store.root)
    assert settings.values == {"panel": {"width": None, "name": "\N{REPLACEMENT CHARACTER}" * 3}}
    assert_sentence(settings.problem, "'size_limit'")
    assert store.list().size_limit_bytes is None
    assert write_settings(store.root, {"defaults": {"jaxtime": "-r 3"}}).defaults == {"jaxtime": "-r 3"}
