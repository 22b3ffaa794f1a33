"""%jaxmem --watch: memory over time while the next cells run, until --stop or for some seconds."""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.captures import Draft, Status
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.frames import data_frame
from jupyterlab_jaxprof.timing.memory import DeviceMemory, MemoryReport, process_bytes
from jupyterlab_jaxprof.timing.sampling import PROCESS, MemorySampler
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .arguments import usage_error
from .defaults import Given
from .display import Display
from .jaxmem import begin, notices_of, publish, report_if_started
from .jaxmem_arguments import MAGIC, Arguments
from .jaxmem_summary import summary_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

COLUMNS = 120
MAX_CELLS = 200
_MAX_CODE = 60


@dataclass
class RanCell:
    """A cell that ran while memory was watched; times in ms from the watch's start."""

    label: str
    code: str
    start_ms: float
    end_ms: float

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {"label": self.label, "code": self.code, "start_ms": self.start_ms, "end_ms": self.end_ms}


@dataclass
class Watched:
    """What a watch saw: when (ms from its start), how many bytes by label, and the cells that ran."""

    samples: list[tuple[float, dict[str, int]]]
    cells: list[RanCell]
    report: MemoryReport | None

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "samples": [{"at_ms": at_ms, **values} for at_ms, values in self.samples],
            "cells": [cell.to_dict() for cell in self.cells],
            "memory": None if self.report is None else self.report.to_dict(),
        }

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame: a row a sample, a column a device and the process, in bytes.

        Raises ImportError with a sentence when pandas is not installed.
        """
        return data_frame(self.to_dict()["samples"])


class Watch:
    """One watch, from --watch on; `running` is the one that hasn't ended."""

    running: Watch | None = None

    def __init__(self, shell: InteractiveShell, draft: Draft, given: Given[Arguments]) -> None:
        self.draft = draft
        self.arguments = arguments = given.arguments
        self.over = False
        self._shell = shell
        self._magic = f"{MAGIC} {given.line}".strip()
        self._notices = given.notices
        self._display = Display(shell, show_card=arguments.show_card)
        self._cells: list[RanCell] = []
        self._left_out = 0
        self._began_ms: float | None = None
        self._before = report_if_started({})
        self._sampler = MemorySampler(arguments.seconds, self._on_over)

    def start(self) -> None:
        """Begin to sample, and to note the cells."""
        self._sampler.start()
        self._shell.events.register("pre_run_cell", self._on_cell)
        self._shell.events.register("post_run_cell", self._on_cell_end)
        atexit.register(self._at_exit)
        Watch.running = self

    def say(self) -> None:
        """Tell that it runs."""
        end = f"for {self.arguments.seconds:g} s" if self.arguments.seconds else "until %jaxmem --stop"
        self._display.follow(self.draft, "", magic=self._magic, interruptible=False)
        self._display.say(f"Watching memory {end}.")

    def _on_cell(self, info: Any) -> None:
        self._began_ms = self._sampler.now_ms
        self._sampler.sample()

    def _on_cell_end(self, result: Any) -> None:
        if self._began_ms is not None:
            self._sampler.sample()
            number = getattr(result, "execution_count", None)
            raw = str(getattr(result.info, "raw_cell", None) or "").strip()
            label = f"In [{number}]" if number else "a cell"
            cell = RanCell(label, _first_line(raw), self._began_ms, self._sampler.now_ms)
            if len(self._cells) < MAX_CELLS:
                self._cells.append(cell)
            else:
                self._left_out += 1
            self._began_ms = None
        if self.over:
            self.finish(self._display)

    def _on_over(self) -> None:
        """Its seconds are over: end it where cells run, at the end of the running one."""
        self.over = True
        loop = getattr(getattr(self._shell, "kernel", None), "io_loop", None)
        if loop is not None:
            loop.add_callback(self._finish_if_running)

    def _finish_if_running(self) -> None:
        if Watch.running is self:
            self.finish(self._display)

    def _at_exit(self) -> None:
        """Keep what was seen when the kernel ends in order."""
        silent = Display(self._shell, show_card=False)
        self.finish(silent, status=Status.INTERRUPTED, reason="The kernel ended before %jaxmem --stop.")

    def finish(self, display: Display, *, status: Status = Status.OK, reason: str = "") -> None:
        """Stop, publish the capture, and show its card."""
        Watch.running = None
        for event, callback in (("pre_run_cell", self._on_cell), ("post_run_cell", self._on_cell_end)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)
        atexit.unregister(self._at_exit)
        self._sampler.stop()
        if display is not self._display:
            self._display.replace("Watched memory; %jaxmem --stop shows the card.")
        with self.draft:
            report = report_if_started(self._shell.user_ns)
            if self.arguments.save:
                watched = Watched(self._sampler.samples, self._cells, report)
                self._shell.user_ns[self.arguments.save] = watched
            notices = self._notices + notices_of(report)
            if self._sampler.problem:
                notices.append(f"Sampling ended early: {self._sampler.problem}.")
            summary = self._summary(report)
            codes = "\n".join(f"# {cell.label}\n{cell.code}" for cell in self._cells)
            publish(
                self.draft, display, self._magic, summary, notices, status=status, reason=reason, cells=codes
            )

    def _summary(self, report: MemoryReport | None) -> dict[str, Any]:
        sampler = self._sampler
        before = {one.device: one for one in self._before.after} if self._before is not None else {}
        after = {one.device: one for one in report.after} if report is not None else {}
        series = [self._series(label, before.get(label), after.get(label)) for label in sampler.labels()]
        summary = summary_of(report, process_bytes())
        shown = max((one for one in series if one["label"] != PROCESS), key=_most, default=None)
        if shown is None or not after.get(shown["device"], DeviceMemory("")).known:
            shown = next((one for one in series if one["device"] == PROCESS), shown)
        if shown is not None:
            limit = f" of {units.size(shown['limit_bytes'])}" if shown["limit_bytes"] else ""
            summary["sentence"] = (
                f"In {units.duration(sampler.duration_ms)} {shown['label']} took {units.size(_most(shown))}"
                f"{limit} at most, from {units.size(shown['columns'][0])} at the start to "
                f"{units.size(shown['columns'][-1])} at the end."
            )
            summary["headline"] = {"label": "most in use", "value": _most(shown), "unit": "bytes"}
        summary["wall_ms"] = sampler.duration_ms
        summary["watch"] = {
            "duration_ms": sampler.duration_ms,
            "samples": len(sampler.samples),
            "interval_ms": sampler.interval_s * 1e3,
            "cost": sampler.cost_s * 1e3 / max(sampler.duration_ms, 1e-6),
            "series": series,
            "cells": [cell.to_dict() for cell in self._cells],
            "cells_left_out": self._left_out,
        }
        return summary

    def _series(self, label: str, before: DeviceMemory | None, after: DeviceMemory | None) -> dict[str, Any]:
        """Give one curve. A peak between two samples counts where the allocator's rose meanwhile."""
        columns = self._sampler.columns(label, COLUMNS)
        most = max(values.get(label, 0) for _, values in self._sampler.samples)
        peak = (after.peak_bytes if after is not None else None) or 0
        if before is None or peak > (before.peak_bytes or 0):
            most = max(most, peak)
        known = after is not None and after.known
        told = label if known else "the process" if label == PROCESS else f"arrays on {label}"
        return {
            "label": told,
            "device": label,
            "least_bytes": min(values.get(label, 0) for _, values in self._sampler.samples),
            "most_bytes": most,
            "limit_bytes": after.limit_bytes if after is not None else None,
            "columns": columns,
        }


