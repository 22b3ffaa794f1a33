"""Two things measured in turns, so that whatever else the machine does falls on both alike."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]


def in_turns(
    rounds: int, ours: Callable[[], float], theirs: Callable[[], float], *, warmups: int = 1
) -> tuple[list[float], list[float]]:
    """Call both `rounds` times, each first in every other round; `warmups` rounds before that don't count."""
    measured = ([], [])
    for number in range(rounds + warmups):
        order = ((0, ours), (1, theirs)) if number % 2 else ((1, theirs), (0, ours))
        for which, measure in order:
            value = measure()
            if number >= warmups:
                measured[which].append(value)
    return measured


def timed(work: Callable[[], object]) -> float:
    """How long it took, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_process(program: str, *arguments: object, environment: Mapping[str, str] | None = None) -> str:
    """Run Python text in a process of its own; gives what it printed. Raises RuntimeError with its errors."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


class PeakOf:
    """By how much another process's own memory grew at its most, sampled every 10 ms: `extra`, in bytes."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.extra = 0

    def _own(self) -> int:
        memory = self._process.memory_info()
        return memory.rss - memory.shared

    def __enter__(self) -> PeakOf:
        self._before = self._own()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self.extra = max(self.extra, self._own() - self._before)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
