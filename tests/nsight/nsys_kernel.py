"""A kernel that the real nsys has started, by the kernelspec that the magic writes."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from jupyterlab_jaxprof.nsight import kernelspec
from tests.support.kernels import started_kernel


@contextmanager
def nsys_kernel(folder: Path, started_with: str = "", **environment: str):
    """Start one, whose store is `folder/store`; shut it down at the end.

    `started_with` stands in the kernelspec in place of what is to be traced.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        made = kernelspec.install()
    place = made.directory / "kernel.json"
    place.write_text(place.read_text().replace(made.trace, started_with or made.trace))
    specs = KernelSpecManager(kernel_dirs=[str(made.directory.parent)])
    manager = KernelManager(kernel_name=made.name, kernel_spec_manager=specs)
    environment = {"JAXPROF_DIR": str(folder / "store"), **environment}
    with started_kernel(manager, folder, ready_s=120, **environment) as kernel:
        yield kernel
