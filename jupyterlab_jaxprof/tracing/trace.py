"""One trace of this process on its way to becoming a capture."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import Draft, Record, Status
from jupyterlab_jaxprof.reports import Examined, headline

from . import surroundings
from .contents import JSON_EVENT_LIMIT, diagnosed, exceeds_json, look_at, read_later
from .interrupts import HeldInterrupts
from .perfetto import FILE_NAME, write_perfetto
from .profiler import AlreadyRunning, GivenUp, Profiler, ProfilerError, StoppedByCell
from .steps import summarize

# Below the draft, and not where XProf looks: jax.profiler writes here, and only whole files are moved on.
_WRITING = "writing"
_UNREADABLE = ".unreadable"

_UNTRUE_JSON = (
    f"The trace has more than {JSON_EVENT_LIMIT:,} events. The xplane.pb file holds them all and XProf "
    "reads that; the trace.json.gz file (and a Perfetto file made of it) has only the first of them. Trace "
    "less for a whole one: fewer steps, or without --python."
)


@dataclass
class Outcome:
    """What is known about a traced run besides the trace. `wall_ms`: from its start to the barrier's end."""

    status: Status = Status.OK
    reason: str = ""
    wall_ms: float | None = None
    wall_label: str = "wall time"
    step_name: str = ""
    """What the steps are called, where we ran them ourselves; those that ended are in `step_durations_ms`."""
    step_durations_ms: Sequence[float] = ()
    notices: list[str] = field(default_factory=lambda: [])

    def worsen(self, status: Status, sentence: str) -> None:
        """Note what went wrong with the trace; what went wrong with the run itself comes first."""
        if self.status is Status.OK:
            self.status, self.reason = status, sentence
        elif sentence not in self.notices:
            self.notices.append(sentence)


@dataclass(frozen=True)
class Source:
    """Where a capture comes from: the notebook's path, the magic's line and the code that was traced.

    `place`: the `file` that the code's own lines are told of, and the `line` there of its first; None for
    several cells.
    """

    notebook: str = ""
    magic: str = ""
    cell: str = ""
    place: Mapping[str, Any] | None = None


class Trace:
    """A running trace. At most one of a process is `Trace.running`."""

    running: Trace | None = None

    def __init__(self, draft: Draft, options: Any, *, until: str, perfetto: bool = False) -> None:
        self.draft = draft
        self.until = until
        """What ends it, in the user's words."""
        self.started_s = time.monotonic()
        self.interrupted = False
        """Whether a Ctrl-C was held back while the trace was starting or being written."""
        self._perfetto = perfetto
        self._writing = draft.directory / _WRITING
        self._profiler = Profiler(self._writing, options)

    @property
    def name(self) -> str:
        """The capture's name."""
        return self.draft.name

    def start(self) -> None:
        """Start to trace; raises ProfilerError, and then nothing of this trace is left."""
        self.check_free()
        with HeldInterrupts() as held:
            try:
                self._writing.mkdir()
                self._profiler.start()
            except OSError as error:
                self.draft.discard()
                raise self.draft.refusal(error) from error
            except BaseException:
                self.draft.discard()
                raise
            self.started_s = time.monotonic()
            Trace.running = self
        self.interrupted = self._profiler.interrupts + held.count > 0

    @staticmethod
    def check_free() -> None:
        """Raise AlreadyRunning while another trace of ours runs in this process."""
        if Trace.running is not None:
            raise AlreadyRunning(
                f"The trace '{Trace.running.name}' is running in this kernel until {Trace.running.until}, "
                "and JAX can only take one at a time."
            )

    def finish(
        self, outcome: Outcome, source: Source, *, say: Callable[[str], None], diagnose: bool = True
    ) -> Record:
        """Stop, look at what was written, and publish the capture, whatever went wrong with the trace.

        Ctrl-C is held back meanwhile, and told in `interrupted`. Raises StoreError when the capture can't be
        written.
        """
        with HeldInterrupts() as held:
            Trace.running = None
            try:
                record = self._finish(outcome, source, say, diagnose=diagnose)
            except OSError as error:
                self.draft.discard()
                raise self.draft.refusal(error) from error
        self.interrupted |= held.count > 0
        return record

    def _finish(
        self, outcome: Outcome, source: Source, say: Callable[[str], None], *, diagnose: bool
    ) -> Record:
        written = self._stop(outcome, say)
        traces = settle(self._writing, self.draft, outcome, written=written)
        if self._perfetto:
            self._add_perfetto(outcome)
        environment = surroundings.trace_environment()
        if diagnose:
            examined, problem = diagnosed(traces, self.draft.reference, say=say)
        else:
            examined, problem = None, read_later(self.draft.reference) if traces else ""
        outcome.notices = [
            *surroundings.notices_before(os.environ),
            *self._profiler.notices,
            *outcome.notices,
            *surroundings.notices_after(environment["devices"], examined.timeline if examined else None),
            *([problem] if problem else []),
        ]
        if examined is not None and exceeds_json(examined.timeline):
            outcome.notices.append(_UNTRUE_JSON)
        return publish(self.draft, outcome, source, environment, examined)

    def abandon(self) -> None:
        """Stop without keeping anything."""
        Trace.running = None
        try:
            self._profiler.stop(self._trash(), lambda _: None)
        except ProfilerError:
            pass  # nothing of this trace is wanted
        finally:
            self.draft.discard()

    def _stop(self, outcome: Outcome, say: Callable[[str], None]) -> bool:
        """Stop the profiler; False when it failed to write the trace."""
        written = False
        try:
            self._profiler.stop(self._trash(), say)
            written = True
        except StoppedByCell as error:
            outcome.worsen(Status.PARTIAL, str(error))
            written = True
        except GivenUp as error:
            outcome.worsen(Status.INTERRUPTED, str(error))
        except ProfilerError as error:
            outcome.worsen(Status.FAILED, str(error))
        is_held = self._profiler.interrupts > 0
        self.interrupted |= is_held
        if is_held and written:
            outcome.worsen(
                Status.INTERRUPTED, "Interrupted while the trace was being written; what is listed is whole."
            )
        return written

    def _trash(self) -> Path:
        """Give a directory beside the draft which the store sweeps, should this process end too early."""
        return self.draft.trash

    def _add_perfetto(self, outcome: Outcome) -> None:
        session = self.draft.directory / "plugins" / "profile" / self.draft.session
        source = next(iter(sorted(session.glob("*.trace.json.gz"))), None)
        if source is None:
            outcome.notices.append(
                "There is no Perfetto file, since JAX wrote no trace.json.gz to make it of."
            )
            return
        try:
            write_perfetto(source, session / FILE_NAME)
        except (OSError, ValueError) as error:
            (session / FILE_NAME).unlink(missing_ok=True)
            outcome.worsen(Status.PARTIAL, f"The Perfetto file could not be written: {error}.")


