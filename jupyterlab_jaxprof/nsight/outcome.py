"""What came of a run, in words: judged by the files and by what the program told, never by exit statuses.

nsys exits with 0 in many a failure. A status is only used to say how a program ended that told nothing.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from jupyterlab_jaxprof.captures import Status
from jupyterlab_jaxprof.environment.nsys import HOW_TO_GET, Installation
from jupyterlab_jaxprof.environment.versions import numbers
from jupyterlab_jaxprof.tracing import Outcome

from .gather import Gathered
from .memory import Memory
from .progress import Phase
from .ran import Ran

_MOST_WARNINGS = 5
_LITTLE_BYTES = 16 * 1024 * 1024
#: What nsys warns of; of 'Error {' the lines that follow are for its makers, and the report has it in words.
_WARNS = re.compile(r"(warning\b|error\b(?! status))(?!.*\{$)", re.IGNORECASE)
_FULL = re.compile(r"no space left|disk (is )?full|disk quota", re.IGNORECASE)
#: nvtx from 0.2.12 on asks functions of nsys that it has since 2024.
_NVTX_ASKS, _NSYS_ANSWERS = (0, 2, 12), (2024,)


def judge(ran: Ran, gathered: Gathered, installation: Installation, work: Path, memory: Memory) -> Outcome:
    """Give status, reason and notices of a run; a report is there or not as `gathered` has it."""
    outcome = Outcome(notices=list(ran.notices))
    for status, sentence in _troubles(ran, gathered, installation, work):
        outcome.worsen(status, sentence)
    error = ran.error or {}
    said = str((error.get("error") or {}).get("message", ""))
    holders = memory.explains(said + " ".join(ran.said))
    if holders:
        outcome.notices.append(holders)
    outcome.notices += _notices(ran, installation)
    return outcome


def _troubles(
    ran: Ran, gathered: Gathered, installation: Installation, work: Path
) -> Iterator[tuple[Status, str]]:
    """The most telling first."""
    failed, nothing = Status.FAILED, gathered.report is None
    if ran.nsys_failure:
        yield failed, f"{installation.path} does not start: {ran.nsys_failure}. {HOW_TO_GET}"
        return
    if ran.guardian_killed:
        yield failed, "The process that looks after nsys was killed, and nsys was ended with it."
        return
    if ran.timed_out:
        yield failed, _never_started(installation, ran)
        return
    if ran.lingered or ran.cut_short:
        yield _unfinished(ran, gathered, installation)
        return
    if ran.interrupted:
        yield (
            Status.INTERRUPTED,
            f"Interrupted in step {len(ran.durations_ms)} (counted from 0); the report ends there.",
        )
    if ran.hung:
        yield (
            failed,
            f"{installation.path} ({installation.version_text}) did not stop recording within "
            f"{ran.waited_s:.0f} s and was ended. With --sample it hangs so where the system forbids "
            "sampling the CPU.",
        )
    elif ran.stuck:
        yield failed, "The cell ignored the interrupt and was ended; the report holds what nsys had by then."
    yield from _of_program(ran, installation, work)
    if gathered.problem:
        yield failed, gathered.problem
    elif nothing and ran.captured:
        yield failed, _no_report(ran, installation, work)


def _unfinished(ran: Ran, gathered: Gathered, installation: Installation) -> tuple[Status, str]:
    """Say that nsys was ended when its program was gone already, and what is kept."""
    if gathered.report is not None:
        kept = "What it had written of the report is kept"
    elif gathered.stream is not None:
        kept = "What it had recorded is kept as a .qdstrm file, which %jaxprof report and nsys-ui can read"
    else:
        kept = "It had written nothing"
    if ran.cut_short:
        how = "Interrupted when the program had ended and nsys was still at work; nsys was ended"
        return Status.INTERRUPTED, f"{how}. {kept}."
    end = (
        "" if ran.captured else f" {_where(ran)}, and told no end: it was killed, or one of nsys's processes"
    )
    return Status.FAILED, (
        f"The program ended{end}. {installation.path} ({installation.version_text}) went on for "
        f"{ran.waited_s:.0f} s without a word, and was ended. {kept}."
    )


def _of_program(ran: Ran, installation: Installation, work: Path) -> Iterator[tuple[Status, str]]:
    """What the program told, or how it ended without telling."""
    error = ran.error
    if ran.no_nvtx:
        yield (
            Status.FAILED,
            f"nsys did not attach to the program ({ran.no_nvtx}), so nothing was recorded. Its part for the "
            f"program may be missing from {installation.path.parent}: install Nsight Systems anew.",
        )
    elif error is not None and error["stage"] == "set-up":
        yield Status.FAILED, str(error["sentence"])
    elif error is not None and not ran.interrupted:
        said = error["error"]
        text = str(said["message"]).strip().splitlines()
        what = said["type"] + (f": {text[0].rstrip('.')}" if text else "")
        where = {
            "warm-up": " when it ran to warm up, so that nothing was recorded",
            "step": f" in step {error.get('step')} (counted from 0); the report ends there",
            "value": " when its value was shown",
        }.get(error["stage"], "")
        yield Status.FAILED, f"The cell raised {what}{where}."
    elif ran.done is None and not ran.stuck and not ran.interrupted and not ran.hung:
        yield Status.FAILED, _ended_early(ran, installation, work)


def _never_started(installation: Installation, ran: Ran) -> str:
    return (
        f"{installation.path} ({installation.version_text}) did not start the program within "
        f"{ran.waited_s:.0f} s and was ended. With --gpu-metrics it hangs where the GPU gives "
        "none (no permission, or another profiler is running); else try fewer things to record."
        f"{quoted(ran.said)}"
    )


def _ended_early(ran: Ran, installation: Installation, work: Path) -> str:
    """Say why a program that told no end has ended."""
    if ran.phase is Phase.START:
        return _nsys_failed(ran, installation, work)
    where = _where(ran)
    if ran.nsys_status is not None and ran.nsys_status < 0:
        return f"nsys was killed ({_signal(-ran.nsys_status)}) {where}, and the program with it."
    status = ran.nsys_status or 0
    if status in (128 + signal.SIGKILL, 128 + signal.SIGTERM):
        how = f"was killed ({_signal(status - 128)}; for want of memory, maybe)"
    elif status > 128:
        how = f"crashed ({_signal(status - 128)})"
    elif status > 0:
        how = f"ended by itself (os._exit or sys.exit, say; status {status})"
    else:
        return (
            f"The program was heard of no more {where}: it ended itself without an error (os._exit(0), say), "
            "closed the channel to the notebook (os.closerange, say), or a process of nsys was killed."
        )
    return f"The program {how} {where}."


def _where(ran: Ran) -> str:
    """How far the program was."""
    return {
        Phase.START: "before it had started",
        Phase.SET_UP: "while the notebook's variables were made again",
        Phase.WARM_UP: "when the cell ran to warm up",
        Phase.CAPTURE: f"in step {len(ran.durations_ms)} (counted from 0)",
        Phase.IMPORT: "after its last step",
    }[ran.phase]


def _nsys_failed(ran: Ran, installation: Installation, work: Path) -> str:
    said = " ".join(ran.said)
    if ran.nsys_status is not None and ran.nsys_status < 0:
        return f"nsys was killed ({_signal(-ran.nsys_status)}) before it started the program."
    if "gent launcher failed" in said or "gent failed to" in said:
        return (
            "nsys could not start its agent, as happens where its temporary directory "
            f"({work}) forbids programs (noexec) or is full, or /dev/shm has less than a few MB. Set "
            "JAXPROF_DIR to another disk, or give the container more shared memory (--shm-size=1g)."
        )
    if is_full(work, said):
        return FULL_DISK.format(work=work)
    return (
        f"{installation.path} ({installation.version_text}) ended before it started the program."
        f"{quoted(ran.said)} %jaxprof doctor tells what is amiss here."
    )


FULL_DISK = (
    "The disk of {work} is full, and nsys could write no report. Free some space (delete captures, say), or "
    "set JAXPROF_DIR to another directory."
)


def _no_report(ran: Ran, installation: Installation, work: Path) -> str:
    """Say why there is no report of a capture that the program has completed."""
    said = " ".join(ran.said)
    if is_full(work, said):
        return FULL_DISK.format(work=work)
    if ran.nsys_status is not None and ran.nsys_status < 0:
        return f"nsys was killed ({_signal(-ran.nsys_status)}) before it had written the report."
    if not re.search(r"apture range started|[Cc]ollecting", said):
        return (
            f"{installation.path} ({installation.version_text}) never began to record: it did not see the "
            "range at which it should have begun. A program that records NVTX ranges for another tool can be "
            f"in the way.{quoted(ran.said)}"
        )
    return f"{installation.path} ({installation.version_text}) wrote no report.{quoted(ran.said)}"


def nvtx_notices(version: str, installation: Installation) -> list[str]:
    """Say that the ranges of the user's nvtx package (a version, or empty) are lost, where they are."""
    old = bool(installation.version) and installation.version < _NSYS_ANSWERS
    if not version or not old or numbers(version)[:3] < _NVTX_ASKS:
        return []
    return [
        f"The cell's own ranges of the package nvtx ({version}) are not in the report: from 0.2.12 on "
        f"it asks nsys for something that {installation.version_text} lacks, and drops them. Install "
        "nvtx 0.2.11 (pip install 'nvtx<0.2.12'), or nsys 2024 or newer."
    ]


def _notices(ran: Ran, installation: Installation) -> Iterator[str]:
    done = ran.done or {}
    yield from nvtx_notices(str(done.get("nvtx") or ""), installation)
    warnings = [line for line in ran.said if _WARNS.match(line)]
    yield from (f"nsys said: {line[:300]}" for line in dict.fromkeys(warnings[:_MOST_WARNINGS]))
    if ran.left_behind:
        what = "a process" if ran.left_behind == 1 else f"{ran.left_behind} processes"
        yield (
            f"The cell left {what} running; it was ended."
            if ran.left_behind == 1
            else (f"The cell left {what} running; they were ended.")
        )


def is_full(work: Path, said: str) -> bool:
    """Whether the disk of nsys's files is full, or nsys said so."""
    try:
        return bool(_FULL.search(said)) or shutil.disk_usage(work.parent).free < _LITTLE_BYTES
    except OSError:
        return False


def quoted(said: Sequence[str]) -> str:
    """Give the end of what nsys said as a sentence, empty where it said nothing."""
    lines = [line for line in said if not line.startswith(("Generat", "/"))]
    return f" It said: '{' '.join(lines[-3:])[:400]}'." if lines else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
