"""One run of nsys, from its start to its end: started apart, listened to, interrupted once, swept away."""

from __future__ import annotations

import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.environment import guardian
from jupyterlab_jaxprof.environment.awake import AwakeClock
from jupyterlab_jaxprof.environment.command import percentage
from jupyterlab_jaxprof.tracing.interrupts import HeldInterrupts

from .interrupts import Interrupts
from .pipes import Descriptors, Lines, Pipes, Stream, drain, read
from .progress import Phase, Watcher
from .ran import Ran

#: Until the program's first sign of life: nsys has hung for ten minutes before it started a program.
START_TIMEOUT_S = 90.0
#: How long nsys has to stop recording; half a minute is usual where the body has left processes running.
STOP_TIMEOUT_S = 120.0
#: How long nsys may say nothing once the program has ended: of its processes one may have been killed.
LINGER_TIMEOUT_S = 120.0
_TURN_S = 0.1
_LINGER_S = 2.0
_SWEEPS = 100
#: At the end of the path, where it shadows nothing; the notebook's own path is set later.
_BOOTSTRAP = (
    f"import sys; sys.path.append({str(Path(__file__).parents[2])!r}); "
    "from jupyterlab_jaxprof.nsight.child import main; main(sys.argv[1:])"
)
#: Set in all that is started, so that it can be found should its guardian be killed.
MARK = "JAXPROF_RUN"
_BAR = re.compile(rb"\[\d+/\d+\] \[")


@dataclass(frozen=True)
class Limits:
    """How long nsys may take to start the program, and to stop recording.

    Of an nsys that does not stop the report is had by other means, if it `is_wanted`.
    """

    start_s: float = field(default_factory=lambda: START_TIMEOUT_S)
    stop_s: float = field(default_factory=lambda: STOP_TIMEOUT_S)
    is_wanted: bool = True


