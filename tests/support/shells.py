"""A real IPython shell in the test's own process."""

from __future__ import annotations

import contextlib
import io
import re
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
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "nocolor"
        self.ip = InteractiveShell.instance(config=config)
        for extension in extensions:
            self.ip.extension_manager.load_extension(extension)

    def run(self, cell: str, store_history: bool = True) -> Outcome:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = self.ip.run_cell(cell, store_history=store_history)
        return Outcome(result, _ANSI.sub("", out.getvalue()))

    @property
    def names(self):
        return self.ip.user_ns

    def close(self):
        history = self.ip.history_manager
        if history is not None and history.save_thread is not None:
            history.save_thread.stop()
        InteractiveShell.clear_instance()


@contextlib.contextmanager
def running_shell(*extensions: str):
    shell = Shell(*extensions)
    try:
        yield shell
    finally:
        shell.close()
