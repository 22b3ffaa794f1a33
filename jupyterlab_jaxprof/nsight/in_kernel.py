"""Recording the kernel itself, where `nsys launch` has started it: begun and ended by nsys's own commands.

One recording at a time. It is a draft of the store until it is published: what the kernel's end cuts off is
never listed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from jupyterlab_jaxprof.captures import Draft, Record, Status
from jupyterlab_jaxprof.environment import nsys, own_version
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.timing.variables import backend_has_started
from jupyterlab_jaxprof.tracing import Outcome, Source, trace_environment
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .child import CAPTURE
from .gather import gather_held
from .keeping import TWICE, keep, publish_report
from .launch_flags import start_flags
from .launched import Launch
from .nvtx import Domain, NotAttached, package_version
from .outcome import FULL_DISK, is_full, nvtx_notices, quoted
from .padding import pad_after_compiles

#: nsys has hung for minutes where it was asked for a GPU's counters that it can't have.
START_TIMEOUT_S = 60.0
#: How long nsys has to stop and to write; half a minute is usual where the kernel has started processes.
STOP_TIMEOUT_S = 180.0
_LIST_TIMEOUT_S = 30.0
_GONE = (
    "nsys's session of this kernel has ended: its process was killed, for want of memory maybe. The kernel "
    "goes on without it; restart the kernel to record again."
)
#: What nsys's commands say for a moment, until the session is not listed any more.
_LOST = re.compile(r"connection (refused|to the agent)", re.IGNORECASE)
_AS_IT_WAS = (
    "Recorded in the notebook's own kernel as it was: what was compiled, loaded and allocated before is not "
    "in the report."
)


class RecordingError(RuntimeError):
    """Nothing can be recorded; the message is a sentence."""


class Recording:
    """One recording of this kernel, in the directory of a draft. At most one is `Recording.running`."""

    running: Recording | None = None
    _pads = False
    """Whether what XLA makes while nsys records is followed already."""

    def __init__(self, draft: Draft, launch: Launch, *, until: str, keep_env: Collection[str] = ()) -> None:
        """`until` says what ends it, in the user's words; the values of `keep_env` stay in the report."""
        self.draft = draft
        self._keep_env = keep_env
        self.until = until
        self.started_s = time.monotonic()
        self.interrupted = False
        """Whether a Ctrl-C was held back while it was started or written."""
        self._launch = launch
        self._installation = _installation(launch)
        self._domain = _domain(launch)
        self._work = draft.directory / "work"

    @property
    def name(self) -> str:
        """The capture's name."""
        return self.draft.name

    @staticmethod
    def check_free() -> None:
        """Raise RecordingError while another recording runs."""
        running = Recording.running
        if running is not None:
            raise RecordingError(
                f"'{running.name}' is being recorded until {running.until}, and nsys records one thing at a "
                "time."
            )

    def start(self, *, metrics: bool = False, sample: bool = False) -> None:
        """Let nsys record from now on. Raises RecordingError and FlagError; nothing is left then."""
        self.check_free()
        try:
            with HeldInterrupts() as held:
                self._start(metrics=metrics, sample=sample)
                self.interrupted = held.count > 0
                self.started_s = time.monotonic()
                Recording.running = self
        except BaseException:
            self.draft.discard()
            raise

    def _start(self, *, metrics: bool, sample: bool) -> None:
        self._check_session()
        self._work.mkdir(mode=0o700)
        for left in self._launch.temporary.glob("nsys-report-*"):  # of a recording that failed
            left.unlink(missing_ok=True)
        output = self._work / "report"
        flags = start_flags(self._installation, self._launch.session, output, metrics=metrics, sample=sample)
        status, said = self._ask("start", *flags, timeout_s=START_TIMEOUT_S)
        if status != 0:
            raise RecordingError(_refused(status, said, metrics=metrics))
        if "cuda" in self._launch.trace and not Recording._pads:
            Recording._pads = pad_after_compiles(self._domain, while_=lambda: Recording.running is not None)
        self._domain.push(CAPTURE)

    @contextmanager
    def range(self, name: str) -> Generator[None]:
        """Mark what runs within as a range of the report."""
        self._domain.push(name)
        try:
            yield
        finally:
            self._domain.pop()

    def finish(self, outcome: Outcome, source: Source, *, say: Callable[[str], None]) -> Record | None:
        """Stop, gather, diagnose and publish; None where nsys left no report (`outcome` says why).

        Ctrl-C is held back meanwhile: one is told in `interrupted`, two give the recording up. Raises
        StoreError when the capture can't be written.
        """
        with HeldInterrupts() as held:
            Recording.running = None
            try:
                record = self._finish(outcome, source, say, held)
            except OSError as error:
                raise self.draft.refusal(error) from error
            finally:
                self.draft.discard()  # nothing happens to what is published
            self.interrupted |= held.count > 0
        return record

    def _finish(
        self, outcome: Outcome, source: Source, say: Callable[[str], None], held: HeldInterrupts
    ) -> Record | None:
        say("Stopping to record ...")
        said = self._stop(outcome)
        if held.count > 1:
            outcome.worsen(Status.INTERRUPTED, TWICE)
            return None
        say("Gathering the report ...")
        places = (self._work, self._launch.temporary)
        gathered = gather_held(held, places, self._work / "report", self._installation, nsys.installations())
        if held.count > 1:
            outcome.worsen(Status.INTERRUPTED, TWICE)
            return None
        path = keep(self.draft, gathered)
        if gathered.problem:
            outcome.worsen(Status.FAILED, gathered.problem)
        elif path is None and outcome.status is not Status.FAILED:
            outcome.worsen(Status.FAILED, self._no_report(said))
        if path is None:
            return None
        shutil.rmtree(self._work, ignore_errors=True)
        outcome.notices += [_AS_IT_WAS, *nvtx_notices(package_version(), self._installation)]
        environment = {**_environment(), "nsys": self._installation.version_text}
        return publish_report(
            self.draft, path, outcome, source, environment, say=say, held=held, keep_env=self._keep_env
        )

    def _stop(self, outcome: Outcome) -> list[str]:
        """Stop to record; gives what nsys said."""
        self._domain.pop()
        try:
            self._check_session()
        except RecordingError as error:
            outcome.worsen(Status.FAILED, str(error))
            return []
        status, said = self._ask("stop", f"--session={self._launch.session}", timeout_s=STOP_TIMEOUT_S)
        if status is None:
            outcome.worsen(
                Status.FAILED,
                f"nsys did not stop recording within {STOP_TIMEOUT_S:.0f} s. Restart the kernel before the "
                "next recording. With --sample it hangs so where the system forbids sampling.",
            )
        elif status != 0:
            gone = _LOST.search(" ".join(said))
            sentence = _GONE if gone else f"nsys failed to stop recording.{quoted(said)}"
            outcome.worsen(Status.FAILED, sentence)
        return said

    def _no_report(self, said: Sequence[str]) -> str:
        if is_full(self._work, " ".join(said)):
            return FULL_DISK.format(work=self._work)
        path, version = self._installation.path, self._installation.version_text
        return f"{path} ({version}) wrote no report.{quoted(said)}"

    def cancel(self) -> None:
        """Stop, and keep nothing (not every nsys has a command for that)."""
        with HeldInterrupts():
            Recording.running = None
            try:
                self._stop(Outcome())
            finally:
                self.draft.discard()

    def abandon(self) -> None:
        """Keep nothing of it, at the kernel's end: nsys is ended with the kernel."""
        Recording.running = None
        self.draft.discard()

    def _check_session(self) -> None:
        """Raise RecordingError where the session is gone: nsys would begin another one, of nobody."""
        status, said = self._ask("sessions", "list", timeout_s=_LIST_TIMEOUT_S)
        names = [line.split()[-1] for line in said if line.split()]
        if status == 0 and self._launch.session not in names:
            raise RecordingError(_GONE)

    def _ask(self, *command: str, timeout_s: float) -> tuple[int | None, list[str]]:
        """Run a command of nsys; gives its exit status (None: it hung, and was ended) and what it said."""
        try:
            done = subprocess.run(
                [str(self._launch.nsys), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=dict(self._launch.environment),
                cwd=self._launch.temporary,
                start_new_session=True,  # a notebook's interrupt goes to all of the kernel's group
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            raw = expired.output or b""
            text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
            return None, _lines(text)
        except OSError as error:
            return 127, [f"{self._launch.nsys} does not start: {error.strerror or error}"]
        return done.returncode, _lines(done.stdout)


def _installation(launch: Launch) -> Installation:
    """Give the nsys that has started this kernel."""
    found = nsys.installations()
    same = [one for one in found if one.path == launch.nsys]
    if not same:
        raise RecordingError(
            f"{launch.nsys}, which has started this kernel, is not there any more: restart the kernel."
        )
    return same[0]


def _domain(launch: Launch) -> Domain:
    if isinstance(launch.domain, NotAttached):
        raise RecordingError(
            f"nsys did not attach to this kernel ({launch.domain}). Restart it; should that not help, "
            "install Nsight Systems anew."
        )
    return launch.domain


def _environment() -> dict[str, Any]:
    """Give the record's `environment`; JAX is not started for that."""
    if backend_has_started():
        return trace_environment()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "devices": [],
        "jaxprof": own_version(),
    }


def _refused(status: int | None, said: Sequence[str], *, metrics: bool) -> str:
    text = " ".join(said)
    if _LOST.search(text):
        return _GONE
    if "not allowed in this state" in text:
        return (
            "nsys records this kernel already, by a command from elsewhere or since an earlier recording did "
            "not end: restart the kernel."
        )
    if status is None:
        sentence = f"nsys did not start to record within {START_TIMEOUT_S:.0f} s; restart the kernel."
    else:
        sentence = f"nsys refuses to record.{quoted(said)}"
    hint = " It may have no permission for the GPU's counters: try without --gpu-metrics." if metrics else ""
    return sentence + hint


def _lines(text: str) -> list[str]:
    return [line for part in text.splitlines() if (line := part.rpartition("\r")[2].strip())]
