"""%%jaxtrace and %jaxtrace: trace a cell, or several, or another program, and show the capture's card."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import time
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from jupyterlab_jaxprof.captures import Capture, Draft, Record, Status, Store, StoreError
from jupyterlab_jaxprof.cell import Barrier, Cell, Run, described, notebook_name
from jupyterlab_jaxprof.tracing import (
    OptionError,
    Outcome,
    ProfilerError,
    Source,
    Trace,
    profile_options,
    step_name,
)
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts
from jupyterlab_jaxprof.tracing.remote import RemoteError, RemoteTrace, parse_targets, remote_options

from .arguments import asks_for_help, usage_error
from .defaults import Given, with_defaults
from .display import Display, wait_for_leftovers
from .inputs import default_name, inputs
from .jaxtrace_arguments import HELP, Arguments, parse

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "cell_magic", "line_magic"]

_DURATION_MS = 1000


async def cell_magic(shell: InteractiveShell, line: str, body: str) -> object:
    """Run `%%jaxtrace line` over `body`; gives the cell's value, or raises its error."""
    __tracebackhide__ = True
    if asks_for_help(line):
        sys.stdout.write(f"{HELP}\nThe cell was not run.\n")
        return None
    given = _read("%%jaxtrace", line)
    arguments = given.arguments
    if arguments.remote:
        return await _cell_and_remote(shell, given, body)
    with _sentences("%%jaxtrace"):
        Trace.check_free()
        _barrier("%%jaxtrace")
        options = profile_options(arguments.profiler_options)
    cell = Cell.from_magic(shell, "jaxtrace", given.line, body)
    display = Display(shell, show_card=arguments.show_card)
    notices = given.notices + wait_for_leftovers(display)
    with _sentences("%%jaxtrace"):
        trace = Trace(_begin(shell, arguments), options, until="its cell ends", perfetto=arguments.perfetto)
    phase = "Running the cell" if arguments.steps is None else f"Running {arguments.steps} steps"
    display.follow(trace.draft, phase, magic=cell.magic)
    if arguments.steps is not None and options.host_tracer_level == 0:
        notices.append("--host-level 0 leaves the steps' annotations out of the trace; use 1 to see them.")
    outcome = Outcome(notices=notices)
    runs: list[Run] = []
    try:
        try:
            with _sentences("%%jaxtrace"):
                trace.start()
            if not trace.interrupted:
                await _run(cell, arguments, runs)
        except KeyboardInterrupt:  # between two steps
            trace.interrupted = True
        _judge(outcome, runs, arguments, body)
        if trace.interrupted and arguments.steps is not None and len(runs) < arguments.steps:
            told = f"Interrupted after {len(runs)} of {arguments.steps} steps; the trace ends there."
            outcome.worsen(Status.INTERRUPTED, told)
        return _conclude(shell, trace, outcome, arguments, display, cell=cell, run=runs[-1] if runs else None)
    finally:
        if Trace.running is trace:  # an interrupt between the lines above
            trace.abandon()


def _read(magic: str, line: str) -> Given[Arguments]:
    """Read the line, with the default options from the settings."""

    def check(arguments: Arguments) -> None:
        _barrier(magic)
        with _sentences(magic):
            profile_options(arguments.profiler_options)

    return with_defaults("jaxtrace", magic, line, functools.partial(parse, magic), check)


async def _run(cell: Cell, arguments: Arguments, runs: list[Run]) -> None:
    """Run the cell once, or as annotated steps until one fails; every run is in `runs`."""
    import jax

    if arguments.steps is None:
        runs.append(await cell.run())
        return
    name = arguments.step_name or step_name(cell.body)
    for number in range(arguments.steps):
        if runs:
            runs[-1].value = None  # only the last value is shown; the others' arrays are not kept alive
        annotation = jax.profiler.StepTraceAnnotation(name, step_num=number)
        runs.append(await cell.run(around=annotation))
        if runs[-1].error is not None:
            return


