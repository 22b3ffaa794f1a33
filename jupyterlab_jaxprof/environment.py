"""What is installed and set here, and what of it is known to go wrong; without importing jax.

Both the Jupyter server and `%jaxprof doctor` report it. It runs `nvidia-smi` and `nsys --version`, each for
ten seconds at most, so a server calls it off its event loop.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTIONS = (
    "jupyterlab-jaxprof",
    "jax",
    "jaxlib",
    "jax-cuda12-plugin",
    "jax-cuda13-plugin",
    "xprof",
    "tensorboard",
    "nvtx",
    "numpy",
    "ipython",
    "ipykernel",
    "jupyterlab",
    "notebook",
    "jupyter-server",
    "jupyter-server-proxy",
    "jupyterlab-nvidia-nsight",
    "protobuf",
    "psutil",
    "cloudpickle",
)
NEEDED = ("jax", "jaxlib", "xprof", "ipython")
# Only these are ever reported: others may hold secrets.
VARIABLES = re.compile(
    r"XLA_FLAGS|XLA_(PYTHON_)?CLIENT_\w+|JAX_\w+|JAXPROF_\w+|LD_PRELOAD|LD_LIBRARY_PATH|CUDA_VISIBLE_DEVICES|"
    r"NVIDIA_VISIBLE_DEVICES|TF_GPU_ALLOCATOR|TMPDIR"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)
NSYS_PLACES = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
)
_GPU_FIELDS = ("index", "name", "memory.total", "driver_version", "mig.mode.current")
_SHM_NEEDED_BYTES = 64 * 1024 * 1024
_TIMEOUT_S = 10


def report() -> dict[str, Any]:
    """Describe this process's environment.

    Keys: `python`, `executable`, `platform`, `versions` (None: not installed), `tools` ({path, version} or
    None), `gpus` (as nvidia-smi tells; None: there is none, or it failed), `permissions`, `variables`, and
    `problems`: {what, remedy, needed}, where `needed` says that something can't work before it is mended.
    """
    gpus, gpu_problem = _gpus()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "versions": versions(),
        "tools": {
            "nsys": _nsys(),
            "nvidia-smi": _tool(shutil.which("nvidia-smi")),
            "xprof": _tool(_script("xprof")),
        },
        "gpus": gpus,
        "permissions": _permissions(),
        "variables": variables(os.environ),
    }
    conflicts = list(_conflicts())
    return found | {"problems": [*([gpu_problem] if gpu_problem else []), *conflicts, *problems(found)]}


def versions() -> dict[str, str | None]:
    """Give the installed version of each of DISTRIBUTIONS."""
    return {name: _version(name) for name in DISTRIBUTIONS}


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables that matter to a profile, and no other."""
    names = (name for name in sorted(environ) if VARIABLES.fullmatch(name) and not _SECRET.search(name))
    return {name: environ[name] for name in names}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _problem(what: str, remedy: str, *, needed: bool = False) -> dict[str, Any]:
    return {"what": what, "remedy": remedy, "needed": needed}


def _pip(wanted: str, restart: str) -> str:
    return f"Run: {shlex.quote(sys.executable)} -m pip install {wanted}, then restart {restart}."


# Tools and devices


def _run(*command: str) -> tuple[str, str | None]:
    """Run a command that only reports; returns its output, and why it failed (None where it worked)."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", f"it gave no answer within {_TIMEOUT_S} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        return done.stdout, f"exit status {done.returncode}" + (f", '{said[-1][:200]}'" if said else "")
    return done.stdout, None


def _script(name: str) -> str | None:
    """Find a command of this Python's environment, whether or not that is on the PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else shutil.which(name)


def _tool(path: str | None, version: str | None = None) -> dict[str, Any] | None:
    return {"path": path, "version": version} if path else None


