"""A notebook in the tests' own process, whose cells run under the real nsys."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from tests.captures.conftest import disk
from tests.nsight.stand_ins import MARK
from tests.support.shells import running_shell

__all__ = ["disk"]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory):
    """A shell with the magics; `notebook.mark` marks what it starts, `notebook.store` is its store."""
    patch = pytest.MonkeyPatch()
    place = tmp_path_factory.mktemp("nsys")
    patch.setenv("JAXPROF_DIR", str(place / "store"))
    patch.setenv("JAX_PLATFORMS", "cpu")
    mark = uuid.uuid4().hex  # no other run of these tests on this machine has it, and kills what bears it
    patch.setenv(MARK, mark)
    patch.setenv("OWN_API_TOKEN", "secret-of-the-notebook")
    with running_shell("jupyterlab_jaxprof") as shell:
        shell.mark, shell.store = mark, Path(os.environ["JAXPROF_DIR"])
        shell.run("import jax, jax.numpy as jnp, os, signal, subprocess, sys, time\nx = jnp.ones((50, 50))")
        shell.run("def divide(a):\n    return a / 0")
        yield shell
    patch.undo()
