"""Traces of other programs that run jax.profiler.start_server(PORT), on this machine or another."""

from __future__ import annotations

import json
import platform
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from jupyterlab_jaxprof.captures import Draft, Record, Status, session_slug
from jupyterlab_jaxprof.environment import own_version
from jupyterlab_jaxprof.reports import devices_of

from .contents import diagnosed
from .interrupts import HeldInterrupts
from .options import OptionError
from .trace import Outcome, Source, publish, settle

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timeline.model import Timeline

_CLIENT = Path(__file__).with_name("remote_client.py")
_START_S = 30.0
_LAST_WORDS_S = 5.0
_ANSWER_S = 60.0  # for connecting and for sending the trace, besides its duration
_SENDS_FROM = "JAX 0.9"  # before, the server writes the trace where it runs, or hangs (remote_client.py)
_SWITCHES = ("enable_hlo_proto", "include_dataset_ops")
_DEFAULTS: dict[str, int | bool] = {
    "host_tracer_level": 2,
    "device_tracer_level": 1,
    "python_tracer_level": 0,
    "enable_hlo_proto": True,
    "include_dataset_ops": True,
}


class RemoteError(RuntimeError):
    """No trace could be had; the message is a sentence for each address."""


@dataclass(frozen=True)
class Target:
    """One profiler server; `host_name` names its file and is its host in XProf."""

    address: str
    host_name: str


def parse_targets(text: str) -> list[Target]:
    """Read `HOST:PORT[,HOST:PORT...]` (IPv6 as `[::1]:PORT`, `grpc://` allowed); raises OptionError."""
    targets: dict[str, Target] = {}
    for part in (part.strip() for part in text.split(",")):
        address = part.removeprefix("grpc://")
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(\d{1,5})", address)
        if match is None or not 0 < int(match[2]) < 65536:
            raise OptionError(
                f"'{part}' is no address of a profiler server: write HOST:PORT (several with commas and no "
                "spaces between), with the port that the program gave to jax.profiler.start_server."
            )
        # Two processes of one host would both name their file after the host, so the port is part of the
        # name.
        targets[address] = Target(address, session_slug(f"{match[1]}_{match[2]}"))
    if len({target.host_name for target in targets.values()}) < len(targets):
        return [
            Target(one.address, f"{one.host_name}_{number}") for number, one in enumerate(targets.values())
        ]
    return list(targets.values())


def remote_options(requested: Mapping[str, int | bool | str]) -> dict[str, int | bool]:
    """Give the settings of a remote trace; raises OptionError for one that can't be sent."""
    options = dict(_DEFAULTS)
    for name, value in requested.items():
        if name not in options:
            raise OptionError(
                f"A remote capture has no profiler option {name}. Its options are "
                f"{', '.join(sorted(options))}."
            )
        text = str(value).lower()
        allowed = ("0", "1", "true", "false") if name in _SWITCHES else tuple("0123")
        if text not in allowed:
            raise OptionError(f"The profiler option {name} takes {', '.join(allowed)}, not '{value}'.")
        options[name] = text in ("1", "true") if name in _SWITCHES else int(text)
    return options