def _judge(outcome: Outcome, runs: list[Run], arguments: Arguments, body: str) -> None:
    """Put into `outcome` what the runs tell."""
    outcome.notices += [notice for run in runs for notice in run.notices]
    if not runs:
        outcome.worsen(Status.INTERRUPTED, "Interrupted before the cell ran.")
        return
    outcome.wall_ms = (runs[-1].done_ns - runs[0].started_ns) / 1e6
    whole = [run for run in runs if run.error is None]
    if arguments.steps is not None:
        outcome.step_name = arguments.step_name or step_name(body)
        outcome.step_durations_ms = [(run.done_ns - run.started_ns) / 1e6 for run in whole]
    error = runs[-1].error
    if error is None:
        return
    where = f" in step {len(runs) - 1} (counted from 0)" if arguments.steps is not None else ""
    if runs[-1].interrupted:
        outcome.worsen(Status.INTERRUPTED, f"The cell was interrupted{where}; the trace ends there.")
        return
    what = described(error).splitlines()[0].rstrip(".")
    outcome.worsen(Status.FAILED, f"The cell raised {what}{where}; the trace ends there.")
    if "Profile has already been started" in str(error):
        outcome.notices.append(
            "The cell itself starts a trace (jax.profiler.trace or start_trace), and %%jaxtrace traces it "
            "already: leave one of the two out."
        )
    if len(runs) > 1 and ("deleted or donated" in str(error) or "has been deleted" in str(error)):
        outcome.notices.append(
            "A step used an array that the step before had donated to JAX. Let the cell assign the result "
            "to the same name (params = step(params)), then it can run as often as you like."
        )


def _conclude(
    shell: InteractiveShell,
    trace: Trace,
    outcome: Outcome,
    arguments: Arguments,
    display: Display,
    *,
    cell: Cell,
    run: Run | None,
) -> object:
    """Write the capture and show it, then give the cell's value or raise its error."""
    __tracebackhide__ = True
    with HeldInterrupts() as held:
        try:
            source = Source(notebook_name(), cell.magic, cell.body, cell.place.told)
            record = trace.finish(outcome, source, say=display.say)
            _present(shell, record, trace.draft, arguments, display)
        except StoreError as error:  # the cell's value or error counts for more
            display.complain(str(error))
    if run is not None and run.error is not None:
        return run.result()
    if held.count or trace.interrupted or run is None:
        raise KeyboardInterrupt
    return run.result()


def line_magic(shell: InteractiveShell, line: str) -> object:
    """Run `%jaxtrace line`."""
    __tracebackhide__ = True
    command, _, rest = line.strip().partition(" ")
    if command == "help" or asks_for_help(line):
        sys.stdout.write(HELP)
    elif not command:
        _tell_status()
    elif command == "start":
        _start(shell, rest)
    elif command == "stop":
        _stop(shell, rest)
    else:
        _remote_only(shell, line)
    return None


def _tell_status() -> None:
    trace = Trace.running
    if trace is None:
        sys.stdout.write("No trace is running. %%jaxtrace above a cell traces it; %jaxtrace? tells more.\n")
        return
    seconds = time.monotonic() - trace.started_s
    sys.stdout.write(
        f"The trace '{trace.name}' has been running for {seconds:.0f} s; it runs until {trace.until}.\n"
    )


