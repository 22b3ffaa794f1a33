"""A program as others run it: JAX work in a loop, and jax.profiler.start_server. Run it as a script."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_program(*, works: bool = True) -> Iterator[str]:
    """Start one; gives its address. With `works` False it idles."""
    port = free_port()
    command = [sys.executable, __file__, str(port), str(int(works))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"localhost:{port}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main(port: int, works: bool) -> None:
    import time

    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: x @ x / 64)
    x = step(jnp.ones((64, 64)))
    server = jax.profiler.start_server(port)
    print("ready", flush=True)
    number = 0
    while server:
        if works:
            with jax.profiler.StepTraceAnnotation("remote_step", step_num=number):
                x = step(x).block_until_ready()
        number += 1
        time.sleep(0.005)


if __name__ == "__main__":
    main(int(sys.argv[1]), bool(int(sys.argv[2])))
