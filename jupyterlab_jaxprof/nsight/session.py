"""One run of nsys, from its start to its end: started apart, listened to, interrupted once, swept away."""

from __future__ import annotations

import codecs
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from . import guardian

#: Until the program's first sign of life: nsys has hung for ten minutes before it started a program.
START_TIMEOUT_S = 90.0
#: How long an interrupted program has to end its step, then nsys to stop it, before the next means.
GRACE_S = 10.0
#: How long nsys has to stop recording; half a minute is usual where the body has left processes running.
STOP_TIMEOUT_S = 120.0
#: How long it has to write the report once the program was killed, before all is ended.
LAST_S = 120.0
_TURN_S = 0.1
_LINGER_S = 2.0
_MOST_SAID = 400
_SWEEPS = 100
#: At the end of the path, where it shadows nothing; the notebook's own path is set later.
_BOOTSTRAP = (
    f"import sys; sys.path.append({str(Path(__file__).parents[2])!r}); "
    "from jupyterlab_jaxprof.nsight.child import main; main(sys.argv[1:])"
)
#: Set in all that is started, so that it can be found should its guardian be killed.
MARK = "JAXPROF_RUN"
_BAR = re.compile(r"\[\d+/\d+\] \[.*%")


class Phase(StrEnum):
    """How far a run is."""

    START = "start"
    SET_UP = "set-up"
    WARM_UP = "warm-up"
    CAPTURE = "capture"
    IMPORT = "import"


_PHASE_AFTER = {
    "start": Phase.SET_UP,
    "ready": Phase.WARM_UP,
    "capture": Phase.CAPTURE,
    "captured": Phase.IMPORT,
}


@dataclass
class Ran:
    """What a run told: events of the program and of its guardian, and what nsys printed."""

    phase: Phase = Phase.START
    interrupted: bool = False
    given_up: bool = False
    """Interrupted twice, or before there was anything to record: all was ended at once."""
    stuck: bool = False
    """The program ignored an interrupt and was killed."""
    timed_out: bool = False
    """The program never gave a sign of life."""
    nsys_status: int | None = None
    nsys_failure: str = ""
    hung: bool = False
    """nsys never stopped recording."""
    guardian_killed: bool = False
    left_behind: int = 0
    no_nvtx: str = ""
    error: Mapping[str, Any] | None = None
    """The event of the program's own error."""
    done: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] = field(default_factory=lambda: {})
    """What a record says of the program's process."""
    notices: list[str] = field(default_factory=lambda: [])
    durations_ms: list[float] = field(default_factory=lambda: [])
    captured: bool = False
    said: list[str] = field(default_factory=lambda: [])
    """The lines that nsys printed."""


@dataclass(frozen=True)
class Descriptors:
    """The program's ends of the pipes, in the order of its arguments."""

    spec: int
    events: int
    life: int
    out: int
    err: int

    def all(self) -> tuple[int, ...]:
        """Give them in that order."""
        return self.spec, self.events, self.life, self.out, self.err


