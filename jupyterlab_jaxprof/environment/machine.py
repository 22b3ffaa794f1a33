"""Tools, GPUs and permissions of this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import nsys
from .command import is_count, output_of
from .problem import pip_install, problem
from .versions import XPROF_REQUIREMENT, version_of

_GPU_FIELDS = ("index", "name", "memory.total", "driver_version", "mig.mode.current")
_CAP_SYS_ADMIN = 1 << 21
_CUPTI_WHEELS = ("nvidia-cuda-cupti-cu12", "nvidia-cuda-cupti", "nvidia-cuda-cupti-cu13")
_CUPTI_PLACES = ("usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*", "usr/lib/*-linux-gnu/libcupti.so*")
_CUDA_LIBRARIES = ("libcupti.so*", "libcudart.so*", "libcublas.so*", "libcudnn.so*")
_PROFILERS = ("ncu", "nv-nsight-cu-cli", "nv-hostengine")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def _script(name: str) -> str | None:
    """Find a command of this Python's environment, whether or not that is on the PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else shutil.which(name)


def tools() -> dict[str, dict[str, Any] | None]:
    """Give {path, version} of each tool that profiling uses; None where it is not found."""
    found: dict[str, dict[str, Any] | None] = {"nsys": _nsys()}
    for name, path in (("nvidia-smi", shutil.which("nvidia-smi")), ("xprof", _script("xprof"))):
        found[name] = {"path": path, "version": None} if path else None
    return found


def _nsys() -> dict[str, Any] | None:
    """Describe the nsys that is used; `broken` are sentences on others that do not run."""
    found = nsys.installations()
    if not found:
        return None
    best, *others = found
    broken = [one.problem for one in others if not one.usable]
    return {
        "path": str(best.path),
        "version": best.version_text or None,
        "failure": best.failure or None,
    } | ({"broken": broken} if broken else {})


def xprof_problem() -> dict[str, Any] | None:
    """Try XProf's modules in a process of their own (half a second): a clash with protobuf shows there."""
    program = "import xprof.server, xprof.profile_plugin_loader, xprof.convert.raw_to_tool_data"
    failure = output_of(sys.executable, "-c", program)[1] if version_of("xprof") else None
    if failure is None:
        return None
    return problem(
        f"XProf is installed but does not start: {failure}.",
        pip_install(f"--upgrade --force-reinstall '{XPROF_REQUIREMENT}' protobuf", "Jupyter"),
        needed=True,
    )


def gpus() -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """Ask nvidia-smi for the GPUs; returns None without one, and problems where it is there but fails."""
    if shutil.which("nvidia-smi") is None:
        return None, []
    said, failure = output_of(
        "nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"
    )
    if failure is not None:
        what = f"nvidia-smi does not work here: {failure}."
        remedy = "Check the NVIDIA driver, and that a container was started with the GPUs (--gpus all)."
        return None, [problem(what, remedy)]
    found: list[dict[str, Any]] = []
    for line in said.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(_GPU_FIELDS):
            index, name, memory, driver, mig = values
            total = int(memory) * 2**20 if is_count(memory) else None  # a MIG device may tell '[N/A]'
            found.append({
                "index": index, "name": name, "memory_bytes": total, "driver": driver, "mig": mig == "Enabled"
            })  # fmt: skip
    return found, []


def permissions() -> dict[str, Any]:
    """Read what decides whether a profiler may look: None where this system does not say."""
    profiling = re.search(r"RmProfilingAdminOnly:\s*(\d)", _read("/proc/driver/nvidia/params"))
    capabilities = re.search(r"CapEff:\s*([0-9a-f]+)", _read("/proc/self/status"))
    paranoid = _read("/proc/sys/kernel/perf_event_paranoid").strip()
    temporary = os.environ.get("TMPDIR") or "/tmp"
    return {
        "gpu_profiling_admin_only": profiling.group(1) == "1" if profiling else None,
        "sys_admin": bool(int(capabilities.group(1), 16) & _CAP_SYS_ADMIN) if capabilities else None,
        "perf_event_paranoid": int(paranoid) if is_count(paranoid.removeprefix("-")) else None,
        "shm_bytes": _shm_bytes(),
        "temporary_directory": temporary,
        "temporary_noexec": _is_noexec(temporary),
        "temporary_writable": os.access(temporary, os.W_OK | os.X_OK),
        "temporary_free_bytes": _free_bytes(temporary),
        "gpu_devices_refused": [
            path
            for path in map(str, Path("/dev").glob("nvidia[0-9]*"))
            if not os.access(path, os.R_OK | os.W_OK)
        ],
    }


def libraries(environ: Mapping[str, str]) -> dict[str, Any]:
    """Look for CUPTI and for CUDA libraries that would come before JAX's own.

    `wheel`: whether CUPTI came with JAX; `cupti`: where it is at all; `before_wheel`: in LD_LIBRARY_PATH.
    """
    wheel = any(version_of(name) for name in _CUPTI_WHEELS)
    directories = [Path(part) for part in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
    before = [
        str(path) for place in directories for name in _CUDA_LIBRARIES for path in sorted(place.glob(name))
    ]
    system = [str(path) for place in _CUPTI_PLACES for path in Path("/").glob(place)]
    cupti = [path for path in (*before, *system) if "libcupti" in path]
    return {"wheel": wheel, "cupti": wheel or bool(cupti), "before_wheel": before}


def profilers() -> list[dict[str, Any]]:
    """Find programs that hold a GPU's counters or clocks: {name, pid}, of any user."""
    found: list[dict[str, Any]] = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        name = _read(str(path)).strip()
        if name in _PROFILERS:
            found.append({"name": name, "pid": int(path.parent.name)})
    return found


def proxies(environ: Mapping[str, str]) -> dict[str, Any]:
    """Name the proxies that are set (addresses may hold passwords), and whether this machine is excepted."""
    named = {name.lower(): name for name in environ if environ[name].strip()}
    said = environ.get(named.get("no_proxy", ""), "").lower()
    excepted = {part.strip().lstrip(".") for part in said.split(",")}
    return {
        "set": [named[name] for name in _PROXIES if name in named],
        "excepts_this_machine": "*" in excepted or {"localhost", "127.0.0.1"} <= excepted,
    }


def clock() -> dict[str, float]:
    """Give the time, and the time at which this file was installed, in seconds since 1970."""
    return {"now_s": time.time(), "installed_s": Path(__file__).stat().st_ctime}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _shm_bytes() -> int | None:
    return _free_bytes("/dev/shm")


def _free_bytes(directory: str) -> int | None:
    try:
        status = os.statvfs(directory)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def _is_noexec(directory: str) -> bool | None:
    flag = getattr(os, "ST_NOEXEC", None)
    try:
        return bool(os.statvfs(directory).f_flag & flag) if flag is not None else None
    except OSError:
        return None