def _nsys() -> dict[str, Any] | None:
    """Find nsys on the PATH, else in the places where NVIDIA's installers put it, the newest first."""
    path = shutil.which("nsys")
    for pattern in NSYS_PLACES if path is None else ():
        found = sorted(Path("/").glob(pattern.lstrip("/")), key=lambda place: numbers(str(place)))
        if found:
            path = str(found[-1])
            break
    if path is None:
        return None
    said, failure = _run(path, "--version")
    version = re.search(r"\d{4}\.\d+[\w.-]*", said)
    return {"path": path, "version": version.group() if version else None, "failure": failure}


def xprof_problem() -> dict[str, Any] | None:
    """Try XProf's modules in a process of their own (half a second): a clash with protobuf shows there."""
    program = "import xprof.server, xprof.profile_plugin_loader, xprof.convert.raw_to_tool_data"
    failure = _run(sys.executable, "-c", program)[1] if _version("xprof") else None
    if failure is None:
        return None
    return _problem(
        f"XProf is installed but does not start: {failure}.",
        _pip("--upgrade --force-reinstall 'xprof>=2.24,<2.25' protobuf", "Jupyter"),
        needed=True,
    )


def _gpus() -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Ask nvidia-smi for the GPUs; returns None without one, and a problem where it is there but fails."""
    if shutil.which("nvidia-smi") is None:
        return None, None
    said, failure = _run(
        "nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"
    )
    if failure is not None:
        return None, _problem(
            f"nvidia-smi does not work here: {failure}.",
            "Check the NVIDIA driver, and that a container was started with the GPUs (--gpus all).",
        )
    gpus: list[dict[str, Any]] = []
    for line in said.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(_GPU_FIELDS):
            index, name, memory, driver, mig = values
            total = int(memory) * 2**20 if memory.isdigit() else None  # a MIG device may tell '[N/A]'
            gpus.append({
                "index": index, "name": name, "memory_bytes": total, "driver": driver, "mig": mig == "Enabled"
            })  # fmt: skip
    return gpus, None


def _permissions() -> dict[str, Any]:
    """Read what decides whether a profiler may look: None where this system does not say."""
    profiling = re.search(r"RmProfilingAdminOnly:\s*(\d)", _read("/proc/driver/nvidia/params"))
    capabilities = re.search(r"CapEff:\s*([0-9a-f]+)", _read("/proc/self/status"))
    paranoid = _read("/proc/sys/kernel/perf_event_paranoid").strip()
    temporary = os.environ.get("TMPDIR") or "/tmp"
    return {
        "gpu_profiling_admin_only": profiling.group(1) == "1" if profiling else None,
        "sys_admin": bool(int(capabilities.group(1), 16) >> 21 & 1)
        if capabilities
        else None,  # CAP_SYS_ADMIN
        "perf_event_paranoid": int(paranoid) if paranoid.lstrip("-").isdigit() else None,
        "shm_bytes": _shm_bytes(),
        "temporary_directory": temporary,
        "temporary_noexec": _is_noexec(temporary),
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _shm_bytes() -> int | None:
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def _is_noexec(directory: str) -> bool | None:
    flag = getattr(os, "ST_NOEXEC", None)
    try:
        return bool(os.statvfs(directory).f_flag & flag) if flag is not None else None
    except OSError:
        return None


# Problems


def numbers(version: str) -> tuple[int, ...]:
    """Give the numbers in a version, for comparing: '2026.2.1.210-3763964' is (2026, 2, 1, 210, 3763964)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def satisfies(version: str, specifiers: str) -> bool:
    """Tell whether a version fits a requirement's specifiers, such as '>=2.24,<2.25'; what is unclear fits.

    Pre-releases and local parts count by their release alone.
    """
    release = numbers(re.split(r"[a-zA-Z+-]", version, maxsplit=1)[0])
    for operator, bound in re.findall(r"(==|!=|>=|<=|~=|>|<)\s*([\w.*]+)", specifiers):
        wanted = numbers(bound)
        prefix = release[: len(wanted)] if bound.endswith("*") or operator == "~=" else release
        length = max(len(prefix), len(wanted))
        have, want = (part + (0,) * (length - len(part)) for part in (prefix, wanted))
        fits = {
            "==": have == want,
            "!=": have != want,
            ">=": have >= want,
            "<=": have <= want,
            ">": have > want,
            "<": have < want,
            "~=": release >= wanted and release[: len(wanted) - 1] == wanted[:-1],
        }
        if not fits[operator]:
            return False
    return True


