"""From a cell to its capture: plan, carry, run under nsys, gather, diagnose, publish."""

from __future__ import annotations

import base64
import marshal
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from jupyterlab_jaxprof.captures import Draft, Record, Status, StoreError
from jupyterlab_jaxprof.environment import nsys, own_version
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.environment.temporary import TemporaryDirectory
from jupyterlab_jaxprof.tracing import Outcome, Source
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from . import memory
from .carry import Plan
from .flags import Flags
from .gather import gather_held, unfinished
from .keeping import TWICE, keep, publish_report
from .outcome import judge
from .progress import Phase, Watcher
from .ran import Ran
from .session import Session
from .surroundings import environments

#: nsys makes sockets below its temporary directory, whose paths may have some 100 characters.
_LONGEST = 60


@dataclass(frozen=True)
class Program:
    """What the process under nsys does: the compiled body and how often it runs."""

    codes: Sequence[CodeType]
    filename: str
    text: str
    steps: int = 5
    step_name: str = "step"
    warm_up: bool = True
    graphs: bool = True
    returned: Sequence[str] = ()
    keep_env: frozenset[str] = frozenset()
    """Variables that nsys itself gets, and whose values stay in the report."""


@dataclass
class Result:
    """The capture (None when there was nothing to keep), what was told of the run, and what came back."""

    record: Record | None
    outcome: Outcome
    ran: Ran
    back: TemporaryDirectory | None = None
    """Where the variables that come back are, in `values`; to be closed."""
    interrupted: bool = False
    """Whether a Ctrl-C came at any time."""
    directory: Path | None = None

    @property
    def has_nsys_failed(self) -> bool:
        """Whether nsys ended before it had started the program, by itself."""
        ran = self.ran
        stopped = ran.interrupted or ran.timed_out or ran.guardian_killed
        return self.record is None and ran.phase is Phase.START and not stopped


