"""%%nsys --in-kernel, %nsys start and %nsys stop: recording a kernel that `nsys launch` has started."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from IPython.utils.capture import capture_output

from jupyterlab_jaxprof.captures import Capture, Draft, Status, Store, StoreError
from jupyterlab_jaxprof.cell import Barrier, Cell, Run, described, notebook_name
from jupyterlab_jaxprof.nsight import launched
from jupyterlab_jaxprof.nsight.flags import FlagError
from jupyterlab_jaxprof.nsight.in_kernel import Recording, RecordingError
from jupyterlab_jaxprof.nsight.launched import Launch
from jupyterlab_jaxprof.timing.variables import backend_has_started
from jupyterlab_jaxprof.tracing import Outcome, Source
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .arguments import usage_error
from .defaults import with_defaults
from .display import Display, wait_for_leftovers
from .inputs import default_name, inputs
from .jaxnsys_arguments import START, STOP, Arguments, check_gpu_metrics, parse

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MAGIC = "%%nsys --in-kernel"
_STEP = "step"


async def cell_magic(shell: InteractiveShell, cell: Cell, arguments: Arguments, notices: list[str]) -> object:
    """Run a cell in this kernel as recorded steps; gives its value, or raises its error."""
    __tracebackhide__ = True
    with _sentences(_MAGIC):
        launch = _launch()
        Recording.check_free()
    display = Display(shell, show_card=arguments.show_card)
    outcome = Outcome(notices=notices + wait_for_leftovers(display))
    with _sentences(_MAGIC):
        recording = Recording(
            _begin(shell, arguments), launch, until="its cell ends", keep_env=arguments.keep_env
        )
    display.follow(recording.draft, "Starting to record", magic=cell.magic)
    runs: list[Run] = []
    try:
        if arguments.warm_up and (failed := await _warm_up(cell, display)) is not None:
            return failed.result()
        with _sentences(_MAGIC):
            recording.start(metrics=arguments.wishes.gpu_metrics, sample=arguments.wishes.sample)
        display.say("Recording ...")
        try:
            if not recording.interrupted:
                await _run(cell, arguments, recording, runs)
        except KeyboardInterrupt:  # between two steps
            recording.interrupted = True
        _judge(outcome, runs)
        _finish(shell, recording, outcome, Source(notebook_name(), cell.magic, cell.body), arguments, display)
    finally:
        if Recording.running is recording:  # an interrupt between the lines above
            recording.cancel()
        recording.draft.discard()  # nothing happens to what is published
    if runs and runs[-1].error is not None:
        return runs[-1].result()
    if recording.interrupted or not runs:
        raise KeyboardInterrupt
    return runs[-1].result()


async def _warm_up(cell: Cell, display: Display) -> Run | None:
    """Run the cell once, unrecorded and in silence; gives the run if it failed."""
    display.say("Warming up ...")
    with capture_output():
        run = await cell.run()
    if run.error is None:
        return None
    if run.interrupted:
        display.complain("Interrupted when the cell ran to warm up: nothing was recorded.")
    else:
        what = described(run.error).splitlines()[0].rstrip(".")
        display.complain(f"The cell raised {what} when it ran to warm up, so that nothing was recorded.")
    return run


async def _run(cell: Cell, arguments: Arguments, recording: Recording, runs: list[Run]) -> None:
    """Run the steps until one fails; every run is in `runs`."""
    for number in range(arguments.steps):
        if runs:
            runs[-1].value = None  # only the last value is shown; the others' arrays are not kept alive
        runs.append(await cell.run(around=recording.range(f"{_STEP} {number}")))
        if runs[-1].error is not None:
            return


def _judge(outcome: Outcome, runs: list[Run]) -> None:
    """Put into `outcome` what the runs tell."""
    outcome.notices += [notice for run in runs for notice in run.notices]
    outcome.step_name = _STEP
    outcome.step_durations_ms = [(run.done_ns - run.started_ns) / 1e6 for run in runs if run.error is None]
    outcome.wall_ms = sum(outcome.step_durations_ms) or None
    error = runs[-1].error if runs else None
    if not runs:
        outcome.worsen(Status.INTERRUPTED, "Interrupted before the cell ran.")
    elif runs[-1].interrupted:
        outcome.worsen(
            Status.INTERRUPTED,
            f"Interrupted in step {len(runs) - 1} (counted from 0); the report ends there.",
        )
    elif error is not None:
        what = described(error).splitlines()[0].rstrip(".")
        outcome.worsen(
            Status.FAILED,
            f"The cell raised {what} in step {len(runs) - 1} (counted from 0); the report ends there.",
        )


def _finish(
    shell: InteractiveShell,
    recording: Recording,
    outcome: Outcome,
    source: Source,
    arguments: Arguments,
    display: Display,
) -> None:
    """Write the capture and show it; what goes wrong with it must not hide the cell's own result."""
    try:
        record = recording.finish(outcome, source, say=display.say)
    except StoreError as error:
        display.complain(str(error))
        return
    if record is None:
        display.complain(" ".join([outcome.reason, *outcome.notices]))
        return
    if arguments.save:
        shell.user_ns[arguments.save] = Capture(record, recording.draft.directory)
    display.card(record, recording.draft.directory, in_store=not arguments.directory)