class Session:
    """Runs a program under nsys. Use `run` once."""

    def __init__(self, *, say: Callable[[str], None], write: Callable[[str, str], None]) -> None:
        """`say` tells how it goes; `write` takes the name of a stream and what the program printed."""
        self._say = say
        self._write = write
        self._ran = Ran()
        self._pid = 0
        self._mark = ""
        self._stopping_s = 0.0
        self._guardian: subprocess.Popen[bytes] | None = None

    def run(
        self,
        nsys_and_flags: Sequence[str],
        spec: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
        work: Path,
    ) -> Ran:
        """Run to the end, whatever happens. Ctrl-C is held back and obeyed here; it is told in what is given.

        `folder` is where the program starts, `work` a directory that is removed should this process end.
        """
        self._mark = f"{MARK}={secrets.token_hex(8)}"
        environment = {**environment, **dict([self._mark.split("=")])}
        with HeldInterrupts() as held, _Pipes(spec) as pipes:
            events, theirs = str(pipes.theirs.events), pipes.theirs.all()
            command = [*nsys_and_flags, *_program(pipes.theirs)]
            self._guardian = process = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, events, str(work), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=theirs,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
            try:
                pipes.close_theirs()
                self._listen(process, pipes, held)
            finally:
                self._end(process)
        return self._ran

    def _listen(self, process: subprocess.Popen[bytes], pipes: _Pipes, held: HeldInterrupts) -> None:
        assert process.stdout is not None
        started_s = time.monotonic()
        lines = {
            pipes.events: _Lines(self._on_event),
            process.stdout.fileno(): _Lines(self._on_nsys),
        }
        streams = {pipes.out: _Stream("stdout", self._write), pipes.err: _Stream("stderr", self._write)}
        readers: dict[int, _Lines | _Stream] = {**lines, **streams}
        interrupts = _Interrupts(self)
        ended_s = 0.0
        with selectors.DefaultSelector() as selector:
            for descriptor in readers:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(_TURN_S)
                for key, _ in ready:
                    part = os.read(key.fd, 65536)
                    readers[key.fd].take(part)
                    if not part:
                        selector.unregister(key.fd)
                now_s = time.monotonic()
                if self._ran.phase is Phase.START and now_s - started_s > START_TIMEOUT_S:
                    self._ran.timed_out = True
                    return
                if self._hangs(now_s):
                    interrupts.use_means(now_s)
                if not interrupts.obey(held.count, now_s):
                    return
                if process.poll() is not None and not ready:
                    ended_s = ended_s or now_s
                    if now_s - ended_s > _LINGER_S:  # somebody holds a pipe open
                        return

    def _hangs(self, now_s: float) -> bool:
        """Tell, once, that nsys has not stopped recording in time."""
        stopping = self._stopping_s and self._ran.phase is Phase.CAPTURE
        if not stopping or self._ran.hung or now_s - self._stopping_s <= STOP_TIMEOUT_S:
            return False
        self._ran.hung = True
        return True

    def _on_event(self, line: str) -> None:
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:  # the program was killed while it wrote
            return
        ran, name = self._ran, event["event"]
        ran.phase = _PHASE_AFTER.get(name, ran.phase)
        match name:
            case "start":
                self._pid = event["pid"]
                self._say("Making the notebook's variables again ...")
            case "ready":
                ran.notices += event["notices"]
                ran.environment = event["environment"]
                self._say("Warming up ...")
            case "capture":
                self._say("Recording ...")
            case "step":
                ran.durations_ms.append(event["duration_ms"])
            case "stop":  # takes a second; with processes that the body left running, half a minute
                self._stopping_s = time.monotonic()
                self._say("Stopping to record ...")
            case "captured":
                ran.captured = True
                self._say("Writing the report ...")
            case "error":
                ran.error = ran.error or event
            case "no-nvtx":
                ran.no_nvtx = event["reason"]
            case "no-nsys":
                ran.nsys_failure = event["error"]
            case "done":
                ran.done = event
                ran.environment = event["environment"]
                ran.notices += event["notices"]
            case "nsys-ended":
                ran.nsys_status = event["status"]
                ran.left_behind = len(set(event["left"]) - {self._pid})
                ran.stuck |= ran.interrupted and self._pid in event["left"]
            case _:
                return

    def _on_nsys(self, line: str) -> None:
        line = line.rpartition("\r")[2].strip()
        if line and not _BAR.search(line) and len(self._ran.said) < _MOST_SAID:
            self._ran.said.append(line)

    def interrupt_program(self) -> None:
        """Send the program the Ctrl-C of its user."""
        self._ran.interrupted = True
        self._signal_program(signal.SIGINT)

    def interrupt_nsys(self) -> None:
        """Let nsys stop the program and write its report; more than once would lose that."""
        process = self._guardian
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.write(guardian.INTERRUPT)
                process.stdin.flush()

    def kill_program(self) -> None:
        """End the program, which ignores signals; nsys writes its report then."""
        self._ran.stuck = True
        self._signal_program(signal.SIGKILL)

    def give_up(self) -> None:
        """Note that nothing is to be kept."""
        self._ran.interrupted = self._ran.given_up = True

    @property
    def phase(self) -> Phase:
        """How far it is."""
        return self._ran.phase

    def say(self, sentence: str) -> None:
        """Tell how it goes."""
        self._say(sentence)

    def _signal_program(self, number: int) -> None:
        if self._pid and self._ran.nsys_status is None:
            with suppress(OSError):
                os.kill(self._pid, number)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Have everything ended: the guardian does it once its input ends, else we do."""
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_LINGER_S * 5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:  # somebody has killed it: what it looked after goes as well
            self._ran.guardian_killed = True
            end_marked(self._mark)
        if process.stdout is not None:
            process.stdout.close()


def end_marked(mark: str) -> None:
    """End all processes that were started with a variable set so (`NAME=value`)."""
    for _ in range(_SWEEPS):
        found = [
            place for place in Path("/proc").iterdir() if place.name.isdigit() and _is_marked(place, mark)
        ]
        if not found:
            return
        for place in found:
            with suppress(OSError):
                os.kill(int(place.name), signal.SIGKILL)
        time.sleep(0.01)


def _is_marked(place: Path, mark: str) -> bool:
    try:
        return mark.encode() in (place / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or it has just ended
        return False


class _Interrupts:
    """What each Ctrl-C does, and what follows when it does not help."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._obeyed = 0
        self._means: list[Callable[[], None] | None] = []
        self._next_s = 0.0

    def obey(self, count: int, now_s: float) -> bool:
        """Do what the interrupts so far ask for; False when all is to be given up."""
        session = self._session
        if count > self._obeyed:
            again, self._obeyed = self._obeyed > 0 or count > 1, count
            recording = session.phase in (Phase.CAPTURE, Phase.IMPORT)
            if again or not recording:
                session.give_up()
                return False
            if session.phase is Phase.CAPTURE:
                session.say(
                    "Interrupted: the report so far is being written. Interrupt again to give it up ..."
                )
                session.interrupt_program()
                self.use_means(now_s + GRACE_S)
            else:
                session.say("The report is being written. Interrupt again to give it up ...")
        if self._means and now_s > self._next_s:
            if session.phase is Phase.IMPORT:
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
        session = self._session
        self._means = self._means or [session.interrupt_nsys, session.kill_program, None]
        self._next_s = from_s


