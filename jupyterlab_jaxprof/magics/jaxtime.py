"""%%jaxtime and %jaxtime: time a cell or an expression, keep the result, and show its card."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.captures import Draft, Record, Status, Store, StoreError
from jupyterlab_jaxprof.cell import Cell, drive, needs_await, notebook_name
from jupyterlab_jaxprof.timing import Plan, TimedResult, measure
from jupyterlab_jaxprof.timing.bodies import CellBody, holders_of_deleted
from jupyterlab_jaxprof.timing.compiles import Compile
from jupyterlab_jaxprof.timing.repeats import repeating
from jupyterlab_jaxprof.tracing import Trace, trace_environment
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .arguments import asks_for_help, usage_error
from .defaults import Given, with_defaults
from .display import Display, wait_for_leftovers
from .inputs import default_name
from .jaxtime_arguments import HELP, Arguments, line_asks_for_help, parse, parse_line
from .jaxtime_compare import KIND, compare, find
from .jaxtime_summary import summary_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "CompiledError", "cell_magic", "line_magic"]

_TOLD = 3


class CompiledError(RuntimeError):
    """Something was compiled although --no-compile or --fail-on-recompile says that nothing should be."""

    def _render_traceback_(self) -> list[str]:
        """Give what IPython shows: no line of the cell's is to blame, and none of ours."""
        return [f"{type(self).__name__}: {self}"]


async def cell_magic(shell: InteractiveShell, line: str, body: str) -> object:
    """Run `%%jaxtime line` over `body`; gives the cell's value, or raises its error."""
    __tracebackhide__ = True
    if asks_for_help(line):
        sys.stdout.write(f"{HELP}\nThe cell was not run.\n")
        return None
    given = with_defaults("jaxtime", "%%jaxtime", line, parse, _check_names)
    cell = Cell.from_magic(shell, "jaxtime", given.line, body)
    return await _time(shell, cell, given)


def line_magic(shell: InteractiveShell, line: str) -> object:
    """Run `%jaxtime line`; gives the expression's value, or raises its error."""
    __tracebackhide__ = True
    if line_asks_for_help(line):
        sys.stdout.write(HELP)
        return None
    given = with_defaults("jaxtime", "%jaxtime", line, parse_line, _check_names)
    arguments = given.arguments
    if needs_await(shell, arguments.expression):
        raise usage_error(
            "%jaxtime",
            "it can't await within a line. Put %%jaxtime on a cell's first line and the code below it.",
        )
    cell = Cell.from_line(shell, f"%jaxtime {given.line}".strip(), arguments.expression)
    return drive(_time(shell, cell, given))


def _check_names(arguments: Arguments) -> None:
    find(Store.default(), arguments.compare, "%%jaxtime")


async def _time(shell: InteractiveShell, cell: Cell, given: Given[Arguments]) -> object:
    """Measure, write the capture and show it, then give the value or raise the error."""
    __tracebackhide__ = True
    arguments = given.arguments
    display = Display(shell, show_card=arguments.show_card)
    plan = Plan(arguments.repeats, arguments.seconds, arguments.loops, arguments.warmup)
    name = arguments.name or default_name(shell)
    others, draft = _begin(arguments, name)
    with draft or nullcontext():
        notices = given.notices + wait_for_leftovers(display)
        display.follow(draft, "Measuring", magic=cell.magic)
        result = await measure(
            CellBody(cell),
            name,
            plan=plan,
            transfers=arguments.transfers,
            memory=arguments.memory,
            names=cell.names,
        )
        result.notices[:0] = notices
        if Trace.running is not None:
            result.notices.append(
                f"The trace '{Trace.running.name}' was running meanwhile, which slows what is measured."
            )
        _withhold_deleted(result)
        error = _compiled_error(result, arguments)
        with HeldInterrupts() as held:
            if arguments.save:
                shell.user_ns[arguments.save] = result.released()
            if draft is not None:
                _keep(draft, result, arguments, display, cell=cell, others=others, error=error)
    if held.count and result.error is None:
        result.value = None
        raise KeyboardInterrupt
    if error is not None and result.error is None:
        result.value = None  # the error's frames keep the result alive
        raise error
    return result.result()


