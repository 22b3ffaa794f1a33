"""What is known to go wrong with what is installed and set, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import nsys
from .problem import note, pip_install, problem
from .versions import XPROF_REQUIREMENT, XPROF_SPECIFIERS, XPROF_TESTED, numbers, satisfies

NEEDED = ("jax", "jaxlib", "xprof", "ipython")
_NSIGHT = "Nsight Systems"
_SHM_NEEDED_BYTES = 64 * 1024 * 1024


def problems(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give what is known to go wrong with what was found, each with its remedy."""
    checks = (_packages, _gpu_plugin, _variable_problems, _nsight, _permission_problems)
    return [one for check in checks for one in check(found)]


def _packages(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str | None] = found["versions"]
    for name in NEEDED:
        if have.get(name) is None:
            wanted = f"'{XPROF_REQUIREMENT}'" if name == "xprof" else name
            remedy = pip_install(wanted, "the kernel")
            yield problem(f"{name} is not installed in this environment.", remedy, needed=True)
    xprof = have.get("xprof")
    if xprof and not satisfies(xprof, XPROF_SPECIFIERS):
        yield problem(
            f"XProf {xprof} is installed; the viewer here is made for {XPROF_TESTED}, whose inner parts it "
            "uses.",
            pip_install(f"'{XPROF_REQUIREMENT}'", "Jupyter"),
            needed=True,
        )


def _gpu_plugin(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str | None] = found["versions"]
    plugins = {name: have[name] for name in have if name.startswith("jax-cuda") and have[name]}
    if found["gpus"] and not plugins and have.get("jax"):
        yield problem(
            "There is an NVIDIA GPU, but JAX has no CUDA plugin, so it computes on the CPU.",
            pip_install("--upgrade 'jax[cuda13]' (with an older driver 'jax[cuda12]')", "the kernel"),
        )
    for name, version in plugins.items():
        if version != have.get("jaxlib"):
            yield problem(
                f"{name} {version} does not belong to jaxlib {have.get('jaxlib')}: JAX will not load it.",
                pip_install(f"'{name}=={have.get('jaxlib')}'", "the kernel"),
                needed=True,
            )
    if not found["gpus"]:
        yield problem(
            "No NVIDIA GPU is seen here: JAX computes on the CPU.",
            "Everything works, but a CPU's profile misleads about a GPU, where launches, copies and kernels "
            "cost differently. Measure on the machine that you want to make faster.",
        )


def _variable_problems(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str] = found["variables"]
    if {"XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"} <= set(have):
        yield problem(
            "XLA_PYTHON_CLIENT_MEM_FRACTION and XLA_CLIENT_MEM_FRACTION are both set: jaxlib refuses that.",
            "Unset one of them, then restart the kernel.",
            needed=True,
        )
    platforms = [name.strip() for name in have.get("JAX_PLATFORMS", "").lower().split(",") if name.strip()]
    if found["gpus"] and platforms and not {"cuda", "gpu"} & set(platforms):
        yield problem(
            f"JAX_PLATFORMS is {have['JAX_PLATFORMS']}, so JAX does not use the GPU.",
            "Unset JAX_PLATFORMS, or set it to cuda,cpu; then restart the kernel.",
        )


def _nsight(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tool: Mapping[str, Any] | None = found["tools"].get("nsys")
    have: Mapping[str, str | None] = found["versions"]
    if tool is None:
        yield note(
            _NSIGHT,
            "nsys is not found, neither on the PATH nor where NVIDIA's installers put it.",
            f"Traces work without it. {nsys.HOW_TO_GET}",
        )
        return
    failures = [f"{tool['path']} does not run: {tool['failure']}."] if tool.get("failure") else []
    for what in (*failures, *tool.get("broken", ())):
        yield note(_NSIGHT, what, "Install Nsight Systems again.")
    year = numbers(tool.get("version") or "")[:1]
    nvtx = have.get("nvtx")
    if year and year < (2024,) and nvtx and satisfies(nvtx, ">=0.2.12"):
        # It asks the tool for nvtxDomainIsEnabled: seen with nsys 2022.4 and 2023.4, not with 2025.3.
        yield note(
            _NSIGHT,
            f"nsys {tool['version']} drops every range of nvtx {nvtx} without a word: it lacks a call that "
            "nvtx makes since 0.2.12.",
            "Install Nsight Systems 2025.3 or later, or an older nvtx. "
            + pip_install("'nvtx<0.2.12'", "the kernel"),
        )
    yield from _importer(Path(tool["path"]))


def _importer(path: Path) -> Iterator[dict[str, Any]]:
    importer, _imports, what = nsys.find_importer(path)
    if not what:
        return
    remedy = "Install Nsight Systems from NVIDIA's repository, complete with its host part."
    if "libdw" in what:
        remedy = "Install the packages libdw1 and libelf1 (Debian and Ubuntu), or elfutils-libs (Red Hat)."
    elif importer is not None:
        remedy = f"After a recording run: {importer} -i FILE.qdstrm -o FILE.nsys-rep."
    yield note(_NSIGHT, what, remedy)


def _permission_problems(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, Any] = found["permissions"]
    if have["gpu_profiling_admin_only"] and not have["sys_admin"]:
        yield problem(
            "The NVIDIA driver lets only administrators profile: traces lack device events "
            "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).",
            "Ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or to "
            "start the container with --cap-add=SYS_ADMIN.",
        )
    if found["tools"].get("nsys") is None:
        return
    if have["temporary_noexec"]:
        yield note(
            _NSIGHT,
            f"{have['temporary_directory']} is mounted noexec: nsys can't start its agent from there.",
            "Set TMPDIR to a directory on another file system, then restart the kernel.",
        )
    if have["shm_bytes"] is not None and have["shm_bytes"] < _SHM_NEEDED_BYTES:
        yield note(
            _NSIGHT,
            f"/dev/shm has only {have['shm_bytes'] // 2**20} MiB free: nsys may fail to start its agent.",
            "Start the container with a larger one, as with --shm-size=1g.",
        )