class RemoteTrace:
    """One capture of several programs at once, from `start` to `finish`.

    Use it in a `with` block: what isn't finished by its end is abandoned.
    """

    def __init__(
        self, draft: Draft, targets: Sequence[Target], duration_ms: int, options: Mapping[str, Any]
    ) -> None:
        self.draft = draft
        self._writing = draft.directory / "writing"
        self._targets = list(targets)
        self._duration_ms = duration_ms
        self._order = {
            "targets": [{"address": target.address, "host_name": target.host_name} for target in targets],
            "duration_ms": duration_ms,
            "timeout_s": duration_ms / 1000 + _ANSWER_S,
            "options": dict(options),
            "repository_root": str(self._writing / "plugins" / "profile"),
            "session": "remote",
        }
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[str, dict[str, Any]] = {}
        self._stderr: list[str] = []
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abandon()

    def start(self) -> None:
        """Send the requests; the programs are traced from about now. Raises RemoteError, leaving nothing."""
        try:
            self._process = subprocess.Popen(
                # -P: the directory of the script holds modules named like the standard library's (trace)
                [sys.executable, "-P", str(_CLIENT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # a terminal's Ctrl-C is for this process, which then ends that one
            )
            stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
            assert stdin is not None
            assert stdout is not None
            assert stderr is not None
            self._start_reader(self._read_answers, stdout)
            self._start_reader(self._stderr.extend, stderr)
            stdin.write(json.dumps(self._order))
            stdin.close()
            first = self._lines.get(timeout=_START_S)
        except BaseException as error:
            self.abandon()
            if isinstance(error, (OSError, queue.Empty)):
                raise RemoteError(
                    "The process that asks for the trace did not start: run the cell again."
                ) from error
            raise
        if first is None:
            self.abandon()
            raise RemoteError(self._why_no_client())

    def abandon(self) -> None:
        """End the requests and keep nothing; what is published already stays."""
        self._end_process()
        self.draft.discard()

    def finish(self, outcome: Outcome, source: Source, *, say: Callable[[str], None]) -> Record:
        """Wait for all answers and publish those that came, even if some failed or Ctrl-C ends the waiting.

        Raises RemoteError when no program sent a trace, StoreError when the capture can't be written.
        """
        try:
            self._wait(say)
        except KeyboardInterrupt:
            outcome.worsen(Status.INTERRUPTED, "Interrupted before all programs had sent their traces.")
        with HeldInterrupts():
            self._end_process()
            return self._publish(outcome, source, say)

    def _publish(self, outcome: Outcome, source: Source, say: Callable[[str], None]) -> Record:
        sentences = [sentence for sentence in map(self._problem, self._targets) if sentence]
        if len(sentences) == len(self._targets) and outcome.status is Status.OK:
            self.draft.discard()
            raise RemoteError(" ".join(sentences))
        if sentences:
            outcome.worsen(Status.PARTIAL, " ".join(sentences))
        traces = settle(self._writing, self.draft, outcome, written=len(sentences) < len(self._targets))
        examined, problem = diagnosed(traces, self.draft.reference, say=say)
        if problem:
            outcome.notices.append(problem)
        timeline = examined.timeline if examined is not None else None
        return publish(self.draft, outcome, source, _environment(timeline), examined)

    def _wait(self, say: Callable[[str], None]) -> None:
        started_s = time.monotonic()
        limit_s = self._duration_ms / 1000 + _ANSWER_S + 10
        while len(self._answers) < len(self._targets):
            waited_s = time.monotonic() - started_s
            try:
                answer = self._lines.get(timeout=1.0)
            except queue.Empty:
                if waited_s > limit_s:
                    return
                arrived = f"{len(self._answers)} of {len(self._targets)} traces have arrived"
                say(f"Tracing {_named(self._targets)} ({waited_s:.0f} s so far, {arrived}) ...")
                continue
            if answer is None:
                return
            self._answers[answer["address"]] = answer

    def _start_reader(self, read: Callable[[Iterable[str]], None], pipe: IO[str]) -> None:
        """Let a thread read a pipe of the process to its end."""

        def run() -> None:
            with pipe:
                read(pipe)

        self._readers.append(threading.Thread(target=run, daemon=True))
        self._readers[-1].start()

    def _read_answers(self, stdout: Iterable[str]) -> None:
        for line in stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _end_process(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for reader in self._readers:  # its last words are in the pipe still
            reader.join(_LAST_WORDS_S)

    def _why_no_client(self) -> str:
        text = "".join(self._stderr)
        if "ModuleNotFoundError" in text:
            return (
                "Remote captures need two packages in the kernel's environment: pip install grpcio protobuf."
            )
        last = text.strip().splitlines()[-1:] or ["nothing"]
        return f"The process that asks for the trace ended at once; its last words: {last[0]}"

    def _problem(self, target: Target) -> str:
        """Say why there is no trace of one program; empty when there is."""
        answer = self._answers.get(target.address)
        if answer is None:
            return f"{target.address} had not answered."
        if "code" in answer:
            return _explain(target.address, answer["code"], answer["details"] or "")
        if answer["empty"]:
            return (
                f"The program at {target.address} did no JAX work within {self._duration_ms} ms: trace it "
                "while it is busy, or for longer (--duration-ms)."
            )
        if (self._writing / "plugins" / "profile" / "remote" / f"{target.host_name}.xplane.pb").exists():
            return ""
        return (
            f"The program at {target.address} was traced, but its JAX is too old to send the trace "
            f"({_SENDS_FROM} or later does): it wrote it on its own machine, below {self._writing}. Use "
            "--dir with a directory that both machines share, or upgrade JAX there."
        )


def _named(targets: Sequence[Target]) -> str:
    return targets[0].address if len(targets) == 1 else f"{len(targets)} programs"


def _explain(address: str, code: str, details: str) -> str:
    host, _, port = address.rpartition(":")
    if code == "LOCAL_WRITE":
        return f"The trace of {address} could not be written here: {details}."
    if "ALREADY_EXISTS" in details or "Another profiling session" in details:
        return (
            f"The program at {address} is being traced already, by itself or somebody else: try again later."
        )
    if code == "DEADLINE_EXCEEDED":
        return (
            f"{address} did not answer in time: is the host right, does a firewall let the port through, and "
            f"has the program {_SENDS_FROM} or later (before, its profiler server hangs)?"
        )
    if "refused" in details:
        return (
            f"Nothing listens at {address}: is the program running, and did it call "
            f"jax.profiler.start_server({port})? It must listen on an address that this machine reaches."
        )
    if "esolution failed" in details or "resolving" in details or "Domain name" in details:
        return f"The host {host} is unknown: check its name, or give its address."
    if code == "UNIMPLEMENTED" or "HTTP/2" in details or "SETTINGS frame" in details:
        return (
            f"What listens at {address} is not JAX's profiler server: give the port of "
            "jax.profiler.start_server, not the program's other ports."
        )
    if "permission denied" in details.lower() or "PERMISSION_DENIED" in details:
        return (
            f"The program at {address} may not write into the capture's directory, and its JAX is too old "
            f"to send the trace instead ({_SENDS_FROM} or later does): use --dir with a directory that it "
            "can write, or upgrade JAX there."
        )
    return f"{address} sent no trace ({code}: {details.splitlines()[0] if details else 'no details'})."


def _environment(timeline: Timeline | None) -> dict[str, Any]:
    """Describe the programs traced, as far as their traces tell; no device of this process is taken."""
    versions = timeline.versions if timeline is not None else {}
    return {
        "python": platform.python_version(),
        "jax": versions.get("jax", ""),
        "jaxlib": versions.get("jaxlib", ""),
        "platform": platform.platform(),
        "devices": devices_of(timeline) if timeline is not None else [],
        "host": socket.gethostname(),
        "xla_flags": "",
        "jaxprof": own_version(),
    }