class _Session:
    """What %jaxtrace start began, until %jaxtrace stop or the kernel's end."""

    open: _Session | None = None

    def __init__(
        self, shell: InteractiveShell, trace: Trace, arguments: Arguments, line: str, notices: list[str]
    ) -> None:
        self.shell = shell
        self.notices = notices
        self.trace = trace
        self.arguments = arguments
        self.magic = f"%jaxtrace start {line}".strip()
        self.started_ns = time.perf_counter_ns()
        self.first_input = len(inputs(shell))

    def finish(self, outcome: Outcome, display: Display, *, diagnose: bool = True) -> Record:
        """Publish the capture; its cells are those that ran since the start."""
        _Session.open = None
        atexit.unregister(self.at_exit)
        cells = inputs(self.shell)[self.first_input : -1]  # the last is %jaxtrace stop itself
        outcome.wall_label = "from start to stop"
        outcome.notices[:0] = self.notices
        source = Source(notebook_name(), self.magic, "\n\n".join(cells))
        return self.trace.finish(outcome, source, say=display.say, diagnose=diagnose)

    def at_exit(self) -> None:
        """Keep a trace that nobody stopped, when the kernel ends in order."""
        outcome = Outcome(Status.INTERRUPTED, "The kernel ended before %jaxtrace stop.")
        outcome.wall_ms = (time.perf_counter_ns() - self.started_ns) / 1e6
        with contextlib.suppress(StoreError):
            # Whoever ends the kernel waits some seconds only before killing it.
            self.finish(outcome, Display(self.shell, show_card=False), diagnose=False)


def _start(shell: InteractiveShell, line: str) -> None:
    __tracebackhide__ = True
    given = _read("%jaxtrace start", line)
    arguments = given.arguments
    with _sentences("%jaxtrace start"):
        Trace.check_free()
        _barrier("%jaxtrace start")
        options = profile_options(arguments.profiler_options)
    display = Display(shell, show_card=False)
    notices = given.notices + wait_for_leftovers(display)
    with _sentences("%jaxtrace start"), HeldInterrupts() as held:
        trace = Trace(_begin(shell, arguments), options, until="%jaxtrace stop", perfetto=arguments.perfetto)
        magic = f"%jaxtrace start {given.line}".strip()
        display.follow(trace.draft, "Tracing until %jaxtrace stop", magic=magic, interruptible=False)
        trace.start()
        if held.count or trace.interrupted:
            trace.abandon()
            raise KeyboardInterrupt
        _Session.open = _Session(shell, trace, arguments, given.line, notices)
        atexit.register(_Session.open.at_exit)
        trace.draft.outlives_cell = True
        sys.stdout.write(f"Tracing '{trace.name}' until %jaxtrace stop.\n")
    if held.count:  # too late for this one
        raise KeyboardInterrupt


def _stop(shell: InteractiveShell, line: str) -> None:
    __tracebackhide__ = True
    given = parse("%jaxtrace stop", line)
    session = _Session.open
    if session is None:
        running = Trace.running
        if running is not None:
            raise usage_error(
                "%jaxtrace stop",
                f"The trace '{running.name}' runs until {running.until}, and can't be stopped before.",
            )
        raise usage_error("%jaxtrace stop", "No trace is running: %jaxtrace start NAME begins one.")
    if given.name or given != Arguments(save=given.save, show_card=given.show_card):
        raise usage_error(
            "%jaxtrace stop", "it takes --save VAR and --no-card; all else is given to %jaxtrace start."
        )
    arguments = session.arguments
    arguments.save = given.save or arguments.save
    arguments.show_card = arguments.show_card and given.show_card
    display = Display(shell, show_card=arguments.show_card)
    display.follow(session.trace.draft, "Writing the trace", magic=session.magic)
    outcome = Outcome()
    error: BaseException | None = None
    try:
        done_ns = Barrier().wait()
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - a callback's error; raised again below
        done_ns, error = time.perf_counter_ns(), raised
        status = Status.INTERRUPTED if isinstance(raised, KeyboardInterrupt) else Status.FAILED
        outcome.worsen(
            status, f"Work that was enqueued before %jaxtrace stop ended with {type(raised).__name__}."
        )
    outcome.wall_ms = (done_ns - session.started_ns) / 1e6
    with HeldInterrupts() as held:
        try:
            _present(shell, session.finish(outcome, display), session.trace.draft, arguments, display)
        except StoreError as store_error:
            display.complain(str(store_error))
    if error is not None:
        raise error
    if held.count or session.trace.interrupted:
        raise KeyboardInterrupt


