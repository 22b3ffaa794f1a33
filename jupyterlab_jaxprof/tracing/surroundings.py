"""What stands around a trace: devices, versions, variables, and what of it spoils a trace."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

from .contents import TraceContents

_NSYS_PREFIXES = ("NSYS_", "QUADD_")
_NSYS_VARIABLES = ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH")
_COMMAND_BUFFER_FLAG = "--xla_gpu_enable_command_buffer="

_UNDER_NSYS = (
    "This kernel runs under Nsight Systems, and the GPU's tracing interface (CUPTI) serves one profiler a "
    "process: this trace may lack the GPU's events, or the Nsight report may. Start the kernel without "
    "nsys to trace it."
)
_CPU_ONLY = (
    "This trace is of a CPU: XProf's trace viewer and graph viewer show it, its other tools (overview, HLO "
    "statistics, roofline, memory) are made for GPUs and TPUs and stay mostly empty. What is slow on a CPU "
    "says little about a GPU."
)
_NO_DEVICE_EVENTS = (
    "The trace holds no events of the GPU. If the cell ran something on it: another profiler (nsys, "
    "another trace) may hold the GPU's tracing interface, or the driver may refuse it (%jaxprof doctor "
    "tells)."
)
_COMMAND_BUFFERS = (
    "GPU kernels ran inside command buffers (CUDA graphs), where XProf's HLO tools can't tell which "
    "operation a kernel belongs to. To see that, restart the kernel and put os.environ['XLA_FLAGS'] = "
    "'--xla_gpu_enable_command_buffer=' before the first import of jax (nothing after the equals sign, no "
    "quotes either); it costs some speed."
)
_QUOTED_FLAG = (
    "XLA_FLAGS sets --xla_gpu_enable_command_buffer to a pair of quotes, which XLA takes as they are: it "
    "is not empty. Write '--xla_gpu_enable_command_buffer=' with nothing after the equals sign, before jax "
    "is first imported."
)


def devices() -> list[dict[str, Any]]:
    """Describe every device of this process: `id`, `platform` (cpu, gpu, ...), `kind`, `process_index`."""
    import jax

    return [
        {
            "id": device.id,
            "platform": device.platform,
            "kind": device.device_kind,
            "process_index": device.process_index,
        }
        for device in jax.local_devices()
    ]


def trace_environment() -> dict[str, Any]:
    """Give a record's `environment` for a capture taken in this process."""
    import jax
    from jaxlib import version as jaxlib_version

    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib_version.__version__,
        "platform": platform.platform(),
        "devices": devices(),
        "host": socket.gethostname(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "jaxprof": own_version(),
    }


def own_version() -> str:
    """Give this package's version; empty when it runs from a source tree."""
    try:
        return metadata.version("jupyterlab-jaxprof")
    except metadata.PackageNotFoundError:
        return ""


def notices_before(environ: Mapping[str, str]) -> list[str]:
    """Say what will spoil a trace in this process, going by its environment variables."""
    notices: list[str] = []
    if any(name.startswith(_NSYS_PREFIXES) or name in _NSYS_VARIABLES for name in environ):
        notices.append(_UNDER_NSYS)
    value = _flag(environ.get("XLA_FLAGS", ""), _COMMAND_BUFFER_FLAG)
    if value in ("''", '""'):
        notices.append(_QUOTED_FLAG)
    return notices


def _flag(flags: str, name: str) -> str | None:
    values = [flag.removeprefix(name) for flag in flags.split() if flag.startswith(name)]
    return values[-1] if values else None


def notices_after(
    traced_devices: Sequence[Mapping[str, Any]], contents: Iterable[TraceContents]
) -> list[str]:
    """Say what the user should know when looking at a trace of these devices."""
    read = [one for one in contents if one.was_read]
    platforms = {str(device["platform"]) for device in traced_devices}
    if platforms and platforms <= {"cpu"}:
        return [_CPU_ONLY]
    notices: list[str] = []
    if read and not any(one.device_events for one in read):
        notices.append(_NO_DEVICE_EVENTS)
    if any(one.events_in_command_buffers for one in read):
        notices.append(_COMMAND_BUFFERS)
    return notices
