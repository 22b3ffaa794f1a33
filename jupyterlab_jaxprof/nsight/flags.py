"""What nsys is told: lean by default, and nothing that the installed version does not know."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from jupyterlab_jaxprof.environment.command import output_once
from jupyterlab_jaxprof.environment.nsys import Installation

from .child import CAPTURE, DOMAIN

#: Ours alone: the capture's beginning, end and place.
_OURS = (
    "output", "force-overwrite", "capture-range", "capture-range-end", "nvtx-capture", "wait", "export",
    "stop-on-exit", "duration", "delay", "session-new", "session", "run-as", "kill", "command-file",
    "start-later", "stats", "help", "show-output", "inherit-environment", "start-frame-index",
    "duration-frames", "hotkey-capture", "env-var", "trace",
)  # fmt: skip
_SHORT = {
    "o": "output", "f": "force-overwrite", "c": "capture-range", "p": "nvtx-capture", "w": "show-output",
    "x": "stop-on-exit", "d": "duration", "y": "delay", "h": "help", "n": "inherit-environment",
    "e": "env-var", "t": "trace", "s": "sample", "b": "backtrace",
}  # fmt: skip
_HELP_TIMEOUT_S = 20


class FlagError(ValueError):
    """A flag that can't be used; the message is a sentence."""


@dataclass(frozen=True)
class Wishes:
    """What the user asked for beside the defaults."""

    osrt: bool = False
    libs: bool = False
    gpu_metrics: bool = False
    sample: bool = False
    trace: str = ""
    raw: str = ""


@dataclass(frozen=True)
class Flags:
    """The arguments of `nsys profile` up to the program, and sentences about them."""

    arguments: tuple[str, ...]
    notices: tuple[str, ...] = field(default_factory=tuple)


def flags(installation: Installation, wishes: Wishes, output: Path) -> Flags:
    """Give the flags of a capture; raises FlagError with a sentence.

    An unknown flag ends nsys at once, so each is looked up in what this nsys says of itself.
    """
    known = known_flags(installation.path, installation.version_text)
    notices: list[str] = []
    raw = _raw(wishes.raw, known, installation)
    chosen: dict[str, str] = {
        "trace": ",".join(_traces(wishes, installation, notices)),
        "sample": "process-tree" if wishes.sample else "none",
        "cpuctxsw": "process-tree" if wishes.sample else "none",
        "cuda-graph-trace": "node",
        "capture-range": "nvtx",
        "nvtx-capture": f"{CAPTURE}@{DOMAIN}",
        "capture-range-end": "stop",
        "wait": "primary",
        "stats": "false",
        "force-overwrite": "true",
        "output": str(output),
    }
    if wishes.osrt or wishes.sample or "osrt" in chosen["trace"]:
        # The symbols of JAX's libraries would make a report of a gigabyte.
        chosen["resolve-symbols"] = "false"
    if wishes.gpu_metrics:
        chosen |= gpu_metrics(known, installation)
    given = {name for name, _ in raw}
    arguments: list[str] = []
    for name, value in chosen.items():
        if name in given:
            continue
        if known and name not in known:
            notices += _missing(name, installation)
            continue
        arguments.append(f"--{name}={value}")
    return Flags((*arguments, *(word for _, word in raw)), tuple(notices))


def _missing(name: str, installation: Installation) -> list[str]:
    if name == "cuda-graph-trace":
        return [
            f"nsys {installation.version_text} knows no --cuda-graph-trace: kernels inside CUDA graphs are "
            "recorded as this version does by itself. --graphs=off runs the cell without graphs."
        ]
    if name in ("capture-range", "nvtx-capture", "capture-range-end", "output", "trace"):
        raise FlagError(
            f"{installation.path} ({installation.version_text}) has no --{name}, which a capture of a cell "
            "needs: install Nsight Systems 2022.4 or newer."
        )
    return []


def _traces(wishes: Wishes, installation: Installation, notices: list[str]) -> list[str]:
    if wishes.trace:
        traces = [part.strip() for part in wishes.trace.split(",") if part.strip()]
        if not traces or not all(re.fullmatch(r"[a-z][\w-]*", part) for part in traces):
            raise FlagError(
                f"--trace takes names as nsys has them, with commas between: cuda,nvtx,osrt; not "
                f"'{wishes.trace}'."
            )
        listed = traceable(installation.path, installation.version_text, "profile")
        for name in traces:
            if listed and name not in listed:
                raise cant_trace(name, listed, installation)
    else:
        traces = ["cuda", "nvtx"]
    if "none" in traces:
        raise FlagError("--trace=none would record nothing.")
    traces += ["osrt"] * (wishes.osrt and "osrt" not in traces)
    traces += [name for name in ("cudnn", "cublas") if wishes.libs and name not in traces]
    if "nvtx" not in traces:
        traces.append("nvtx")
        notices.append("nvtx was added to --trace: the capture begins at a range of NVTX.")
    return traces