def _conflicts() -> Iterator[dict[str, Any]]:
    """Yield the requirements of our DISTRIBUTIONS that what is installed does not meet."""
    for name in DISTRIBUTIONS:
        version = _version(name)
        for line in (metadata.requires(name) or []) if version is not None else ():
            requirement, _, marker = line.partition(";")
            extra = re.fullmatch(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker.strip())
            if marker and not (extra and extra.group(1).startswith("cuda")):
                continue
            match = re.match(r"\s*([\w.-]+?)\s*(?:\[[^\]]*\])?\s*\(?([<>=!~].*?)?\)?\s*$", requirement)
            installed = _version(match.group(1)) if match else None
            if match and installed and not satisfies(installed, match.group(2) or ""):
                wanted = f"{match.group(1)}{match.group(2)}"
                yield _problem(
                    f"{name} {version} needs {wanted}, but {installed} is installed.",
                    _pip(f"'{wanted}'", "the kernel"),
                    needed=True,
                )


def problems(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give what is known to go wrong with what was found, each with its remedy."""
    checks = (_packages, _gpu_plugin, _variable_problems, _nsight, _permission_problems)
    return [problem for check in checks for problem in check(found)]


def _packages(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str | None] = found["versions"]
    for name in NEEDED:
        if have.get(name) is None:
            wanted = "'xprof>=2.24,<2.25'" if name == "xprof" else name
            remedy = _pip(wanted, "the kernel")
            yield _problem(f"{name} is not installed in this environment.", remedy, needed=True)
    xprof = have.get("xprof")
    if xprof and not satisfies(xprof, ">=2.24,<2.25"):
        yield _problem(
            f"XProf {xprof} is installed; the viewer here is made for 2.24, whose inner parts it uses.",
            _pip("'xprof>=2.24,<2.25'", "Jupyter"),
            needed=True,
        )


def _gpu_plugin(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str | None] = found["versions"]
    plugins = {name: have[name] for name in have if name.startswith("jax-cuda") and have[name]}
    if found["gpus"] and not plugins and have.get("jax"):
        yield _problem(
            "There is an NVIDIA GPU, but JAX has no CUDA plugin, so it computes on the CPU.",
            _pip("--upgrade 'jax[cuda13]' (with an older driver 'jax[cuda12]')", "the kernel"),
        )
    for name, version in plugins.items():
        if version != have.get("jaxlib"):
            yield _problem(
                f"{name} {version} does not belong to jaxlib {have.get('jaxlib')}: JAX will not load it.",
                _pip(f"'{name}=={have.get('jaxlib')}'", "the kernel"),
                needed=True,
            )
    if not found["gpus"]:
        yield _problem(
            "No NVIDIA GPU is seen here: JAX computes on the CPU.",
            "Everything works, but a CPU's profile misleads about a GPU, where launches, copies and kernels "
            "cost differently. Measure on the machine that you want to make faster.",
        )


def _variable_problems(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, str] = found["variables"]
    if re.search(r"=(''|\"\")(\s|$)", have.get("XLA_FLAGS", "")):
        yield _problem(
            "XLA_FLAGS sets a flag to two quote characters: XLA takes them as its value, not as empty.",
            "Write nothing after the '=', as in --xla_gpu_enable_command_buffer= , before JAX starts.",
        )
    if {"XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"} <= set(have):
        yield _problem(
            "XLA_PYTHON_CLIENT_MEM_FRACTION and XLA_CLIENT_MEM_FRACTION are both set: jaxlib refuses that.",
            "Unset one of them, then restart the kernel.",
            needed=True,
        )
    platforms = [name.strip() for name in have.get("JAX_PLATFORMS", "").lower().split(",") if name.strip()]
    if found["gpus"] and platforms and not {"cuda", "gpu"} & set(platforms):
        yield _problem(
            f"JAX_PLATFORMS is {have['JAX_PLATFORMS']}, so JAX does not use the GPU.",
            "Unset JAX_PLATFORMS, or set it to cuda,cpu; then restart the kernel.",
        )
    if re.search(r"nsys|nsight|ToolsInjection", have.get("LD_PRELOAD", ""), re.IGNORECASE):
        yield _problem(
            "This process runs under NVIDIA Nsight (LD_PRELOAD): only one profiler at a time gets the GPU's "
            "events, so traces may lack them.",
            "Start Jupyter without nsys to take traces of device events.",
        )


def _nsight(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    nsys: Mapping[str, Any] | None = found["tools"].get("nsys")
    have: Mapping[str, str | None] = found["versions"]
    if have.get("jupyterlab-nvidia-nsight"):
        yield _problem(
            "NVIDIA's jupyterlab-nvidia-nsight is installed, which has a magic named %%nsys too.",
            "Whose it is in this kernel, %jaxprof says; %%jaxnsys is always this package's.",
        )
    if nsys is None:
        yield _problem(
            "nsys (Nsight Systems) is not found, neither on the PATH nor where NVIDIA's installers put it.",
            "Traces work without it. For Nsight reports install nsight-systems-cli from NVIDIA's repository, "
            "or add its directory to PATH.",
        )
        return
    if nsys.get("failure"):
        yield _problem(f"{nsys['path']} does not run: {nsys['failure']}.", "Install Nsight Systems again.")
    year = numbers(nsys.get("version") or "")[:1]
    nvtx = have.get("nvtx")
    if year and year < (2024,) and nvtx and satisfies(nvtx, ">=0.2.12"):
        # It asks the tool for nvtxDomainIsEnabled: seen with nsys 2022.4 and 2023.4, not with 2025.3.
        yield _problem(
            f"nsys {nsys['version']} drops every range of nvtx {nvtx} without a word: it lacks a call that "
            "nvtx makes since 0.2.12.",
            "Install Nsight Systems 2025.3 or later, or an older nvtx. "
            + _pip("'nvtx<0.2.12'", "the kernel"),
        )
    real = Path(nsys["path"]).resolve()
    if real.parent.name.startswith("target-linux") and not list(real.parent.parent.glob("host-linux*")):
        yield _problem(
            f"The importer of {nsys['path']} is not beside it: nsys leaves a .qdstrm file, and no report.",
            "Install Nsight Systems from NVIDIA's repository, complete with its host part.",
        )


def _permission_problems(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    have: Mapping[str, Any] = found["permissions"]
    if have["gpu_profiling_admin_only"] and not have["sys_admin"]:
        yield _problem(
            "The NVIDIA driver lets only administrators profile: traces lack device events "
            "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).",
            "Ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or to "
            "start the container with --cap-add=SYS_ADMIN.",
        )
    if found["tools"].get("nsys") is None:
        return
    if have["temporary_noexec"]:
        yield _problem(
            f"{have['temporary_directory']} is mounted noexec: nsys can't start its agent from there.",
            "Set TMPDIR to a directory on another file system, then restart the kernel.",
        )
    if have["shm_bytes"] is not None and have["shm_bytes"] < _SHM_NEEDED_BYTES:
        yield _problem(
            f"/dev/shm has only {have['shm_bytes'] // 2**20} MiB free: nsys may fail to start its agent.",
            "Start the container with a larger one, as with --shm-size=1g.",
        )
