"""What an interrupt of a magic leaves: nothing half done, and a sentence on what is kept."""

from __future__ import annotations

import asyncio
import os
import sys
from types import TracebackType
from typing import Any, Self

from jupyterlab_jaxprof.captures import Draft, Status, drafts
from jupyterlab_jaxprof.tracing import Trace
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from . import display


def _copy_of_stderr() -> int:
    """Give another descriptor of what 2 writes to; -1 where there is none."""
    try:
        return os.dup(2)
    except OSError:
        return -1


class Guard:
    """Stands around one call of a magic. `magic`: what the user has called, with its percent signs.

    A magic ends in order what it has begun, but an interrupt can come between any two of its lines, those of
    its own `finally` included. What was begun within the call and is still open afterwards is given up here.
    """

    def __init__(self, magic: str) -> None:
        self._magic = magic

    def __enter__(self) -> Self:
        self._drafts = drafts()
        self._open = {draft for draft in self._drafts if draft.is_open}
        self._told = display.Display.told
        self._stderr = _copy_of_stderr()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with HeldInterrupts():
            if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
                self._conclude()
            if self._stderr >= 0:
                os.close(self._stderr)

    def _conclude(self) -> None:
        if self._stderr >= 0 and not os.path.samestat(os.fstat(2), os.fstat(self._stderr)):
            os.dup2(self._stderr, 2)  # whoever listened to what JAX writes there was cut off
        made = drafts() - self._drafts
        if Trace.running is not None and not Trace.running.draft.outlives_cell:
            Trace.running.abandon()
        in_kernel: Any = sys.modules.get("jupyterlab_jaxprof.nsight.in_kernel")
        recording = in_kernel.Recording.running if in_kernel is not None else None
        if recording is not None and not recording.draft.outlives_cell:
            recording.cancel()
        for draft in made:
            if not draft.outlives_cell:
                draft.discard()
        sentence = self._sentence([draft for draft in made | self._open if draft.record is not None])
        if sentence:
            sys.stderr.write(f"{self._magic}: {sentence}\n")

    def _sentence(self, kept: list[Draft]) -> str:
        """Say what is kept; empty where the card, or whoever was interrupted, has said it."""
        is_told = display.Display.told != self._told
        if kept:
            record = kept[0].record
            if is_told and record is not None and record.status is Status.INTERRUPTED:
                return ""
            return f"Interrupted when all was measured: the capture '{kept[0].name}' is kept, and whole."
        if is_told:
            return ""
        going_on = sorted(f"'{draft.name}'" for draft in drafts() if draft.is_open and draft.outlives_cell)
        if going_on:
            return f"Interrupted; {', '.join(going_on)} goes on until it is stopped."
        return "Interrupted; no capture of it is kept."
