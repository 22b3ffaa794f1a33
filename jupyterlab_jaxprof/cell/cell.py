"""Running a cell's body, and what came of it."""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import chain, repeat
from types import CodeType
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from jupyterlab_jaxprof.cell.barrier import Barrier
from jupyterlab_jaxprof.cell.loop import compile_loop, loop_names
from jupyterlab_jaxprof.cell.place import Place, locate, place_of_line
from jupyterlab_jaxprof.cell.source import Program, compile_body

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_WORK_GOES_ON = (
    "The cell was interrupted, but a device goes on with the work that it had queued. "
    "The next measured cell waits for it first."
)


@dataclass
class Run:
    """One run of a cell's body. Times are of `time.perf_counter_ns`.

    `returned_ns` is when Python got control back, `done_ns` when all that the body enqueued had ended. They
    are equal when the run was interrupted before: what it had queued goes on then.
    """

    value: object
    error: BaseException | None
    started_ns: int
    returned_ns: int
    done_ns: int
    interrupted: bool
    notices: list[str] = field(default_factory=lambda: [])

    def result(self) -> object:
        """The value to show, None when there is none to show; raises the body's error if it raised one."""
        __tracebackhide__ = True
        if self.error is not None:
            raise self.error
        return self.value


class Cell:
    """The body under a cell magic, compiled once; every run executes it in the user's namespace."""

    body: str
    magic: str

    def __init__(
        self, shell: InteractiveShell, magic: str, body: str, program: Program, place: Place
    ) -> None:
        self.magic = magic
        self.body = body
        self.place = place
        self._shell = shell
        self._program = program
        self._loop: CodeType | None = None

    @classmethod
    def from_magic(cls, shell: InteractiveShell, magic: str, line: str, body: str) -> Cell:
        """Compile the body of the magic that is being called: `%%magic line`, then `body`.

        Raises SyntaxError as the cell's own (its file name and its line) and UsageError when there is
        nothing to run.
        """
        name = magic.lstrip("%")
        magic_line = f"%%{name} {line}".rstrip()
        place = locate(shell, magic_line, body)
        program = compile_body(shell, body, place)
        if not program.units:
            raise UsageError(
                f"%%{name}: there is nothing to run, since the cell has no code below its first line. Write "
                f"the code to measure on the lines below %%{name}. Nothing has run."
            )
        return cls(shell, magic_line, body, program, place)

    @classmethod
    def from_line(cls, shell: InteractiveShell, magic_line: str, body: str) -> Cell:
        """Compile the expression or statement that stands in a line magic's own line, as a cell of its own.

        Raises SyntaxError of that line, and UsageError when there is nothing to run.
        """
        place = place_of_line(shell, body)
        program = compile_body(shell, body, place)
        if not program.units:
            raise UsageError(f"{magic_line.split()[0]}: this line has nothing to run. Nothing has run.")
        return cls(shell, magic_line, body, program, place)

    @property
    def filename(self) -> str:
        """The file name that IPython gave to the cell."""
        return self._program.units[0].co_filename

    @property
    def codes(self) -> tuple[CodeType, ...]:
        """The body's code, the loop that runs it several times included if there has been one."""
        return self._program.units if self._loop is None else (*self._program.units, self._loop)

    @property
    def nodes(self) -> tuple[ast.stmt, ...]:
        """The body's statements, as they were compiled."""
        return self._program.nodes

    @property
    def names(self) -> dict[str, Any]:
        """The namespace that the body runs in."""
        return self._shell.user_ns

    @property
    def needs_await(self) -> bool:
        """Whether the body awaits at its top level."""
        return self._program.needs_await

    async def run(self, loops: int = 1, *, around: AbstractContextManager[object] | None = None) -> Run:
        """Run the body once and wait for all that it enqueued.

        With more `loops` it runs so many times in a row, to measure a short body: no value is shown or kept.
        `around` is entered just before the body starts and left when all that it enqueued has ended, so that
        an annotation takes the time that the run tells.

        Never raises the body's error, an interrupt or a cancellation: they are in `Run.error`. Raises
        UsageError, before anything has run, when JAX can't be used at all.
        """
        barrier = Barrier()
        now_ns = time.perf_counter_ns()
        run = Run(None, None, now_ns, now_ns, now_ns, interrupted=False)
        try:
            run.notices += barrier.drain()
        except BaseException as error:  # noqa: BLE001 - an interrupt while waiting; kept for the caller
            self._fail(run, error)
            run.notices.append(
                "Interrupted while waiting for work of an earlier cell; this cell has not run."
            )
            return run
        with around or nullcontext():
            await self._execute(run, loops)
            if not run.interrupted:
                self._wait(run, barrier)
            elif barrier.is_busy():
                run.notices.append(_WORK_GOES_ON)
        return run

    async def _execute(self, run: Run, loops: int) -> None:
        global_ns, user_ns = self._shell.user_global_ns, self._shell.user_ns
        with ExitStack() as stack:
            units = self._repeated(loops, stack) if loops > 1 else self._program.units
            run.started_ns = time.perf_counter_ns()
            try:
                for code in units:
                    value = eval(code, global_ns, user_ns)
                    run.value = await value if Program.awaits(code) else value
                run.returned_ns = run.done_ns = time.perf_counter_ns()
            except BaseException as error:  # noqa: BLE001 - whatever the user's code raises is the cell's
                run.returned_ns = run.done_ns = time.perf_counter_ns()
                self._fail(run, error)

    def _repeated(self, loops: int, stack: ExitStack) -> Iterable[CodeType]:
        """Give the code that runs the body `loops` times: one loop where that compiles."""
        if self._loop is None:
            self._loop = compile_loop(self._shell, self._program)
        if self._loop is None:
            return chain.from_iterable(repeat(self._program.units, loops))
        stack.enter_context(loop_names(self._shell.user_ns, loops))
        return (self._loop,)

    def _wait(self, run: Run, barrier: Barrier) -> None:
        try:
            run.done_ns = barrier.wait()
        except BaseException as error:  # noqa: BLE001 - a callback's error, or an interrupt of the wait
            run.done_ns = time.perf_counter_ns()
            if run.error is None or isinstance(error, KeyboardInterrupt):
                self._fail(run, error)
            if run.interrupted:
                run.notices.append(_WORK_GOES_ON)

    def _fail(self, run: Run, error: BaseException) -> None:
        run.error, run.value = error, None
        run.interrupted = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