class _Lines:
    """Cuts what is read into lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""

    def take(self, part: bytes) -> None:
        """Take what was read; nothing at the end."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if not part and self._rest:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))


class _Stream:
    """Passes text on as it comes, in whole characters."""

    def __init__(self, name: str, write: Callable[[str, str], None]) -> None:
        self._name = name
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, part: bytes) -> None:
        """Take what was read; nothing at the end."""
        text = self._decoder.decode(part, final=not part)
        if text:
            self._write(self._name, text)


class _Pipes:
    """The pipes between this process and the program, and the file with what it shall do."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._file = _private_file()  # it holds the variables that shall be nowhere
        self._file.write(json.dumps(spec).encode())
        self._file.flush()
        self._file.seek(0)
        self.events, events = os.pipe()
        life, self._life = os.pipe()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.theirs = Descriptors(self._file.fileno(), events, life, out, err)
        self._open = {self.events, self._life, self.out, self.err}
        self._open_theirs = {events, life, out, err}

    def close_theirs(self) -> None:
        """Close the ends that the program has now."""
        self._file.close()
        for descriptor in self._open_theirs:
            os.close(descriptor)
        self._open_theirs = set[int]()

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for descriptor in self._open:
            os.close(descriptor)


def _private_file() -> IO[bytes]:
    """Open a file that has no name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("jaxprof"), "w+b")
    return tempfile.TemporaryFile()


def _program(descriptors: Descriptors) -> list[str]:
    numbers = [str(number) for number in descriptors.all()]
    return [sys.executable, "-P", "-c", _BOOTSTRAP, *numbers]
