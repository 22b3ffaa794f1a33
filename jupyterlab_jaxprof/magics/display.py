"""What a magic shows: how it goes, then the card in its place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.display import display

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures import Draft, Origin, Progress, Record, Status
from jupyterlab_jaxprof.cell import Barrier, cell_id, kernel_id, notebook_name

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: Said where the disk takes more than a second to save a capture.
SLOW_DISK = "Saving the capture: the disk takes its time ..."


class Display:
    """One output area: a notebook's is updated in place, a terminal gets one line and then the card."""

    told = 0
    """How many cards were shown in this process, and troubles told."""

    def __init__(self, shell: InteractiveShell, *, show_card: bool) -> None:
        self._shell = shell
        self._in_notebook = getattr(shell, "kernel", None) is not None
        self._colours = str(getattr(shell, "colors", "")).lower()
        self._show_card = show_card
        self._handle: Any = None
        self._said = ""
        self._progress: Progress | None = None

    def follow(self, draft: Draft | None, phase: str, *, magic: str = "", interruptible: bool = True) -> None:
        """Let the sidebar show how `draft` goes, too: what is done now, and all that is said from here on.

        To be called before anything is measured. `interruptible`: whether an interrupt of the kernel ends it.
        """
        if draft is not None:
            self.await_saving(draft)
        place = draft.progress_place if draft is not None else None
        if draft is None or place is None:
            return
        shell = self._shell
        notebook, cell, kernel = notebook_name(), cell_id(shell), kernel_id(shell)
        origin = Origin(draft.kind, draft.name, magic, notebook, cell, kernel, interruptible)
        self._progress = Progress(place, origin)
        self._progress.tell(phase)

    def tell(self, phase: str, fraction: float | None = None) -> None:
        """Tell the sidebar alone how it goes; `fraction` of all is done (0 to 1)."""
        if self._progress is not None:
            self._progress.tell(phase, fraction)

    def say(self, sentence: str) -> None:
        """Tell how it goes; each call replaces what the one before said."""
        self.tell(sentence)
        if not self._in_notebook:
            beginning = sentence.partition("(")[0]
            if beginning != self._said:
                sys.stderr.write(sentence + "\n")
                self._said = beginning
            return
        self.show({"text/plain": sentence})

    def await_saving(self, draft: Draft) -> None:
        """Say, should it take longer than a second, that `draft` is being saved."""
        draft.on_slow_disk = lambda: self.say(SLOW_DISK)

    def card(self, record: Record, directory: Path, *, in_store: bool) -> None:
        """Show the capture; with --no-card only what went wrong."""
        if self._show_card:
            self.show(cards.bundle(record, directory=directory, in_store=in_store, paper=self.paper))
            Display.told += 1
            return
        if self._handle is not None:
            self.show({"text/plain": f"The {record.kind} '{record.name}' is written."})
        if record.status is not Status.OK:
            self.complain(f"{record.name}: {record.reason}")

    def complain(self, sentence: str) -> None:
        """Tell of a trouble that must not hide the cell's own result."""
        if self._handle is not None:
            self.show({"text/plain": sentence})
        else:
            sys.stderr.write(sentence + "\n")
        Display.told += 1

    def replace(self, sentence: str) -> None:
        """Put a sentence in place of what a notebook shows; a terminal has scrolled on."""
        if self._handle is not None:
            self.show({"text/plain": sentence})

    def forget(self) -> None:
        """Show anew what is shown next: the cell has cleared its output."""
        self._handle = None

    @property
    def paper(self) -> cards.Paper:
        """What text is written on: a terminal's width and colours, where there is one."""
        if self._in_notebook:
            return cards.PLAIN
        paper = cards.paper_of(sys.stdout)
        return cards.Paper(paper.width) if self._colours == "nocolor" else paper

    def show(self, bundle: dict[str, Any]) -> None:
        """Show a MIME bundle in place of what stands there in a notebook; in a terminal, below it."""
        if self._handle is not None:
            self._handle.update(bundle, raw=True)
        elif self._in_notebook:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            display(bundle, raw=True)


def wait_for_leftovers(display: Display) -> list[str]:
    """Wait for what earlier cells left running on the devices, before anything is measured.

    Whoever waits for longer is told why. Returns sentences about it, if it was much; after an interrupt it is
    said that nothing was measured.
    """
    __tracebackhide__ = True
    try:
        return Barrier().drain(
            lambda: display.say(
                "Waiting for work that an earlier cell left running on the devices (an interrupt ends it)."
            )
        )
    except KeyboardInterrupt:
        display.complain(
            "Interrupted while it waited for work that an earlier cell had left running on the devices. This "
            "cell has not run: nothing was measured, and nothing is kept."
        )
        raise
