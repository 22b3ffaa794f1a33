"""What stands around a trace: devices, versions, variables, and what of it spoils a trace."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyterlab_jaxprof.environment import own_version, spoilers

if TYPE_CHECKING:
    from jupyterlab_jaxprof.timeline.model import Timeline

_CPU_ONLY = (
    "This trace of a CPU fills only XProf's trace viewer and graph viewer, and says little about a GPU."
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


def notices_before(environ: Mapping[str, str]) -> list[str]:
    """Say what will spoil a trace in this process, going by its environment variables."""
    return [f"{found['what']} {found['remedy']}" for found in spoilers(environ)]


def notices_after(traced_devices: Sequence[Mapping[str, Any]], timeline: Timeline | None) -> list[str]:
    """Say what the user should know when looking at a trace of these devices; without one, what is sure."""
    platforms = {str(device["platform"]) for device in traced_devices}
    if platforms and platforms <= {"cpu"}:
        return [_CPU_ONLY]
    if timeline is None:
        return []
    if not len(timeline.ops):
        return [_NO_DEVICE_EVENTS]
    return [_COMMAND_BUFFERS] if _in_command_buffers(timeline) else []


def _in_command_buffers(timeline: Timeline) -> bool:
    return bool((timeline.ops.graph != 0).any())