def gpu_metrics(known: Mapping[str, str], installation: Installation) -> dict[str, str]:
    """Give the flag for a GPU's counters as this nsys has it; raises FlagError where it has none."""
    if "gpu-metrics-devices" in known or not known:
        return {"gpu-metrics-devices": "cuda-visible"}
    if "gpu-metrics-device" in known:
        return {"gpu-metrics-device": "all"}
    raise FlagError(f"{installation.path} ({installation.version_text}) takes no GPU metrics.")


def _raw(text: str, known: Mapping[str, str], installation: Installation) -> list[tuple[str, str]]:
    """Split raw flags into words (no shell is asked) and look at each; gives name and word."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise FlagError(f"--nsys holds a quote that is never closed: {text} ({error}).") from None
    found: list[tuple[str, str]] = []
    while words:
        word = words.pop(0)
        match = re.fullmatch(r"--([a-z][\w-]*)(=.*)?", word, re.DOTALL)
        short = re.fullmatch(r"-([a-z])", word)
        if match is None and short is None:
            raise FlagError(
                f"--nsys takes flags of 'nsys profile', and '{word}' is none. Write values with an equals "
                "sign: --nsys '--cuda-memory-usage=true'."
            )
        name = match.group(1) if match else _SHORT.get(word[1], word[1])
        _check(name, word, known, installation)
        if match is None or match.group(2) is None:
            if not words or words[0].startswith("-"):
                raise FlagError(f"--nsys: {word} has no value. Write it as {word}=VALUE.")
            word = f"--{name}={words.pop(0)}"
        found.append((name, word))
    return found


def _check(name: str, word: str, known: Mapping[str, str], installation: Installation) -> None:
    if name in _OURS:
        instead = " There is --trace for it." if name == "trace" else ""
        raise FlagError(f"--nsys can't take {word}: %%nsys itself decides that.{instead}")
    if known and name not in known:
        close = get_close_matches(name, known, n=1, cutoff=0.6)
        meant = f" Did you mean --{close[0]}?" if close else ""
        raise FlagError(
            f"nsys {installation.version_text or installation.path} knows no flag {word.partition('=')[0]}."
            f"{meant} 'nsys profile --help' lists them."
        )


def failure_of(installation: Installation) -> str:
    """Say why an nsys does not even tell its flags; empty where it does, in whatever form."""
    said, failure = _help(installation.path, installation.version_text, "profile")
    return "" if said or failure is None else failure


def known_flags(path: Path, version: str, command: str = "profile") -> Mapping[str, str]:
    """Read the flags that a command of an nsys says it has; empty where it says nothing. Asked once."""
    said, _ = _help(path, version, command)
    return {
        match.group(1): match.group(0).strip()
        for match in re.finditer(r"^\s+(?:-\w, )?--([a-z][\w-]*)[=\s[<]?", said, re.MULTILINE)
    }


def traceable(path: Path, version: str, command: str) -> frozenset[str]:
    """Read what a command of an nsys says that it can trace; empty where it does not say."""
    said, _ = _help(path, version, command)
    part = re.search(r"--trace=\s*\n(.*?)\n\s*\n\s+-", said, re.DOTALL)
    values = re.search(r"values are(.*?)\.\s", part.group(1), re.DOTALL) if part else None
    return frozenset(re.findall(r"'([a-z][\w-]*)'", values.group(1))) if values else frozenset()


def cant_trace(name: str, known: frozenset[str], installation: Installation) -> FlagError:
    """Make the error for something that an nsys can't trace; `known` is what it can."""
    others = f"; it can trace {', '.join(sorted(known - {'none'}))}." if known else "."
    return FlagError(f"nsys {installation.version_text} can't trace '{name}'{others}")


def _help(path: Path, version: str, command: str) -> tuple[str, str | None]:
    """Ask for it; gives what it says, and why it failed."""
    return output_once(str(path), command, "--help", state=version, timeout_s=_HELP_TIMEOUT_S)
