from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_jaxprof.tracing.profiler import Profiler
from tests.support.captures import unpacked_to


@pytest.fixture
def real_trace(tmp_path):
    """Unpack a real trace of tests/data (an H200's) and give its path."""

    def unpack(name: str) -> Path:
        return unpacked_to(tmp_path, f"{name}.xplane.pb")

    return unpack


@pytest.fixture
def new_profiler(tmp_path):
    """Make a Profiler with a directory of its own; every one is stopped at the end."""
    import jax

    from jupyterlab_jaxprof.tracing import profile_options

    made: list[Profiler] = []

    def make(**options: int) -> Profiler:
        directory = tmp_path / f"trace-{len(made)}"
        directory.mkdir()
        made.append(Profiler(directory, profile_options(options)))
        return made[-1]

    yield make
    for profiler in made:
        while profiler.unfinished:
            profiler._worker.join()
    try:
        jax.profiler.stop_trace()
    except RuntimeError:
        return
    pytest.fail("the test left a trace running")


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())
