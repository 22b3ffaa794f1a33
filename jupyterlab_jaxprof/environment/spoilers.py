"""What in this process's variables spoils a trace: told by the doctor, and with every trace taken so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .problem import Remedy, export, problem

_NSIGHT_VARIABLES = re.compile(r"NSYS_\w+|QUADD_\w+|NVTX_INJECTION64_PATH|CUDA_INJECTION64_PATH")
_NSIGHT_LIBRARIES = re.compile(r"nsys|nsight|ToolsInjection", re.IGNORECASE)


def spoilers(environ: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Give what spoils a trace in a process with these variables, each with its remedy."""
    if under_nsight(environ):
        yield problem(
            "This process runs under NVIDIA Nsight, and the GPU's tracing interface (CUPTI) serves one "
            "profiler a process: a trace may lack the GPU's events, or the Nsight report may.",
            Remedy("Start Jupyter, or the kernel, without nsys to take traces of the GPU.", "jupyter lab"),
        )
    for flag in quoted_flags(environ.get("XLA_FLAGS", "")):
        yield problem(
            f"XLA_FLAGS sets {flag} to a pair of quotes, which XLA takes as they are: it is not empty.",
            Remedy(
                f"Write '{flag}=' with nothing after the equals sign, before jax is first imported.",
                export(f"XLA_FLAGS='{flag}='").command,
            ),
        )


def under_nsight(environ: Mapping[str, str]) -> bool:
    """Tell whether nsys or another Nsight tool started this process, going by what they set in it."""
    return any(map(_NSIGHT_VARIABLES.fullmatch, environ)) or bool(
        _NSIGHT_LIBRARIES.search(environ.get("LD_PRELOAD", ""))
    )


def quoted_flags(xla_flags: str) -> list[str]:
    """Name the flags whose value is a pair of quotes; of one that is given twice the last counts."""
    values = {name: value for name, _, value in (flag.partition("=") for flag in xla_flags.split())}
    return [name for name, value in values.items() if value in ("''", '""')]
