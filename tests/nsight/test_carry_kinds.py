"""Every kind of object that notebooks hold is carried, and works as in the notebook, or is refused."""

from __future__ import annotations

import pytest

from tests.nsight import zoo
from tests.nsight.notebook import Case, carry


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    refused = {name: Case({"body": f"result = {name}"}) for name in zoo.REFUSED}
    told = carry(folder, zoo.CELLS, {"all": Case(zoo.CARRIED)} | refused)
    assert (folder / "log.txt").read_text() == "kept"  # by a statement that must never run again
    assert told["all"].error == ""
    return told


@pytest.mark.parametrize("name", zoo.CARRIED)
def test_works_in_the_child_as_in_the_notebook(told, name):
    given = told["all"].parent[name]
    assert not given.startswith("!")
    assert told["all"].child[name] == given


@pytest.mark.parametrize("name", zoo.REFUSED)
def test_is_refused_by_name_with_the_reason_and_the_remedies(told, name):
    assert told[name].error.startswith(f"{name} (")
    assert zoo.REFUSED[name] in told[name].error
    assert "--setup" in told[name].error


def test_nothing_is_amiss(told):
    assert told["all"].notices == []
