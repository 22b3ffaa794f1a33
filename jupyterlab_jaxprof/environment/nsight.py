"""What is known to go wrong with Nsight Systems; all of it concerns `%%nsys` alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from . import nsys
from .problem import Check, Found, Problem, Remedy, export, note, pip_install, run
from .versions import numbers, satisfies

_note = partial(note, "Nsight Systems")
_SHM_NEEDED_BYTES = 64 * 1024 * 1024
_TEMPORARY_NEEDED_BYTES = 1024**3
#: The Nsight Systems that comes with CUDA 13.0.
_FOR_CUDA_13 = (2025, 3)
_INSTALL = Remedy(nsys.HOW_TO_GET, "apt-get install nsight-systems")
_AGAIN = Remedy("Install Nsight Systems again.", "apt-get install --reinstall nsight-systems")


def _missing(found: Found) -> Iterator[Problem]:
    if found["tools"].get("nsys") is None:
        yield _note(
            "nsys is not found, neither on the PATH nor where NVIDIA's installers put it.",
            Remedy(f"Traces work without it. {_INSTALL.sentence}", _INSTALL.command),
        )


def _does_not_run(found: Found) -> Iterator[Problem]:
    tool = found["tools"].get("nsys")
    if tool:
        failures = [f"{tool['path']} does not run: {tool['failure']}."] if tool.get("failure") else []
        for what in (*failures, *tool.get("broken", ())):
            yield _note(what, _AGAIN)


def _too_old(found: Found) -> Iterator[Problem]:
    tool, have = found["tools"].get("nsys"), found["versions"]
    version = numbers((tool or {}).get("version") or "")[:2]
    if tool and version and version < _FOR_CUDA_13 and found["gpus"] and have.get("jax-cuda13-plugin"):
        yield _note(
            f"nsys {tool['version']} is older than CUDA 13, which JAX uses here: it may see no GPU events.",
            Remedy("Install Nsight Systems 2025.3 or later.", _INSTALL.command),
        )


def _drops_ranges(found: Found) -> Iterator[Problem]:
    tool, nvtx = found["tools"].get("nsys"), found["versions"].get("nvtx")
    year = numbers((tool or {}).get("version") or "")[:1]
    if tool and year and year < (2024,) and nvtx and satisfies(nvtx, ">=0.2.12"):
        # It asks the tool for nvtxDomainIsEnabled: seen with nsys 2022.4 and 2023.4, not with 2025.3.
        yield _note(
            f"nsys {tool['version']} drops every range of nvtx {nvtx} without a word: it lacks a call that "
            "nvtx makes since 0.2.12.",
            pip_install(
                "'nvtx<0.2.12'",
                "the kernel",
                first="Install Nsight Systems 2025.3 or later, or an older nvtx.",
            ),
        )


def _importer(found: Found) -> Iterator[Problem]:
    tool = found["tools"].get("nsys")
    importer, _imports, what = nsys.find_importer(Path(tool["path"])) if tool else (None, True, "")
    if not what:
        return
    remedy = Remedy("Install Nsight Systems from NVIDIA's repository, complete with its host part.")
    if "libdw" in what:
        remedy = Remedy(
            "Install the packages libdw1 and libelf1 (Debian and Ubuntu), or elfutils-libs (Red Hat).",
            "apt-get install libdw1 libelf1",
        )
    elif importer is not None:
        remedy = run(
            f"{importer} -i FILE.qdstrm -o FILE.nsys-rep",
            first="%%nsys runs it by itself. This is for what nsys records without it.",
        )
    yield _note(what, remedy)


def _temporary_files(found: Found) -> Iterator[Problem]:
    have = found["permissions"]
    if found["tools"].get("nsys") is None:
        return
    directory = have["temporary_directory"]
    elsewhere = export("TMPDIR=$HOME/tmp", first="Take a directory on another file system.")
    if have["temporary_noexec"]:
        yield _note(f"{directory} is mounted noexec: nsys can't start its agent from there.", elsewhere)
    free_bytes = have.get("temporary_free_bytes")
    if free_bytes is not None and free_bytes < _TEMPORARY_NEEDED_BYTES:
        yield _note(f"{directory} has only {free_bytes // 2**20} MiB free, where nsys records.", elsewhere)


def _shared_memory(found: Found) -> Iterator[Problem]:
    free_bytes = found["permissions"]["shm_bytes"]
    if found["tools"].get("nsys") and free_bytes is not None and free_bytes < _SHM_NEEDED_BYTES:
        yield _note(
            f"/dev/shm has only {free_bytes // 2**20} MiB free: nsys may fail to start its agent.",
            run(
                "sudo mount -o remount,size=1G /dev/shm",
                first="Start the container with a larger one (--shm-size=1g).",
            ),
        )


def _counters_held(found: Found) -> Iterator[Problem]:
    for one in found.get("profilers", ()):
        if one["name"] == "nv-hostengine":
            yield _note(
                f"NVIDIA's DCGM runs here (nv-hostengine, process {one['pid']}). While it takes profiling "
                "metrics it holds the GPU's counters, and nsys can't sample them.",
                run(
                    "dcgmi profile --pause",
                    "dcgmi profile --resume afterwards",
                    first="The administrator can pause it.",
                ),
            )


def _cpu_samples(found: Found) -> Iterator[Problem]:
    level = found["permissions"].get("perf_event_paranoid")
    if (
        found["tools"].get("nsys")
        and level is not None
        and level > 2
        and not found["permissions"]["sys_admin"]
    ):
        yield _note(
            f"perf_event_paranoid is {level}: nsys can't sample what the CPU does, and records all else.",
            run("sudo sysctl -w kernel.perf_event_paranoid=2"),
        )


CHECKS = (
    Check("nsys-missing", "no Nsight Systems", _missing),
    Check("nsys-broken", "an nsys that does not run", _does_not_run),
    Check("nsys-too-old", "an nsys older than the CUDA in use", _too_old),
    Check("nsys-drops-ranges", "an nsys that loses the ranges of a newer nvtx", _drops_ranges),
    Check("nsys-importer", "an nsys without what makes its reports", _importer),
    Check("temporary-files", "a temporary directory that is noexec or too small for nsys", _temporary_files),
    Check("shared-memory", "a /dev/shm too small for nsys", _shared_memory),
    Check("counters-held", "DCGM, which may hold the GPU's counters", _counters_held),
    Check("cpu-samples", "a kernel that lets no one sample the CPU", _cpu_samples),
)
