"""The terminal command: its arguments, its exit status, and errors as sentences on stderr."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence

from jupyterlab_jaxprof.captures import Store, StoreError
from jupyterlab_jaxprof.reports import ReportError

from .arguments import parse
from .commands import COMMANDS
from .output import Output, OutputError

DONE, FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Gives 0; 1 where --fail-on or the doctor found something; 2 for what can't be done."""
    output = Output.of_process()
    try:
        status = _run(parse(arguments), output)
    except SystemExit:  # --help, --version and wrong arguments
        if not _finished(output, "jaxprof"):
            return FAILED
        raise
    return status


def _run(asked: argparse.Namespace, output: Output) -> int:
    command = COMMANDS[asked.command]
    try:
        found = command(Store.default(), asked, output)
        status = FOUND if found else DONE
    except (ReportError, StoreError, OutputError) as error:
        output.complain(f"jaxprof {asked.command}: {error}")
        status = FAILED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:  # noqa: BLE001 (Python's own status, 1, would say that something was found)
        traceback.print_exc()
        output.complain(
            f"jaxprof {asked.command} failed: {type(error).__name__}: {error}. This is a fault of "
            "jupyterlab-jaxprof: please report it with the lines above."
        )
        status = FAILED
    return status if _finished(output, f"jaxprof {asked.command}") else FAILED


def _finished(output: Output, command: str) -> bool:
    """Write what is held back; False where that fails."""
    try:
        output.finish()
    except OutputError as error:
        output.complain(f"{command}: {error}")
        return False
    return True