def _most(series: dict[str, Any]) -> int:
    return int(series["most_bytes"])


def start(shell: InteractiveShell, given: Given[Arguments]) -> None:
    """Run %jaxmem --watch; raises UsageError while another watch runs."""
    __tracebackhide__ = True
    if Watch.running is not None:
        name = Watch.running.draft.name
        raise usage_error(f"{MAGIC} --watch", f"the watch '{name}' runs already; %jaxmem --stop ends it.")
    with HeldInterrupts() as held:
        watch = Watch(shell, begin(shell, given.arguments), given)
        watch.start()
        if held.count:
            watch.finish(
                Display(shell, show_card=False), status=Status.INTERRUPTED, reason="Interrupted at once."
            )
        else:
            watch.say()
            watch.draft.outlives_cell = True
    if held.count:
        raise KeyboardInterrupt


def _first_line(code: str) -> str:
    """Give a cell's first line, with an ellipsis where there is more."""
    line, _, more = code.partition("\n")
    return line if len(line) <= _MAX_CODE and not more.strip() else f"{line[: _MAX_CODE - 1].rstrip()}…"


def stop(shell: InteractiveShell, given: Given[Arguments]) -> None:
    """Run %jaxmem --stop; raises UsageError where no watch runs."""
    __tracebackhide__ = True
    arguments = given.arguments
    watch = Watch.running
    if watch is None:
        raise usage_error(
            f"{MAGIC} --stop",
            "no watch is running. %jaxmem --watch begins one; those that have ended are in the sidebar.",
        )
    watch.arguments.save = arguments.save or watch.arguments.save
    with HeldInterrupts() as held:
        watch.finish(Display(shell, show_card=arguments.show_card and watch.arguments.show_card))
    if held.count:
        raise KeyboardInterrupt