class Session:
    """Runs a program under nsys. Use `run` once."""

    def __init__(self, watcher: Watcher, limits: Limits | None = None) -> None:
        self._watcher = watcher
        self._limits = limits or Limits()
        self._ran = Ran()
        self._steps = 0
        self._mark = ""
        self._clock = AwakeClock()
        self._stopping_s = 0.0
        self._looked_s = self._heard_s = 0.0
        self._has_ended = False
        self._streams: dict[int, Stream] = {}
        self._pipes: Pipes | None = None
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
        self._steps = spec["steps"]
        environment = {**environment, **dict([self._mark.split("=")])}
        with HeldInterrupts() as held, Pipes(spec) as pipes:
            self._pipes = pipes
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

    def _listen(self, process: subprocess.Popen[bytes], pipes: Pipes, held: HeldInterrupts) -> None:
        assert process.stdout is not None
        started_s = self._clock.now_s()
        self._streams = {
            pipes.out: Stream("stdout", self._watcher.write),
            pipes.err: Stream("stderr", self._watcher.write),
        }
        readers: dict[int, Lines | Stream] = {
            pipes.events: Lines(self._on_event),
            process.stdout.fileno(): Lines(self._ran.hear, self._on_bar),
            **self._streams,
        }
        interrupts = Interrupts(self)
        ended_s = 0.0
        with selectors.DefaultSelector() as selector:
            for descriptor in readers:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(_TURN_S)
                for key, _ in ready:
                    part = read(key.fd)
                    if part is not None:
                        readers[key.fd].take(part)
                    if part == b"":
                        selector.unregister(key.fd)
                self._watcher.beat()
                now_s = self._clock.now_s()
                if self._ran.phase is Phase.START and now_s - started_s > self._limits.start_s:
                    self._ran.timed_out, self._ran.waited_s = True, self._limits.start_s
                    return
                self._look(now_s)
                if self._lingers(now_s):
                    return
                if self._hangs(now_s):
                    if not self._limits.is_wanted:
                        return
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
        if not stopping or self._ran.hung or now_s - self._stopping_s <= self._limits.stop_s:
            return False
        self._ran.hung, self._ran.waited_s = True, self._limits.stop_s
        return True

    def _look(self, now_s: float) -> None:
        """Notice the program's end; its pipes don't tell, since nsys has them too."""
        if self._ran.pid and not self._has_ended and now_s - self._looked_s > _TURN_S:
            self._looked_s = now_s
            if not guardian.lives(self._ran.pid):
                self._has_ended, self._heard_s = True, now_s

    def _lingers(self, now_s: float) -> bool:
        """Tell that nsys goes on without a word after the program's end."""
        if not self._has_ended or now_s - self._heard_s <= LINGER_TIMEOUT_S:
            return False
        self._ran.lingered, self._ran.waited_s = True, LINGER_TIMEOUT_S
        return True

    def _on_event(self, line: str) -> None:
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):  # the program was killed while it wrote
            return
        if not isinstance(event, dict) or "event" not in event:  # the cell wrote where it shouldn't
            return
        self._ran.take(event)
        watcher = self._watcher
        match event["event"]:
            case "start":
                watcher.enter(Phase.SET_UP, "Making the notebook's variables again")
            case "warm-up":
                watcher.enter(Phase.WARM_UP, "Warming up")
            case "capture":
                watcher.enter(Phase.CAPTURE, f"Recording step 1 of {self._steps}")
            case "step" if event["number"] + 1 < self._steps:
                watcher.tell(f"Recording step {event['number'] + 2} of {self._steps}")
            case "stop":  # takes a second; with processes that the body left running, half a minute
                self._stopping_s = self._clock.now_s()
                watcher.enter(Phase.IMPORT, "Stopping nsys")
            case "captured":
                watcher.tell("Writing the report")
            case "display":
                self._catch_up()
                watcher.publish(event["shown"])
            case "clear":
                self._catch_up()
                watcher.clear(wait=event["wait"])
            case _:
                return

    def _catch_up(self) -> None:
        """Pass on what the program printed before it displayed something, for which it waits."""
        for descriptor, stream in self._streams.items():
            drain(descriptor, stream)
        if self._pipes is not None:
            self._pipes.acknowledge()

    def _on_bar(self, part: bytes) -> None:
        """Pass on how much of the report nsys has made; it draws a bar, over and over."""
        self._heard_s = self._clock.now_s()
        done = percentage(part) if _BAR.search(part) else None
        if done is not None:
            self._watcher.tell("Writing the report", done)

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

    def cut_short(self) -> None:
        """Note that nsys is not waited for any more; what it has written by now is kept."""
        self._ran.cut_short = self._ran.interrupted = True

    @property
    def has_program_ended(self) -> bool:
        """Whether the program is gone, be it by itself or killed."""
        return self._has_ended

    def is_silent(self, now_s: float, for_s: float) -> bool:
        """Whether nsys has said nothing since the program's end for so long."""
        return self._has_ended and now_s - self._heard_s > for_s

    @property
    def phase(self) -> Phase:
        """How far it is."""
        return self._ran.phase

    @property
    def has_ended_recording(self) -> bool:
        """Whether the program runs the body no more, and nsys may take its time."""
        return self._ran.captured or (self._stopping_s > 0 and not self._ran.hung)

    def say(self, doing: str) -> None:
        """Tell how it goes."""
        self._watcher.tell(doing)

    def _signal_program(self, number: int) -> None:
        if self._ran.pid and self._ran.nsys_status is None and not self._has_ended:
            with suppress(OSError):
                os.kill(self._ran.pid, number)

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
        for file in self._ran.files:
            Path(file).unlink(missing_ok=True)
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


def _program(descriptors: Descriptors) -> list[str]:
    numbers = [str(number) for number in descriptors.all()]
    return [sys.executable, "-P", "-c", _BOOTSTRAP, *numbers]
