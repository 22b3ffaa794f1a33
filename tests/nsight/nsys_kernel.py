"""A kernel that the real nsys has started, by the kernelspec that the magic writes."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from jupyterlab_jaxprof.nsight import kernelspec
from tests.support.kernels import Kernel, kernel_environment


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
    manager.start_kernel(env=kernel_environment(folder, **environment), cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