class Run:
    """One run of a program under nsys, in the directory of a draft."""

    def __init__(self, draft: Draft, installation: Installation, watcher: Watcher) -> None:
        self._draft = draft
        self._installation = installation
        self._watcher = watcher
        self._session = Session(watcher)
        self.work = draft.directory / "work"
        self.work.mkdir(mode=0o700)
        self.output = self.work / "report"
        self._temporary = self.work / "tmp"
        self._elsewhere: TemporaryDirectory | None = None

    def capture(self, plan: Plan, program: Program, flags: Flags, source: Source, jax_cache: str) -> Result:
        """Do it all. Raises CarryError and OSError before anything runs."""
        self._temporary.mkdir(mode=0o700)
        if not _suits_nsys(self._temporary):
            self._elsewhere = TemporaryDirectory()
            self._temporary = self._elsewhere.path
        back = TemporaryDirectory() if program.returned else None
        try:
            result = self._capture(plan, program, flags, source, jax_cache, back)
        except BaseException:
            if back is not None:
                back.close()
            raise
        finally:
            self._clear()
        result.back = back
        return result

    def _capture(
        self,
        plan: Plan,
        program: Program,
        flags: Flags,
        source: Source,
        jax_cache: str,
        back: TemporaryDirectory | None,
    ) -> Result:
        carried = self.work / "carried"
        self._watcher.tell("Writing the notebook's variables")
        plan.write(carried, self._tell_written)
        held = memory.look()
        self._watcher.tell("Starting nsys")
        ran = self._run(carried, program, flags, held, jax_cache, back.path if back is not None else None)
        shutil.rmtree(carried, ignore_errors=True)
        with HeldInterrupts() as interrupts:
            interrupts.count = int(ran.interrupted)  # the next one is the second
            result = self._conclude(ran, program, flags, source, held, interrupts)
        result.interrupted |= interrupts.count > 0
        return result

    def _tell_written(self, done_bytes: int, all_bytes: int) -> None:
        if all_bytes > 100_000_000:
            self._watcher.tell(
                f"Writing the notebook's variables: {all_bytes / 1e6:,.0f} MB", done_bytes / all_bytes
            )

    def _run(
        self,
        carried: Path,
        program: Program,
        flags: Flags,
        held: memory.Memory,
        jax_cache: str,
        back: Path | None,
    ) -> Ran:
        first, later = environments(os.environ, program.graphs, program.keep_env)
        first |= held.variables(os.environ) | {"TMPDIR": str(self._temporary)}
        for name in memory.UNSET:
            first.pop(name, None)
        if jax_cache:
            first.setdefault("JAX_COMPILATION_CACHE_DIR", jax_cache)
        spec: dict[str, Any] = {
            "carried": str(carried),
            "codes": base64.b64encode(marshal.dumps(list(program.codes))).decode(),
            "filename": program.filename,
            "text": program.text,
            "steps": program.steps,
            "warm_up": program.warm_up,
            "environment": later,
            "unset": [name for name in ("TMPDIR", "PYTHONUNBUFFERED") if name not in later],
            "jax_cache": jax_cache,
            "inline": _inline(),
            "gpus": bool(held.gpus),
            "return": list(program.returned),
            "back": str(back / "values") if back is not None else "",
        }
        command = [str(self._installation.path), "profile", *flags.arguments]
        return self._session.run(command, spec, first, Path.cwd(), self._temporary)

    def _clear(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        if self._elsewhere is not None:
            self._elsewhere.close()

    def _conclude(
        self,
        ran: Ran,
        program: Program,
        flags: Flags,
        source: Source,
        held: memory.Memory,
        interrupts: HeldInterrupts,
    ) -> Result:
        if ran.given_up:
            self._draft.discard()
            outcome = Outcome(Status.INTERRUPTED, "Interrupted; nothing was kept.")
            return Result(None, outcome, ran, interrupted=True)
        places = (self.work, self._temporary)
        if ran.cut_short:
            gathered = unfinished(places)
        else:
            self._watcher.tell("Gathering the report")
            gathered = gather_held(
                interrupts,
                places,
                self.output,
                self._installation,
                nsys.installations(),
                lambda part: self._watcher.tell("Writing the report", part),
            )
        if interrupts.count > 1:
            self._draft.discard()
            return Result(None, Outcome(Status.INTERRUPTED, TWICE), ran, interrupted=True)
        outcome = judge(ran, gathered, self._installation, self.work, held)
        outcome.notices[:0] = flags.notices
        try:
            path = keep(self._draft, gathered)
            self._clear()
            if path is not None:
                return self._publish(ran, outcome, program, source, path, interrupts)
        except StoreError as error:  # the cell's own error and what it returns count for more
            outcome = Outcome(Status.FAILED, str(error))
        except OSError as error:
            why = error.strerror or error
            outcome = Outcome(Status.FAILED, f"The report can't be kept in {self._draft.directory}: {why}.")
        self._draft.discard()
        return Result(None, outcome, ran, interrupted=ran.interrupted)

    def _publish(
        self,
        ran: Ran,
        outcome: Outcome,
        program: Program,
        source: Source,
        path: Path,
        interrupts: HeldInterrupts,
    ) -> Result:
        if ran.durations_ms:
            outcome.step_name = program.step_name
            outcome.step_durations_ms = ran.durations_ms
            outcome.wall_ms = sum(ran.durations_ms)
        environment = {**ran.environment, "nsys": self._installation.version_text, "jaxprof": own_version()}
        record = publish_report(
            self._draft,
            path,
            outcome,
            source,
            environment,
            say=self._watcher.tell,
            held=interrupts,
            keep_env=program.keep_env,
        )
        if record is None:
            self._draft.discard()
            return Result(None, outcome, ran, interrupted=True)
        return Result(record, outcome, ran, interrupted=ran.interrupted, directory=self._draft.directory)


def _suits_nsys(directory: Path) -> bool:
    """Whether nsys's temporary files can be there: it is not too deep, and programs are allowed."""
    noexec = os.statvfs(directory).f_flag & getattr(os, "ST_NOEXEC", 0)
    return len(str(directory)) <= _LONGEST and not noexec


def _inline() -> dict[str, Any]:
    """Give the settings with which matplotlib draws into the notebook."""
    module = sys.modules.get("matplotlib_inline.config")
    if module is None or not module.InlineBackend.initialized():
        return {}
    backend = module.InlineBackend.instance()
    return {"figure_formats": sorted(backend.figure_formats), "close_figures": backend.close_figures}


__all__ = ["Program", "Result", "Run"]