def _begin(arguments: Arguments, name: str) -> tuple[list[Record], Draft | None]:
    """Look up what to compare with and start the capture; raises UsageError, before anything has run.

    In a repeat of another measurement there is none: the first run's is kept.
    """
    store = Store.default()
    magic = "%jaxtime" if arguments.expression else "%%jaxtime"
    others = find(store, arguments.compare, magic)
    if repeating():
        return others, None
    try:
        return others, store.begin(KIND, name)
    except StoreError as error:
        raise usage_error(magic, str(error)) from None


def _keep(
    draft: Draft,
    result: TimedResult,
    arguments: Arguments,
    display: Display,
    *,
    cell: Cell,
    others: Sequence[Record],
    error: CompiledError | None,
) -> None:
    """Publish the capture and show its card; where it can't be written, say at least what was measured."""
    status, reason = _judgement(result, error)
    environment = timing_environment()
    try:
        record = draft.publish(
            status=status,
            reason=reason,
            notebook=notebook_name(),
            magic=cell.magic,
            cell=cell.body,
            environment=environment,
            summary=summary_of(result, compare(result, environment, others), lines=not arguments.expression)
            | {"autotuning": autotunes(environment), "place": cell.place.told},
            notices=_notices(result),
        )
    except StoreError as trouble:
        display.complain(f"{result.sentence()} {trouble}")
    else:
        display.card(record, draft.directory, in_store=True)


def timing_environment() -> dict[str, Any]:
    """Give what stands around the timing, with the settings that change what is compiled."""
    import jax

    return trace_environment() | {
        "x64": bool(jax.config.jax_enable_x64),  # pyright: ignore[reportAttributeAccessIssue]
        "matmul_precision": jax.config.jax_default_matmul_precision,  # pyright: ignore[reportAttributeAccessIssue]
    }


def autotunes(environment: Mapping[str, Any]) -> bool:
    """Tell whether XLA times candidates for kernels while it compiles: on a GPU, unless it is told not to."""
    on_gpu = any(device.get("platform") in ("gpu", "cuda") for device in environment.get("devices") or ())
    return on_gpu and "--xla_gpu_autotune_level=0" not in str(environment.get("xla_flags") or "")


def _withhold_deleted(result: TimedResult) -> None:
    """Show no value that can't be shown any more: a repeat may have donated the first run's."""
    if result.repeats is not None and result.repeats.samples and holders_of_deleted({"value": result.value}):
        result.value = None
        result.notices.append("The cell's value is not shown: it was donated to a repeat.")


def _judgement(result: TimedResult, error: CompiledError | None) -> tuple[Status, str]:
    """Give the capture's status and its reason."""
    stopped = result.repeats.stopped if result.repeats is not None else ""
    if result.interrupted:
        return Status.INTERRUPTED, "The cell was interrupted in its first run."
    if result.failure:
        return Status.FAILED, f"The cell raised {' '.join(result.failure.split()).rstrip('.')}."
    if error is not None:
        return Status.FAILED, str(error)
    if result.repeats is not None and result.repeats.interrupted:
        return Status.INTERRUPTED, stopped
    return (Status.PARTIAL, stopped) if stopped else (Status.OK, "")


def _notices(result: TimedResult) -> list[str]:
    data = result.to_dict()
    notices = [*data["notices"]]
    notices += data["repeats"]["notices"] if data["repeats"] is not None else []
    notices += data["memory"]["notices"] if data["memory"] is not None else []
    return list(dict.fromkeys(notices))


def _compiled_error(result: TimedResult, arguments: Arguments) -> CompiledError | None:
    """Give the error that --no-compile or --fail-on-recompile asks for; None when all is as it should be."""
    if arguments.no_compile and (compiled := [entry for entry in result.compiles if entry.finished]):
        return CompiledError(f"Under --no-compile something was compiled: {_listed(compiled)}")
    if arguments.fail_on_recompile and result.recompiles:
        return CompiledError(f"Something was compiled again: {_listed(result.recompiles)}")
    return None


def _listed(compiles: Sequence[Compile]) -> str:
    """Say of each what it was, where, and why."""
    told = [
        f"{entry.name}{f' (line {entry.place.line})' if entry.place else ''}: {entry.explanation}"
        for entry in compiles[:_TOLD]
    ]
    more = len(compiles) - _TOLD
    return " ".join(told) + (f" And {more} more." if more > 0 else "")
