"""The parent of one program of another's: whatever dies first, nothing of what it started is left behind.

Started as a script by the kernel (or a server), in a session of its own, with what it needs and no more
(Python's standard library, `-I -S`). Standard input carries the kernel's wishes, one byte each; its end means
that the kernel is gone. Everything that the program (nsys, as a rule) starts, however detached, becomes a
child of this process when its own parent ends (Linux's PR_SET_CHILD_SUBREAPER): so it can be found and ended.

    guardian.py EVENTS FOLDER COMMAND...

EVENTS is the descriptor for JSON lines to the kernel; FOLDER is removed when the kernel is gone and can't.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

INTERRUPT = b"i"
#: All is to be ended, and the folder stays.
END = b"e"
#: Followed by the number of a process, in PROGRAM_DIGITS digits: it outlives nsys, should that die.
PROGRAM, PROGRAM_DIGITS = b"p", 10
_PR_SET_CHILD_SUBREAPER = 36
#: Files that nsys writes outside of its temporary directory, and forgets when it is killed.
_CONFIGURATION = re.compile(rb"/tmp/injection_config_[0-9a-f]+")
_LOOK_S = 1.0
_SWEEPS = 200


def main(events: int, folder: str, command: list[str]) -> None:
    """Run nsys until it ends, or the kernel does."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(0, False)
    ended: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        ended.append(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken = _woken_by_ends()
    try:
        nsys = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, close_fds=False, preexec_fn=_with_default_interrupts
        )
    except OSError as error:
        _send(events, event="no-nsys", error=error.strerror or str(error))
        return
    interrupted = abandoned = False
    program = 0
    while (nsys.poll() is None or lives(program)) and not ended and os.getppid() == parent:
        ready, _, _ = select.select([0, woken], [], [], _LOOK_S)
        if woken in ready:
            os.read(woken, 512)
        wish = os.read(0, 1) if 0 in ready else None
        if wish == b"":
            abandoned = True
            break
        if wish == END:
            break
        if wish == INTERRUPT and not interrupted:  # a second one would make nsys lose the report
            interrupted = True
            nsys.send_signal(signal.SIGINT)
        if wish == PROGRAM:
            program = int(os.read(0, PROGRAM_DIGITS))
    status = nsys.poll()
    left = _sweep(str(Path(command[0]).resolve().parent))
    _send(events, event="nsys-ended", status=status, left=left)
    if folder and (abandoned or os.getppid() != parent):
        shutil.rmtree(folder, ignore_errors=True)


def _woken_by_ends() -> int:
    """Give a descriptor that is readable once a child process has ended."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _wake(number: int, frame: FrameType | None) -> None:
    """Let the signal write to the descriptor; without a handler it would not."""


def _with_default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _send(events: int, **said: object) -> None:
    try:
        os.write(events, (json.dumps(said) + "\n").encode())
    except OSError:  # the kernel is gone
        return


def _sweep(tools: str) -> list[int]:
    """End all descendants of this process; gives those that were not nsys's own helpers."""
    seen: set[int] = set()
    files: set[bytes] = set()
    for _ in range(_SWEEPS):
        found = _descendants()
        if not found:
            break
        for pid in found:
            if not _is_tool(pid, tools):
                seen.add(pid)
            files |= _configuration(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.01)
    for file in files:
        with suppress(OSError):
            os.unlink(file)  # noqa: PTH108 (bytes)
    return sorted(seen)


def _configuration(pid: int) -> set[bytes]:
    try:
        return set(_CONFIGURATION.findall(Path(f"/proc/{pid}/environ").read_bytes()))
    except OSError:  # it has just ended
        return set()


def _is_tool(pid: int, tools: str) -> bool:
    try:
        program = str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:  # it has just ended
        return True
    return program.startswith(tools) or "nsight" in program.lower()


def _descendants() -> list[int]:
    """The living processes below this one; those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return []
    below, children = {os.getpid()}, dict[int, list[int]]()
    for name in [path.name for path in Path("/proc").iterdir()]:
        if name.isdigit():
            state, parent = _state(name)
            if state not in ("", "Z"):
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    pending = list(below)
    while pending:
        for pid in children.get(pending.pop(), ()):
            found.append(pid)
            pending.append(pid)
    return found


def lives(pid: int) -> bool:
    """Whether a process is there, and has not ended."""
    return bool(pid) and _state(str(pid))[0] not in ("", "Z")


def _state(pid: str) -> tuple[str, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1])
    except (OSError, IndexError):  # it has just ended
        return "", 0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
