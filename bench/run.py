"""Groups, one after the other, each in a process of its own: one that fails takes no other with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from bench import GROUPS
from bench.table import Figure, Limit

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 300.0
LONG_TIMEOUT_S = 1800.0

Report = Callable[[str], None]


def measured(groups: Sequence[str], long: bool, report: Report) -> list[Figure]:
    """Measure these groups; `report` is told of each beginning, row and end."""
    figures: list[Figure] = []
    began = time.monotonic()
    for number, group in enumerate(groups, 1):
        report(f"[{number}/{len(groups)}] {group}: {GROUPS[group]} ({time.monotonic() - began:.0f} s so far)")
        for figure in _of_group(group, LONG_TIMEOUT_S if long else TIMEOUT_S, long):
            figures.append(figure)
            report("  " + "  ".join(filter(None, figure.cells())))
    report(f"{len(figures)} figures in {time.monotonic() - began:.0f} s.")
    return figures


def figure_of(line: str) -> Figure:
    """A figure from its line of JSON."""
    data = json.loads(line)
    return Figure(**{**data, "limits": tuple(Limit(**limit) for limit in data["limits"])})


def _of_group(group: str, timeout_s: float, long: bool) -> Iterator[Figure]:
    """The figures as they come; the last one is a problem where the group did not get to its end."""
    command = [sys.executable, "-m", "bench.measure", group, *(["--long"] if long else [])]
    # as where the package is installed: modules are compiled once
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        late = threading.Timer(timeout_s, _end, [process])
        late.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield replace(figure_of(line), group=group)
            process.wait()
        finally:
            in_time = late.is_alive()
            late.cancel()
            _end(process)
        if process.returncode:
            reason = _last_line(errors) if in_time else f"it took longer than {timeout_s:.0f} s"
            yield Figure(f"the rest of '{group}'", group=group, problem=f"not measured: {reason}")


def _end(process: subprocess.Popen[str]) -> None:
    """Stop a group with all that it has started: first as Ctrl-C does, that it may clear up."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                continue


def _last_line(errors: IO[str]) -> str:
    errors.seek(0)
    text = errors.read().strip()
    sys.stderr.write(text[-4000:] + "\n")
    return text.rpartition("\n")[2] or "it ended without a word"