def settle(writing: Path, draft: Draft, outcome: Outcome, *, written: bool = True) -> list[Path]:
    """Move the files written below `writing` to where XProf looks for the draft's session; give the traces.

    What no viewer could read gets a name that XProf passes over. Where JAX failed (`written` is False), only
    whole files are kept, to make room: the disk may be full.
    """
    target = draft.directory / "plugins" / "profile" / draft.session
    traces: list[Path] = []
    found = False
    for path in sorted(path for path in writing.glob("plugins/profile/*/*") if path.is_file()):
        place, whole = target / path.name, written
        if path.name.endswith(".xplane.pb"):
            problem = look_at(path)
            found, whole = True, not problem
            if whole:
                traces.append(place)
            elif written:
                outcome.worsen(Status.PARTIAL, problem)
                place = place.with_name(place.name + _UNREADABLE)
        if whole or written:
            target.mkdir(parents=True, exist_ok=True)
            path.rename(place)
    shutil.rmtree(writing, ignore_errors=True)
    if written and not found:
        outcome.worsen(Status.FAILED, "JAX's profiler wrote no trace, and gave no reason.")
    return traces


def publish(
    draft: Draft,
    outcome: Outcome,
    source: Source,
    environment: Mapping[str, Any],
    examined: Examined | None,
) -> Record:
    """Make the draft a capture, with its findings; raises StoreError when it can't be written."""
    if examined is not None:
        incomplete = not all(file.complete for file in examined.timeline.files)
        if incomplete:
            outcome.worsen(Status.PARTIAL, "A part of the trace can't be read; what is told is of the rest.")
        # The draft's directory will soon have another name
        outcome.notices += [one.replace(f"{draft.directory}/", "") for one in examined.notices]
    return draft.publish(
        status=outcome.status,
        reason=outcome.reason,
        notebook=source.notebook,
        magic=source.magic,
        cell=source.cell,
        environment=environment,
        summary=summary(outcome, examined) | {"place": source.place},
        notices=list(dict.fromkeys(outcome.notices)),
        findings=examined.findings if examined is not None else (),
    )


def summary(outcome: Outcome, examined: Examined | None) -> dict[str, Any]:
    """Give the record's `summary`: our own steps where we made them, else those that the cell marked."""
    steps: Mapping[str, Any] | None = None
    if outcome.step_durations_ms:
        steps = summarize(outcome.step_name, outcome.step_durations_ms)
    own: dict[str, Any] = {"headline": None, "wall_ms": outcome.wall_ms, "steps": steps}
    merged = own if examined is None else examined.summary_with(own)
    if outcome.step_name and examined is not None:
        _count_those_that_ended(merged, examined, outcome)
    median = (merged.get("steps") or {}).get("median_ms")
    if median is not None:
        merged["headline"] = headline(merged)
    elif outcome.wall_ms is not None:
        merged["headline"] = {"label": outcome.wall_label, "value": outcome.wall_ms, "unit": "ms"}
    return {"wall_ms": None, **merged}


def _count_those_that_ended(summary: dict[str, Any], examined: Examined, outcome: Outcome) -> None:
    """Leave out of `summary` the step that failed or was interrupted: the trace has it too."""
    if not outcome.step_durations_ms:
        summary["steps"] = None
    seen: Mapping[str, Any] = examined.summary.get("steps") or {}
    ended = len(outcome.step_durations_ms)
    if seen.get("name") == outcome.step_name and seen.get("count", 0) > ended:
        timeline: Mapping[str, Any] = summary["timeline"]
        sentence = f"The last `{outcome.step_name}` did not end, and is not counted among the steps."
        summary["timeline"] = {**timeline, "window": f"{timeline['window']} {sentence}"}