class _Session:
    """What %nsys start began, until %nsys stop or the kernel's end."""

    open: _Session | None = None

    def __init__(
        self,
        shell: InteractiveShell,
        recording: Recording,
        arguments: Arguments,
        line: str,
        notices: list[str],
    ) -> None:
        self.recording = recording
        self.arguments = arguments
        self.magic = f"{START} {line}".strip()
        self.notices = notices
        self.started_ns = time.perf_counter_ns()
        self.first_input = len(inputs(shell))

    def close(self) -> None:
        """Forget it: it is being written, or given up."""
        _Session.open = None
        atexit.unregister(self.recording.abandon)


def start(shell: InteractiveShell, line: str) -> None:
    """Run `%nsys start line`."""
    __tracebackhide__ = True
    given = with_defaults("nsys", START, line, functools.partial(parse, START))
    arguments = given.arguments
    check_gpu_metrics(START, arguments)
    with _sentences(START):
        launch = _launch()
        Recording.check_free()
        display = Display(shell, show_card=False)
        notices = [*given.notices]
        if backend_has_started():
            notices += wait_for_leftovers(display)
        recording = Recording(_begin(shell, arguments), launch, until=STOP, keep_env=arguments.keep_env)
        magic = f"{START} {given.line}".strip()
        display.follow(recording.draft, f"Recording until {STOP}", magic=magic, interruptible=False)
        recording.start(metrics=arguments.wishes.gpu_metrics, sample=arguments.wishes.sample)
    with HeldInterrupts():
        _Session.open = _Session(shell, recording, arguments, given.line, notices)
        atexit.register(recording.abandon)
        if recording.interrupted:
            _Session.open.close()
            recording.cancel()
            raise KeyboardInterrupt
        recording.draft.outlives_cell = True
        sys.stdout.write(f"Recording '{recording.name}' until {STOP}.\n")


def stop(shell: InteractiveShell, line: str) -> None:
    """Run `%nsys stop line`: wait for all that was enqueued, end the recording, and show its card."""
    __tracebackhide__ = True
    given = parse(STOP, line)
    session = _Session.open
    if session is None:
        raise usage_error(
            STOP,
            "nothing is being recorded in this kernel (what was being recorded when the kernel ended or was "
            f"restarted is not kept). {START} NAME begins to record.",
        )
    if given != Arguments(save=given.save, show_card=given.show_card):
        raise usage_error(STOP, f"it takes --save VAR and --no-card; all else is given to {START}.")
    arguments = session.arguments
    arguments.save = given.save or arguments.save
    arguments.show_card = arguments.show_card and given.show_card
    display = Display(shell, show_card=arguments.show_card)
    display.await_saving(session.recording.draft)
    outcome, error = _drained(session)
    cells = inputs(shell)[session.first_input : -1]  # the last is %nsys stop itself
    source = Source(notebook_name(), session.magic, "\n\n".join(cells))
    session.close()
    _finish(shell, session.recording, outcome, source, arguments, display)
    if error is not None:
        raise error
    if session.recording.interrupted:
        raise KeyboardInterrupt


def _drained(session: _Session) -> tuple[Outcome, BaseException | None]:
    """Wait for all that the cells have enqueued; gives what came of it."""
    outcome = Outcome(notices=session.notices, wall_label="from start to stop")
    error: BaseException | None = None
    done_ns = time.perf_counter_ns()
    try:
        if backend_has_started():
            done_ns = Barrier().wait()
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - a callback's error; raised again by stop
        done_ns, error = time.perf_counter_ns(), raised
        status = Status.INTERRUPTED if isinstance(raised, KeyboardInterrupt) else Status.FAILED
        outcome.worsen(status, f"Work that was enqueued before {STOP} ended with {type(raised).__name__}.")
    outcome.wall_ms = (done_ns - session.started_ns) / 1e6
    return outcome, error


def status() -> str:
    """Say whether this kernel can be recorded, and whether it is; empty in a kernel that never could."""
    running = Recording.running
    if running is not None:
        seconds = time.monotonic() - running.started_s
        return f"'{running.name}' has been recorded for {seconds:.0f} s, and is until {running.until}.\n"
    launch = launched.launch()
    if launch is not None:
        return (
            f"nsys has started this kernel, and traces {', '.join(launch.trace)}: {START} NAME and {STOP} "
            f"record what runs between them, {_MAGIC} one cell. Nothing is being recorded.\n"
        )
    return f"This kernel runs without nsys: {launched.problem()}\n" if launched.problem() else ""


def _launch() -> Launch:
    launch = launched.launch()
    if launch is not None:
        return launch
    problem = launched.problem()
    if problem:
        raise RecordingError(
            f"this kernel should run under nsys, and does not: {problem} Restart it once that is mended."
        )
    raise RecordingError(
        "nsys has not started this kernel, and can't record it afterwards. %jaxprof install-nsys-kernel "
        "makes a kernel that it starts, to be chosen in JupyterLab's launcher; or use %%nsys, which runs the "
        "cell in a process of its own."
    )


def _begin(shell: InteractiveShell, arguments: Arguments) -> Draft:
    """Start a capture before anything runs, so that a full or read-only disk is told now."""
    name = arguments.name or default_name(shell)
    if arguments.directory:
        return Store.begin_in(arguments.directory, "nsys", name)
    return Store.default().begin("nsys", name)


@contextlib.contextmanager
def _sentences(magic: str) -> Generator[None]:
    """Let IPython print what we know as one sentence of the magic, without a traceback."""
    __tracebackhide__ = True
    try:
        yield
    except (RecordingError, FlagError, StoreError) as error:
        raise usage_error(magic, str(error)) from None
    except OSError as error:
        raise usage_error(
            magic, f"the disk refuses what the capture needs: {error.strerror or error} ({error.filename})."
        ) from None
