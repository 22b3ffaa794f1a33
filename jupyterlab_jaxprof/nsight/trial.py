"""Whether an nsys records here: a capture of nothing, made once for each nsys and each set of flags.

It finds in seconds what would cost a whole run of the cell: an nsys that hangs before it starts a program or
when it should stop, that records no ranges, or that leaves no report. What came of it is kept in the store.
"""

from __future__ import annotations

import base64
import hashlib
import json
import marshal
import math
import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.captures import disk
from jupyterlab_jaxprof.environment import nsys
from jupyterlab_jaxprof.environment.command import KILLED
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.environment.temporary import TemporaryDirectory

from .flags import Wishes, failure_of, flags
from .gather import gather
from .memory import Memory
from .outcome import judge
from .progress import Phase, Watcher
from .ran import Ran
from .session import Limits, Session
from .surroundings import environments

FILE = "nsys-trials.json"
#: A second or two are usual; a loaded machine takes ten times as long.
START_S, STOP_S = 60.0, 30.0
#: A failure counts for so long: what hinders nsys (a permission, another profiler) may go away.
FAILED_S = 3600.0
_MOST_KEPT = 100
_VERDICT: Mapping[str, type | tuple[type, ...]] = {
    "records": bool,
    "reports": bool,
    "reason": str,
    "tried": (int, float),
}
#: Whether the system lets anyone sample the CPU hangs on it.
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_SPEC: Mapping[str, Any] = {
    "carried": "",
    "codes": base64.b64encode(marshal.dumps([])).decode(),
    "filename": "<trial>",
    "text": "",
    "steps": 1,
    "warm_up": False,
    "environment": {},
    "unset": [],
    "inline": {},
    "jax_cache": "",
    "gpus": False,
    "return": [],
    "back": "",
}


@dataclass(frozen=True)
class Verdict:
    """What came of a trial. `reason` is a sentence, empty where all is well; `tried` is seconds since 1970.

    One that records but has no importer leaves a stream, and no report.
    """

    records: bool
    reports: bool
    reason: str
    tried: float


def tried(
    installation: Installation, wishes: Wishes, store_root: Path, watcher: Watcher, *, anew: bool = False
) -> Verdict:
    """Give what is known of an nsys with these wishes, or try it.

    Raises FlagError, OSError, and KeyboardInterrupt when the user ended the trial.
    """
    path, key = store_root / FILE, _key(installation, wishes)
    known = _known(path).get(key)
    # a moment that is yet to come is of a clock that was set since
    if known is not None and not anew and (known.records or 0 <= time.time() - known.tried < FAILED_S):
        return known
    version = installation.version_text or installation.path
    failure = failure_of(installation)
    if failure:
        reason = (
            f"{installation.path} ({version}) was asked for its options (nsys profile --help): {failure}."
        )
        verdict = Verdict(records=False, reports=False, reason=reason, tried=time.time())
        if not failure.startswith(KILLED):
            _keep(path, key, verdict)
        return verdict
    watcher.tell(f"Trying nsys {version} (once for each set of options)")
    verdict = _try(installation, wishes, watcher)
    _keep(path, key, verdict)
    return verdict


def forget(installation: Installation, wishes: Wishes, store_root: Path) -> None:
    """Have an nsys tried again next time, since it has failed all the same."""
    _keep(store_root / FILE, _key(installation, wishes), None)


def _key(installation: Installation, wishes: Wishes) -> str:
    """Tell apart all that a trial hangs on."""
    status = installation.path.stat()
    paranoid = _PARANOID.read_text() if _PARANOID.exists() else ""
    given = flags(installation, wishes, Path("report")).arguments
    said = [str(installation.path), status.st_mtime_ns, status.st_size, given, paranoid, platform.node()]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _try(installation: Installation, wishes: Wishes, watcher: Watcher) -> Verdict:
    """Try it; once more where that failed at once.

    On a busy machine nsys 2022 may end ('End of file') before it starts anything, and what was killed tells
    nothing of an nsys that would be believed for an hour.
    """
    verdict, ran = _tried_once(installation, wishes, watcher)
    if not verdict.records and not (ran.timed_out or ran.hung or ran.lingered):
        verdict, _ = _tried_once(installation, wishes, watcher)
    return verdict


def _tried_once(installation: Installation, wishes: Wishes, watcher: Watcher) -> tuple[Verdict, Ran]:
    with TemporaryDirectory() as temporary:
        work = temporary.path
        ran = _run(installation, wishes, work, watcher)
        if ran.interrupted:
            raise KeyboardInterrupt
        gathered = gather((work,), work / "report", installation, nsys.installations())
        outcome = judge(ran, gathered, installation, work, Memory())
        records = ran.captured and (gathered.report or gathered.stream) is not None
        return Verdict(records, gathered.report is not None, outcome.reason, time.time()), ran


def _run(installation: Installation, wishes: Wishes, work: Path, watcher: Watcher) -> Ran:
    command = [str(installation.path), "profile", *flags(installation, wishes, work / "report").arguments]
    first, _ = environments(os.environ, graphs=True)
    session = Session(_Quiet(watcher), Limits(START_S, STOP_S, is_wanted=False))
    return session.run(command, _SPEC, first | {"TMPDIR": str(work)}, work, work)


class _Quiet:
    """Lets time pass, and tells nothing of a trial's phases."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def beat(self) -> None:
        self._watcher.beat()

    def enter(self, phase: Phase, doing: str) -> None:
        self._watcher.beat()

    def tell(self, doing: str, part: float | None = None) -> None:
        self._watcher.beat()

    def write(self, stream: str, text: str) -> None:
        """Take what the empty program prints: a warning of Python's, at most."""

    def publish(self, shown: Mapping[str, Any]) -> None:
        """Take nothing: the program displays nothing."""

    def clear(self, *, wait: bool) -> None:
        """Take nothing, as above."""


def _said(path: Path) -> dict[str, Any]:
    """Give all that the file says, what other versions have written there too."""
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):  # none yet, or damaged
        return {}
    return said if isinstance(said, dict) else {}


def _known(path: Path) -> dict[str, Verdict]:
    """Give the verdicts in the file that this version can read."""
    verdicts = ((key, _verdict(value)) for key, value in _said(path).items())
    return {key: verdict for key, verdict in verdicts if verdict is not None}


def _verdict(said: object) -> Verdict | None:
    """Read one verdict; None where it is none, or of another version that tells it otherwise."""
    try:
        known: dict[str, Any] = {key: said[key] for key in _VERDICT}  # type: ignore[index]
    except (TypeError, KeyError, IndexError):
        return None
    fits = all(isinstance(known[key], kind) for key, kind in _VERDICT.items())
    fits = fits and math.isfinite(known["tried"])
    return Verdict(**known) if fits else None


def _keep(path: Path, key: str, verdict: Verdict | None) -> None:
    """Keep what came of a trial; on a disk that refuses it, it is tried each time.

    What another version has written stays: it may be of use to that.
    """
    with suppress(OSError):
        disk.make_private(path.parent)  # the first cell of all has no store yet
        with disk.locked(path.with_name("lock")):
            said = _said(path)
            said.pop(key, None)
            if verdict is not None:
                said[key] = asdict(verdict)
            ours = [each for each, value in said.items() if _verdict(value) is not None]
            for oldest in ours[:-_MOST_KEPT]:
                del said[oldest]
            disk.write_atomically(path, json.dumps(said).encode())
