"""A kernel's start, with the extension and without."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.manager import KernelManager

from bench.table import Figure, Limit
from bench.turns import in_turns
from tests.support.kernels import kernel_environment

ROUNDS = 11


@contextmanager
def kernel_home(with_us: bool) -> Iterator[dict[str, str]]:
    """The environment of kernels with our start-up file, or without it."""
    with tempfile.TemporaryDirectory() as directory:
        environment = kernel_environment(directory)
        startup = Path(environment["IPYTHONDIR"], "profile_default/startup/00-jaxprof.py")
        if not with_us:
            startup.write_text("")
        yield environment


def kernel_start_s(environment: dict[str, str]) -> float:
    """From starting a kernel's process until it answers."""
    manager = KernelManager(kernel_name="python3")
    began = time.perf_counter()
    manager.start_kernel(env=environment)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        return time.perf_counter() - began
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def figures(long: bool) -> Iterator[Figure]:
    """Measure. What a start takes varies by more than our part of it: `imports` has that part alone."""
    with kernel_home(True) as ours, kernel_home(False) as plain:
        rounds = ROUNDS * (3 if long else 1)
        pairs = in_turns(rounds, lambda: kernel_start_s(ours), lambda: kernel_start_s(plain))
    peer = "without the extension"
    yield Figure.of_pairs("a kernel's start", pairs[0], peer, pairs[1], "s", Limit("ratio", 1.1))
