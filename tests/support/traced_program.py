"""A program as others run it: JAX work in a loop, and jax.profiler.start_server. Run it as a script."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_program(*, works: bool = True, traced_into: Path | None = None) -> Iterator[str]:
    """Start one; gives its address. With `works` False it idles; it can trace itself until it is ended."""
    if jax.__version_info__ < (0, 9):
        pytest.skip("JAX's profiler server hangs whoever asks it, before JAX 0.9")
    port = free_port()
    command = [sys.executable, __file__, str(port), str(int(works)), str(traced_into or "")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"localhost:{port}"
        if traced_into is not None:
            process.communicate(timeout=60)  # the end of its standard input ends it
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def main(port: int, works: bool, traced_into: str) -> None:
    import threading
    import time

    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: x @ x / 64)
    x = step(jnp.ones((64, 64)))
    server = jax.profiler.start_server(port)
    if traced_into:
        jax.profiler.start_trace(traced_into)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("ready", flush=True)
    number = 0
    while server and not ended.is_set():
        if works:
            with jax.profiler.StepTraceAnnotation("remote_step", step_num=number):
                x = step(x).block_until_ready()
        number += 1
        time.sleep(0.005)
    if traced_into:
        jax.profiler.stop_trace()


if __name__ == "__main__":
    main(int(sys.argv[1]), bool(int(sys.argv[2])), sys.argv[3])
