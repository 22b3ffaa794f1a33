"""A real IPython shell in the test's own process."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import signal
import threading
import time
from dataclasses import dataclass

from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Outcome:
    """What running a cell gave: IPython's result, and all that it printed, tracebacks included."""

    result: ExecutionResult
    text: str

    @property
    def error(self):
        return self.result.error_in_exec or self.result.error_before_exec


class Shell:
    """Runs cells in a fresh `InteractiveShell` with its history in memory."""

    def __init__(self, *extensions: str):
        InteractiveShell.clear_instance()
        self._out = io.StringIO()
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "nocolor"
        self.ip = InteractiveShell.instance(config=config)
        for extension in extensions:
            self.ip.extension_manager.load_extension(extension)

    def run(self, cell: str, store_history: bool = True) -> Outcome:
        self._out = out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = self.ip.run_cell(cell, store_history=store_history)
        return Outcome(result, _ANSI.sub("", out.getvalue()))

    @contextlib.contextmanager
    def interrupted_when(self, text: str, timeout_s: float = 60):
        """Send the Ctrl-C of a user to the cell run within, once it has printed `text`."""
        last = self._out

        def watch():
            deadline_s = time.monotonic() + timeout_s
            while self._out is last or text not in self._out.getvalue():
                if time.monotonic() > deadline_s:
                    return  # nobody is interrupted, and the test's own assertions fail
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        watcher = threading.Thread(target=watch)
        watcher.start()
        yield
        watcher.join()

    @property
    def names(self):
        return self.ip.user_ns

    def close(self):
        history = self.ip.history_manager
        if history is not None and history.save_thread is not None:
            history.save_thread.stop()
        # At its exit Python would clean up every shell of every test, each with a collection of all garbage,
        # and until then nothing of what their cells made would be freed.
        atexit.unregister(self.ip.atexit_operations)
        InteractiveShell.clear_instance()


@contextlib.contextmanager
def running_shell(*extensions: str):
    shell = Shell(*extensions)
    try:
        yield shell
    finally:
        shell.close()
