"""What a kernel's process uses: its own memory and processors by psutil, GPUs by nvidia-smi.

Nothing is asked of the kernel, and nothing at all unless somebody looks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from jupyterlab_jaxprof.environment.command import is_count

_TIMEOUT_S = 10.0
#: Several pages that ask at once share one answer of nvidia-smi, which takes a while.
_FRESH_S = 1.0
_MIB = 1 << 20
_GPU_DEVICE = re.compile(r"/dev/nvidia\d")
_GPUS = "uuid,name,utilization.gpu,memory.used,memory.total"
_PROCESSES = "pid,gpu_uuid,used_memory"


@dataclass(frozen=True)
class Gpu:
    """One GPU. Bytes; `busy_share` from 0 to 1 is of the last fraction of a second; None: not told."""

    uuid: str
    name: str
    busy_share: float | None
    used_bytes: int | None
    total_bytes: int | None


@dataclass(frozen=True)
class Gpus:
    """All GPUs, and the bytes that each process has on each, by (process, uuid); None where not told."""

    gpus: Sequence[Gpu] = ()
    held_bytes: Mapping[tuple[int, str], int | None] | None = None


class Usage:
    """What processes use; it remembers the last look, which the busy share of a process is measured from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[int, psutil.Process] = {}
        self._gpus = Gpus()
        self._looked_s = float("-inf")

    def of(self, pid: int) -> dict[str, Any]:
        """Give the use of a process with its children: `process` and `devices`."""
        with self._lock:
            family = self._family(pid)
            found = self._look()
        return {"process": _of_family(family), "devices": _of_gpus(found, family)}

    def _family(self, pid: int) -> list[psutil.Process]:
        try:
            process = psutil.Process(pid)
            family = [process, *process.children(recursive=True)]
        except psutil.Error:
            return []
        known = {one.pid: self._processes.get(one.pid, one) for one in family}
        # another process may have got the number since
        same = {one.pid: known[one.pid] if known[one.pid] == one else one for one in family}
        self._processes = {
            other: one for other, one in self._processes.items() if other not in same and one.is_running()
        } | same
        return list(same.values())

    def _look(self) -> Gpus:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _FRESH_S:
            self._gpus = _ask_gpus()
            self._looked_s = time.monotonic()
        return self._gpus


def _of_family(family: Sequence[psutil.Process]) -> dict[str, Any]:
    """Give memory in bytes, and the share of this machine's processors since the last look; None at first."""
    memory_bytes, busy = 0, 0.0
    for process in family:
        try:
            memory_bytes += process.memory_info().rss
            busy += process.cpu_percent(None)
        except psutil.Error:  # it has ended
            continue
    total_bytes = psutil.virtual_memory().total
    return {
        "memory_bytes": memory_bytes,
        "total_bytes": total_bytes,
        "busy_share": min(busy / 100 / (psutil.cpu_count() or 1), 1.0),
    }


def _of_gpus(found: Gpus, family: Sequence[psutil.Process]) -> list[dict[str, Any]]:
    """Give the GPUs that the processes hold memory of, with what they hold (`own`).

    In a container nvidia-smi may tell other numbers of processes, or none. For processes that have a GPU open
    all GPUs are given then, each as a whole.
    """
    pids = {one.pid for one in family}
    held: dict[str, int | None] = {}
    for (pid, uuid), size in (found.held_bytes or {}).items():
        if pid in pids:
            before = held.get(uuid, 0)
            held[uuid] = None if size is None or before is None else before + size
    unnamed = not held and any(map(_has_gpu_open, family))
    return [
        {
            "name": gpu.name,
            "busy_share": gpu.busy_share,
            "memory_bytes": gpu.used_bytes if unnamed else held[gpu.uuid],
            "total_bytes": gpu.total_bytes,
            "own": not unnamed,
        }
        for gpu in found.gpus
        if gpu.uuid in held or unnamed
    ]


def _has_gpu_open(process: psutil.Process) -> bool:
    """Tell whether it has one of /dev/nvidia0, ... open (psutil lists plain files only)."""
    with suppress(OSError):  # another user's, or ended
        for entry in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(OSError):
                if _GPU_DEVICE.match(str(entry.readlink())):
                    return True
    return False


def _ask_gpus() -> Gpus:
    if shutil.which("nvidia-smi") is None:
        return Gpus()
    gpus = [
        Gpu(row[0], row[1], _share(row[2]), _bytes(row[3]), _bytes(row[4]))
        for row in _rows(f"--query-gpu={_GPUS}", 5)
    ]
    held: dict[tuple[int, str], int | None] = {}
    for pid, uuid, size in _rows(f"--query-compute-apps={_PROCESSES}", 3) if gpus else ():
        if is_count(pid):
            held[int(pid), uuid] = _bytes(size)
    return Gpus(gpus, held)


def _rows(query: str, columns: int) -> list[list[str]]:
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == columns] if done.returncode == 0 else []


def _share(text: str) -> float | None:
    return int(text) / 100 if is_count(text) else None


def _bytes(text: str) -> int | None:
    return int(text) * _MIB if is_count(text) else None
