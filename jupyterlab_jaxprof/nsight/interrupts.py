"""What each Ctrl-C does to a run, and what follows when it does not help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .progress import Phase

#: How long an interrupted program has to end its step, then nsys to stop it, before the next means.
GRACE_S = 10.0
#: How long nsys has to write the report once the program was killed, before all is ended.
LAST_S = 120.0


class Interruptible(Protocol):
    """The run that is interrupted."""

    @property
    def phase(self) -> Phase:
        """How far it is."""
        ...

    @property
    def has_ended_recording(self) -> bool:
        """Whether the program runs the body no more, and only nsys is waited for."""
        ...

    @property
    def has_program_ended(self) -> bool:
        """Whether the program is gone, be it by itself or killed."""
        ...

    def is_silent(self, now_s: float, for_s: float) -> bool:
        """Whether nsys has said nothing since the program's end for so long."""
        ...

    def say(self, doing: str) -> None:
        """Tell how it goes."""
        ...

    def interrupt_program(self) -> None:
        """Send the program the Ctrl-C of its user."""
        ...

    def interrupt_nsys(self) -> None:
        """Let nsys stop the program and write its report."""
        ...

    def kill_program(self) -> None:
        """End the program, which ignores signals; nsys writes its report then."""
        ...

    def give_up(self) -> None:
        """Note that nothing is to be kept."""
        ...

    def cut_short(self) -> None:
        """Note that nsys is not waited for any more; what it has written by now is kept."""
        ...


class Interrupts:
    """Obeys the interrupts of one run."""

    def __init__(self, run: Interruptible) -> None:
        self._run = run
        self._obeyed = 0
        self._is_in_haste = False
        self._means: list[Callable[[], None] | None] = []
        self._next_s = 0.0

    def obey(self, count: int, now_s: float) -> bool:
        """Do what the interrupts so far ask for; False when all is to be given up."""
        run = self._run
        if count > self._obeyed:
            again, self._obeyed = self._obeyed > 0 or count > 1, count
            recording = run.phase in (Phase.CAPTURE, Phase.IMPORT)
            if again or not recording:
                run.give_up()
                return False
            if run.phase is Phase.CAPTURE and run.has_program_ended:
                run.cut_short()
                return False
            if run.phase is Phase.CAPTURE:
                run.say("Interrupted: the report so far is being written. Interrupt again to give it up")
                run.interrupt_program()
                self.use_means(now_s + GRACE_S)
            else:
                self._is_in_haste = True
                run.say("The report is being written. Interrupt again to give it up")
        if self._is_in_haste and run.is_silent(now_s, GRACE_S):
            run.cut_short()
            return False
        if self._means and now_s > self._next_s:
            if run.has_ended_recording:
                self._means = []
                return True
            means = self._means.pop(0)
            if means is None:
                return False
            means()
            self._next_s = now_s + (LAST_S if self._means == [None] else GRACE_S)
        return True

    def use_means(self, from_s: float) -> None:
        """From then on, make nsys stop, end the program that does not, and at last end all."""
        run = self._run
        self._means = self._means or [run.interrupt_nsys, run.kill_program, None]
        self._next_s = from_s
