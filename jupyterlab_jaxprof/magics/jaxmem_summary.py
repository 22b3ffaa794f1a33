"""Memory as the summary of a record: the devices, the arrays, the variables, and what to say of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.timing.memory import DeviceMemory, MemoryReport
from jupyterlab_jaxprof.timing.variables import NAMES, VARIABLES

from .jaxtime_summary import memory_of

#: What JAX does where a variable is not set.
_DEFAULTS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.75",
    "XLA_PYTHON_CLIENT_ALLOCATOR": "default, a pool of JAX's own",
}


def summary_of(report: MemoryReport | None, process_bytes: int | None) -> dict[str, Any]:
    """Give the summary of a capture of kind `memory`; captures/shapes.py has its keys.

    `report` is None where JAX has not started any device.
    """
    devices = [device for device in report.after if device.known] if report is not None else []
    sentence, headline = _now(report, devices, process_bytes)
    return {
        "headline": headline,
        "wall_ms": None,
        "steps": None,
        "sentence": sentence,
        "memory": None if report is None else memory_of(report.to_dict()),
        "process_bytes": process_bytes,
        "remarks": _remarks(report, devices),
        "variables": _variables(),
    }


def _now(
    report: MemoryReport | None, devices: Sequence[DeviceMemory], process_bytes: int | None
) -> tuple[str, dict[str, Any] | None]:
    """Say in a sentence how it stands, and give the one figure for a list."""
    process = (
        f"the process takes {units.size(process_bytes)} of the machine's memory" if process_bytes else ""
    )
    if report is None:
        told = (
            "JAX has not started its devices in this kernel: nothing is reserved yet"
            if _has_jax()
            else "JAX is not installed in this kernel's environment"
        )
        return f"{told}; {process}." if process else f"{told}.", None
    arrays = f"{units.count(report.arrays_count, 'array')} take {units.size(report.arrays_bytes)}"
    arrays = arrays.replace("array take", "array takes")
    if not devices:
        headline = {"label": "arrays", "value": report.arrays_bytes, "unit": "bytes"}
        return f"{arrays}; {process}." if process else f"{arrays}.", headline
    fullest = max(devices, key=lambda device: device.in_use_bytes or 0)
    told = f"{fullest.device} has {units.size(fullest.in_use_bytes)} in use"
    told += f" of {units.size(fullest.limit_bytes)}" if fullest.limit_bytes else ""
    told += f", at most {units.size(fullest.peak_bytes)} so far" if fullest.peak_bytes else ""
    if len(devices) > 1:
        told = f"The fullest of {len(devices)} devices, {told}"
    headline = {"label": "in use", "value": fullest.in_use_bytes, "unit": "bytes"}
    return f"{told}; {arrays}.", headline


def _remarks(report: MemoryReport | None, devices: Sequence[DeviceMemory]) -> list[str]:
    if report is None and not _has_jax():
        return [
            f"No module called jax is found by {sys.executable}. Install it there "
            "(https://docs.jax.dev/en/latest/installation.html), then restart the kernel."
        ]
    if report is None:
        return [
            "JAX reads the variables below at its first operation. Until then they can be set: "
            "os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false', for example."
        ]
    if not devices:
        return ["The variables below bear on GPUs; a CPU's memory is the process's."]
    read = VARIABLES.read() or {}
    late = "JAX read the variables below when it started: setting one now does nothing until a restart."
    if read.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower() == "platform":
        return ["JAX asks the driver for each array (XLA_PYTHON_CLIENT_ALLOCATOR=platform).", late]
    largest = max(devices, key=lambda device: device.limit_bytes or 0)
    if read.get("XLA_PYTHON_CLIENT_PREALLOCATE", "").lower() in ("0", "false"):
        taken = "JAX takes a GPU's memory from the driver as it needs more, and gives none back"
    else:
        share = read.get("XLA_CLIENT_MEM_FRACTION") or read.get("XLA_PYTHON_CLIENT_MEM_FRACTION")
        part = f"a fraction of {share}" if share else "75 %"
        taken = f"JAX takes {part} of a GPU's memory from the driver when it starts, and hands it out itself"
    reserved = largest.pool_bytes or largest.limit_bytes
    return [
        f"Why nvidia-smi shows more: {taken}. It shows what is reserved ({units.size(reserved)} on "
        f"{largest.device}), not what is in use ({units.size(largest.in_use_bytes)}). Arrays that are "
        "deleted make room for others here, and none that another process could have.",
        late,
    ]


def _has_jax() -> bool:
    """Whether JAX could be imported, as far as that can be told without doing it."""
    return "jax" in sys.modules or find_spec("jax") is not None


def _variables() -> list[dict[str, Any]]:
    state = VARIABLES.to_dict()
    now: dict[str, str] = state["set"]
    late: dict[str, list[str | None]] = state["late"]
    return [
        {
            "name": name,
            "value": now.get(name) or (f"not set ({_DEFAULTS[name]})" if name in _DEFAULTS else "not set"),
            "read": (late[name][0] if name in late else now.get(name)) or "",
            "late": name in late,
        }
        for name in NAMES
        if name in now or name in late or name in _DEFAULTS
    ]
