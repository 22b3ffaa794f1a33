"""%%jaxsweep: run a cell once for each value of a name, keep what it took, and show where it bends."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.captures import Draft, Status, Store, StoreError
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cell import Cell, notebook_name
from jupyterlab_jaxprof.timing import Plan
from jupyterlab_jaxprof.timing.bodies import CellBody
from jupyterlab_jaxprof.timing.points import Ending, told_endings
from jupyterlab_jaxprof.timing.repeats import repeating
from jupyterlab_jaxprof.timing.sweep import Axis, Rate, Sweep
from jupyterlab_jaxprof.timing.swept import SweepResult
from jupyterlab_jaxprof.tracing import Trace
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .arguments import asks_for_help, usage_error
from .defaults import with_defaults
from .display import Display
from .inputs import default_name
from .jaxsweep_arguments import HELP, MAGIC, Arguments, axes_of, parse, rate_of
from .jaxsweep_progress import Progress
from .jaxsweep_summary import summary_of
from .jaxtime import timing_environment
from .tracebacks import without_our_frames

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "cell_magic"]

KIND = "sweep"


async def cell_magic(shell: InteractiveShell, line: str, body: str) -> object:
    """Run `%%jaxsweep line` over `body`; raises the cell's error where no value came to its end."""
    __tracebackhide__ = True
    if asks_for_help(line):
        sys.stdout.write(f"{HELP}\nThe cell was not run.\n")
        return None
    given = with_defaults("jaxsweep", MAGIC, line, parse, _check_rate)
    arguments = given.arguments
    rate = rate_of(arguments.rate)
    cell = Cell.from_magic(shell, "jaxsweep", given.line, body)
    axes = axes_of(shell, arguments.values)
    display = Display(shell, show_card=arguments.show_card)
    name = arguments.name or default_name(shell)
    with nullcontext() if repeating() else _begin(name) as draft:
        result = _planned(name, arguments, axes, rate)
        result.notices += given.notices
        progress = Progress(shell, display, result.planned)
        display.follow(draft, "Measuring", magic=cell.magic)
        errors = _Errors(shell)
        try:
            await _sweep(cell, axes, arguments, rate, progress, errors).run(result)
        finally:
            progress.clear()
        if Trace.running is not None:
            result.notices.append(
                f"The trace '{Trace.running.name}' was running meanwhile, which slows what is measured."
            )
        error, result.error = result.error, None
        if error is None or result.interrupted:
            errors.show()
        with HeldInterrupts() as held:
            if arguments.save:
                shell.user_ns[arguments.save] = result
            if draft is not None:  # none in a repeat of a measurement, which keeps the first run's
                _keep(draft, result, display, cell, error)
    if error is not None:
        raise error
    if held.count:
        raise KeyboardInterrupt
    return None


def _check_rate(arguments: Arguments) -> None:
    rate_of(arguments.rate)


def _begin(name: str) -> Draft:
    try:
        return Store.default().begin(KIND, name)
    except StoreError as error:
        raise usage_error(MAGIC, str(error)) from None


def _planned(name: str, arguments: Arguments, axes: list[Axis], rate: Rate | None) -> SweepResult:
    planned = 1
    for axis in axes:
        planned *= len(axis.values)
    unit = rate.unit if rate is not None else ""
    return SweepResult(name, [axis.name for axis in axes], arguments.by, unit, planned)


def _sweep(
    cell: Cell,
    axes: list[Axis],
    arguments: Arguments,
    rate: Rate | None,
    progress: Progress,
    errors: _Errors,
) -> Sweep:
    return Sweep(
        CellBody(cell),
        cell.names,
        axes,
        Plan(arguments.repeats, arguments.seconds, arguments.loops, arguments.warmup),
        rate=rate,
        fresh=arguments.fresh,
        begun=progress.show,
        failed=errors.take,
    )


class _Errors:
    """Tracebacks of errors that a sweep survives: one of each kind, as text, which holds no arrays."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._told: dict[str, str] = {}

    def take(self, label: str, error: BaseException) -> None:
        """Write down the error of a value."""
        if type(error).__name__ in self._told:
            return
        traceback = without_our_frames(self._shell, error)
        formatter: Any = self._shell.InteractiveTB
        kept = getattr(formatter, "tb", None)  # it keeps the traceback, with all that its frames hold
        lines = formatter.structured_traceback(type(error), error, traceback, tb_offset=0)
        formatter.tb = kept
        self._told[type(error).__name__] = f"At {label}, the cell raised:\n" + "\n".join(lines) + "\n"

    def show(self) -> None:
        """Print them, once all is measured."""
        for text in self._told.values():
            sys.stderr.write(text)


def _keep(
    draft: Draft, result: SweepResult, display: Display, cell: Cell, error: BaseException | None
) -> None:
    """Publish the capture and show its card; where it can't be written, say at least what was measured."""
    status, reason = _judgement(result, error)
    try:
        record = draft.publish(
            status=status,
            reason=reason,
            notebook=notebook_name(),
            magic=cell.magic,
            cell=cell.body,
            environment=timing_environment(),
            summary=summary_of(result),
            notices=result.notices,
        )
    except StoreError as trouble:
        display.complain(f"{result.sentence()} {trouble}")
    else:
        display.card(record, draft.directory, in_store=True)


def _judgement(result: SweepResult, error: BaseException | None) -> tuple[Status, str]:
    """Give the capture's status and its reason. Running out of memory at some values is what was asked."""
    if error is not None and not isinstance(error, Exception | KeyboardInterrupt):
        last = next((point for point in result.points[-1:] if point.ending is not Ending.OK), None)
        where = f" at {last.label(result.names)}" if last is not None else ""
        told = f"The cell raised {type(error).__name__}{where}, which ended the sweep."
        return Status.INTERRUPTED, told
    if result.interrupted:
        return Status.INTERRUPTED, f"Stopped after {result.done} of {units.count(result.planned, 'value')}."
    if error is not None:
        told = next(point.result.failure for point in result.points if point.result.failure)
        return Status.FAILED, f"The cell raised at every value; first {' '.join(told.split()).rstrip('.')}."
    failed = [point for point in result.points if point.ending is Ending.FAILED]
    short = [point for point in result.measured if point.cached is None]
    if failed:
        told = " and ".join(told_endings(failed, result.names))
        first = f"{told}: {' '.join(failed[0].result.failure.split())[:200].rstrip('.')}."
        hint = next((point.hint for point in failed if point.hint), "")
        return Status.PARTIAL, f"{first} {hint}".rstrip()
    if short:
        return Status.PARTIAL, f"{short[0].label(result.names)}: {short[0].stopped}"
    return Status.OK, ""
