"""What is being measured now: a small file in each draft, written where a phase begins and never within one.

Whoever writes it measures nothing meanwhile. Nothing that fails here may cost a measurement, so a file that
can't be written is passed over: then nobody sees how far it is.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from . import disk
from .names import is_id
from .owner import is_abandoned
from .record import load
from .shapes import is_number

PROGRESS_FILE = "progress.json"
_MAX_BYTES = 64 * 1024
_NUMBERS = ("pid", "since", "fraction")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "name": str,
    "magic": str,
    "notebook": str,
    "cell_id": str,
    "kernel_id": str,
    "interruptible": bool,
    "host": str,
    "pid": int,
    "since": (int, float),
    "phase": str,
    "fraction": (int, float, type(None)),
}


@dataclass(frozen=True)
class Origin:
    """Where a measurement comes from; what is not known is empty."""

    kind: str
    name: str
    magic: str = ""
    notebook: str = ""
    cell_id: str = ""
    kernel_id: str = ""
    interruptible: bool = True
    """Whether an interrupt of its kernel ends it."""


class Progress:
    """How one draft goes, for those who look at the store."""

    def __init__(self, directory: Path, origin: Origin) -> None:
        self._directory = directory
        self._about = asdict(origin) | {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": time.time(),
            "since_boot": {"boot": _boot(), "at_s": time.monotonic()},
        }

    def tell(self, phase: str, fraction: float | None = None) -> None:
        """Say what is done now, and which part of all is done (0 to 1) where that is known."""
        path = self._directory / PROGRESS_FILE
        temporary = path.with_name(f".{PROGRESS_FILE}.new")
        content = json.dumps(self._about | {"phase": phase, "fraction": fraction})
        # What the server watches; an error also once the draft is published, and its directory gone
        with suppress(OSError), disk.changing(self._directory.parent):
            temporary.write_text(content, "utf-8")
            temporary.replace(path)


@dataclass(frozen=True)
class Running:
    """A measurement that goes on in some living process."""

    id: str
    about: Mapping[str, Any]

    @property
    def kernel_id(self) -> str:
        """The kernel that measures; empty for a process that is none."""
        return str(self.about["kernel_id"])

    def to_json(self, now_s: float) -> dict[str, Any]:
        """Give it for the browser, whose clock may differ: with the seconds since its beginning."""
        private = ("host", "pid", "since")
        elapsed_s = _elapsed_s(self.about, now_s)
        shown = {key: self.about[key] for key in _TYPES if key not in private}
        return {"id": self.id, **shown, "elapsed_s": elapsed_s}


def running(partial: Path) -> list[Running]:
    """Give what is measured now, the oldest first; what a killed process left is none of it."""
    found: list[Running] = []
    with suppress(OSError), os.scandir(partial) as entries:
        for entry in entries:
            if is_id(entry.name) and entry.is_dir(follow_symlinks=False):
                about = _read(Path(entry.path))
                if about is not None and not is_abandoned(entry) and not _has_ended(about):
                    found.append(Running(entry.name, about))
    return sorted(found, key=lambda one: one.id)


def _read(directory: Path) -> dict[str, Any] | None:
    try:
        data: Any = load(disk.read_below(directory, PROGRESS_FILE, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not data.keys() >= _TYPES.keys():
        return None
    if not all(isinstance(data[key], kind) for key, kind in _TYPES.items()):
        return None
    if not all(is_number(data[key]) for key in _NUMBERS if data[key] is not None):
        return None
    return cast("dict[str, Any]", data)


def _elapsed_s(about: Mapping[str, Any], now_s: float) -> float:
    """Give the seconds since it began: on the same machine by a clock that nobody sets."""
    since = about.get("since_boot")
    if isinstance(since, Mapping):
        at_s = cast("Mapping[str, Any]", since).get("at_s")
        if cast("Mapping[str, Any]", since).get("boot") == _boot() != "" and isinstance(at_s, float):
            return max(time.monotonic() - at_s, 0.0)
    return max(now_s - float(about["since"]), 0.0)


@cache
def _boot() -> str:
    """Name this machine since its start, and its clock (a container may have another); empty: unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/time')}"  # noqa: PTH115 (no path: a name in brackets)
    except OSError:
        return ""


def _has_ended(about: Mapping[str, Any]) -> bool:
    """Tell whether its process is known to be gone; a file system without locks can't tell it otherwise."""
    if about["host"] != socket.gethostname() or about["pid"] <= 0:
        return False
    try:
        os.kill(about["pid"], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
