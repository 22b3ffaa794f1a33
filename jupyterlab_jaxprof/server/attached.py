"""A `jaxprof` command in a process of its own that ends with the server, however that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

_PROGRAM = ("-P", "-m", "jupyterlab_jaxprof.cli.attached")
_END_PATIENCE_S = 10.0


@asynccontextmanager
async def attached(
    *arguments: str, environment: Mapping[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start it, with pipes for its output; it has ended when the `with` statement does. Raises OSError."""
    theirs, life = os.pipe()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *_PROGRAM, *arguments),
                stdin=theirs,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is the Jupyter server's to handle
            )
        finally:
            os.close(theirs)
        try:
            yield process
        finally:
            if process.returncode is None:
                await _end(process)
    finally:
        os.close(life)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt it, as Ctrl-C does, so that it ends what it has started and removes its files."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(process.wait(), _END_PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
