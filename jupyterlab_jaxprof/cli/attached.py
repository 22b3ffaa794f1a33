"""`python -m jupyterlab_jaxprof.cli.attached`: `jaxprof` for a program that starts it, and that it ends with.

Its standard input is a pipe whose other end only that program holds: where it closes, be it that the program
was killed, this process ends as by Ctrl-C, so that what it has started ends and its files are removed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from .main import INTERRUPTED, main

_PATIENCE_S = 10.0


def end_with_input() -> None:
    """From now on, end this process where its standard input does."""
    threading.Thread(target=_end, daemon=True).start()


def _end() -> None:
    while os.read(0, 512):
        continue
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_PATIENCE_S)  # longer than what removes files; shorter than reading a large trace
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the program has left there
    end_with_input()
    sys.exit(main())