def _remote_only(shell: InteractiveShell, line: str) -> None:
    __tracebackhide__ = True
    if "--remote" not in line:
        raise usage_error(
            "%jaxtrace",
            "it traces no expression. Put %%jaxtrace (two percent signs) on the first line of a cell to "
            "trace that cell; or use %jaxtrace start NAME and %jaxtrace stop, or %jaxtrace --remote "
            "HOST:PORT.",
        )
    given = _read("%jaxtrace", line)
    arguments = given.arguments
    if not arguments.remote:  # the text stands in a name, say
        raise usage_error("%jaxtrace", "--remote takes HOST:PORT, for example --remote localhost:9012.")
    display = Display(shell, show_card=arguments.show_card)
    outcome = Outcome(notices=given.notices)
    magic = f"%jaxtrace {given.line}".strip()
    with _sentences("%jaxtrace"), _start_remote(shell, arguments, magic, display) as remote:
        record = remote.finish(outcome, Source(notebook_name(), magic), say=display.say)
    with HeldInterrupts() as held:
        _present(shell, record, remote.draft, arguments, display)
    if held.count or outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


async def _cell_and_remote(shell: InteractiveShell, given: Given[Arguments], body: str) -> object:
    """Run the cell while the other programs are traced."""
    __tracebackhide__ = True
    _barrier("%%jaxtrace")  # the cell can't run without JAX: said before anybody is asked for a trace
    arguments = given.arguments
    cell = Cell.from_magic(shell, "jaxtrace", given.line, body)
    display = Display(shell, show_card=arguments.show_card)
    with _start_remote(shell, arguments, cell.magic, display) as remote:
        run = await cell.run()
        outcome = Outcome(notices=given.notices)
        _judge(outcome, [run], arguments, body)
        try:
            record = remote.finish(outcome, Source(notebook_name(), cell.magic, cell.body), say=display.say)
            _present(shell, record, remote.draft, arguments, display)
        except (RemoteError, StoreError) as error:
            display.complain(str(error))
    return run.result()


def _start_remote(shell: InteractiveShell, arguments: Arguments, magic: str, display: Display) -> RemoteTrace:
    with _sentences(magic.partition(" ")[0]):
        targets = parse_targets(_expanded(shell, arguments.remote))
        options = remote_options(arguments.profiler_options)
        draft = _begin(shell, arguments)
        display.follow(draft, "Tracing other programs", magic=magic)
        remote = RemoteTrace(draft, targets, arguments.duration_ms or _DURATION_MS, options)
        remote.start()
    return remote


def _expanded(shell: InteractiveShell, addresses: str) -> str:
    """Put values for `{NAME}` and `$NAME`, as other magics do: no address has such signs of its own."""
    from IPython.utils.text import DollarFormatter

    try:
        return DollarFormatter().vformat(addresses, (), shell.user_ns)
    except Exception:  # noqa: BLE001 - the expression is the user's; unreplaced, it is refused as an address
        return addresses


def _barrier(magic: str) -> Barrier:
    try:
        return Barrier()
    except UsageError as error:  # JAX can't be used here
        raise usage_error(magic, str(error)) from None


def _begin(shell: InteractiveShell, arguments: Arguments) -> Draft:
    """Start a capture before anything is measured, so that a full or read-only disk is told now."""
    name = arguments.name or default_name(shell)
    if arguments.directory:
        return Store.begin_in(arguments.directory, "trace", name)
    return Store.default().begin("trace", name)


def _present(
    shell: InteractiveShell, record: Record, draft: Draft, arguments: Arguments, display: Display
) -> None:
    """Show the card, and set the variable that --save names."""
    if arguments.save:
        shell.user_ns[arguments.save] = Capture(record, draft.directory)
    display.card(record, draft.directory, in_store=not arguments.directory)


@contextlib.contextmanager
def _sentences(magic: str) -> Any:
    """Let IPython print what we know as one sentence of `magic`, without a traceback."""
    __tracebackhide__ = True
    try:
        yield
    except (OptionError, ProfilerError, RemoteError, StoreError) as error:
        raise usage_error(magic, str(error)) from None
