"""%jaxmem: what memory the devices have, what is in use and what holds it; now, or over time."""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.captures import Draft, Status, Store, StoreError
from jupyterlab_jaxprof.cell import notebook_name
from jupyterlab_jaxprof.environment import own_version
from jupyterlab_jaxprof.timing.memory import MemoryReport, process_bytes, report_now
from jupyterlab_jaxprof.timing.repeats import repeating
from jupyterlab_jaxprof.timing.variables import backend_has_started
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .arguments import asks_for_help, usage_error
from .defaults import Given, with_defaults
from .display import Display
from .inputs import default_name
from .jaxmem_arguments import HELP, MAGIC, Arguments, parse
from .jaxmem_summary import summary_of
from .jaxtime import timing_environment

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "line_magic"]

KIND = "memory"


def line_magic(shell: InteractiveShell, line: str) -> object:
    """Run `%jaxmem line`."""
    __tracebackhide__ = True
    if asks_for_help(line):
        sys.stdout.write(HELP)
        return None
    given = with_defaults("jaxmem", MAGIC, line, parse)
    arguments = given.arguments
    if arguments.watch or arguments.stop:
        from . import jaxmem_watch

        (jaxmem_watch.start if arguments.watch else jaxmem_watch.stop)(shell, given)
    else:
        _snapshot(shell, given)
    return None


def _snapshot(shell: InteractiveShell, given: Given[Arguments]) -> None:
    __tracebackhide__ = True
    arguments = given.arguments
    display = Display(shell, show_card=arguments.show_card)
    with nullcontext() if repeating() else begin(shell, arguments) as draft:
        report = report_if_started(shell.user_ns)
        if arguments.save:
            shell.user_ns[arguments.save] = report
        if draft is None:  # in a repeat of a measurement, which keeps the first run's
            return
        summary = summary_of(report, process_bytes())
        notices = given.notices + notices_of(report)
        with HeldInterrupts() as held:
            publish(draft, display, f"{MAGIC} {given.line}".strip(), summary, notices)
    if held.count:
        raise KeyboardInterrupt


def begin(shell: InteractiveShell, arguments: Arguments) -> Draft:
    """Start the capture; raises UsageError where none can be written."""
    try:
        return Store.default().begin(KIND, arguments.name or default_name(shell))
    except StoreError as error:
        raise usage_error(MAGIC, str(error)) from None


def report_if_started(names: Mapping[str, Any]) -> MemoryReport | None:
    """Report on the memory as it is now; None where JAX has no devices yet, which this does not change."""
    return report_now(names) if "jax" in sys.modules and backend_has_started() else None


def notices_of(report: MemoryReport | None) -> list[str]:
    """Give what is to be said of a report."""
    return [] if report is None else list(report.notices)


def publish(
    draft: Draft,
    display: Display,
    magic: str,
    summary: Mapping[str, Any],
    notices: list[str],
    *,
    status: Status = Status.OK,
    reason: str = "",
    cells: str = "",
) -> None:
    """Write the capture and show its card; where it can't be written, say at least how it stands."""
    display.await_saving(draft)
    try:
        record = draft.publish(
            status=status,
            reason=reason,
            notebook=notebook_name(),
            magic=magic,
            cell=cells,
            environment=_environment(),
            summary=summary,
            notices=notices,
        )
    except StoreError as trouble:
        display.complain(f"{summary['sentence']} {trouble}")
    else:
        display.card(record, draft.directory, in_store=True)


def _environment() -> dict[str, Any]:
    """Give what stands around it, without starting JAX."""
    if "jax" in sys.modules and backend_has_started():
        return timing_environment()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "devices": [],
        "jaxprof": own_version(),
    }
