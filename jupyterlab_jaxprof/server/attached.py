"""A `jaxprof` command in a process of its own that ends with the server, however that ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

_PROGRAM = ("-P", "-m", "jupyterlab_jaxprof.cli.attached")


@asynccontextmanager
async def attached(
    *arguments: str, environment: Mapping[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start it, with pipes for its output; after the `with` statement it ends itself. Raises OSError."""
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
        yield process
    finally:
        os.close(life)
