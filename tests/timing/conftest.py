import jax
import pytest

from jupyterlab_jaxprof import timing
from jupyterlab_jaxprof.timing.compiles import Recorder
from jupyterlab_jaxprof.timing.places import Places


@pytest.fixture(autouse=True)
def watching():
    """Every test begins with JAX's caches empty and with the history running."""
    timing.watch()
    jax.clear_caches()
    yield
    timing.unwatch()


@pytest.fixture
def compiled():
    """Run a function, and give what was compiled in it, JAX's own operations left out."""

    def run(function, *args, operations=False, **kwargs):
        with Recorder(Places()) as recorder:
            function(*args, **kwargs)
        return [entry for entry in recorder.compiles if operations or not entry.operation]

    return run
