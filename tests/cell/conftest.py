import pytest

from tests.support import probe
from tests.support.shells import running_shell


@pytest.fixture
def shell():
    probe.runs.clear()
    with running_shell("tests.support.probe") as shell:
        yield shell
