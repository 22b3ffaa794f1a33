"""The variables of the processes: nsys writes into its report those that it was started with.

So nsys and the program start with the few that they need; the program itself takes the others once it runs,
from a file that nobody else can open.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from jupyterlab_jaxprof.environment.secrets import is_secret

_NO_GRAPHS = "--xla_gpu_enable_command_buffer="
#: What programs need to start and to find their libraries, and what JAX and CUDA read.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|LD_LIBRARY_PATH|VIRTUAL_ENV"
    r"|CONDA_PREFIX|XDG_(CACHE|CONFIG|DATA|RUNTIME)_\w+|PYTHON\w+"
    r"|(CUDA|NVIDIA|NCCL|XLA|JAX|TF|OMP|MKL|OPENBLAS|NUMEXPR|KMP)_\w+"
)
#: What a tool around the kernel has left there, and would confuse this one.
_LEFT_BY_TOOLS = re.compile(
    r"LD_PRELOAD|NVTX_INJECTION\w*|CUDA_INJECTION\w*|QUADD_\w+|NSYS_\w+|USE_AGENT_API"
    r"|TRACE_START_IMMEDIATELY"
)
_LIBRARY_OF_TOOL = re.compile(r"nsight|nsys|ToolsInjection|KeyboardInterceptor", re.IGNORECASE)
_CACHE_DAYS = 30.0


def environments(
    environ: Mapping[str, str], graphs: bool, keep: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Divide variables into those to start with, and those that the program takes once it runs.

    Those that `keep` names are there at the start. Without `graphs`, XLA runs kernels one by one, in none of
    its command buffers.
    """
    first, later = divided(environ)
    first |= {name: later.pop(name) for name in keep if name in later}
    for name in ("TMPDIR", "PYTHONUNBUFFERED"):  # nsys's own differ
        if name in environ:
            later[name] = environ[name]
    drawn = later.pop("MPLBACKEND", "")  # what draws into the notebook does so from there too
    first |= {"PYTHONUNBUFFERED": "1", "MPLBACKEND": drawn if "inline" in drawn else "Agg"}
    if not graphs:
        first["XLA_FLAGS"] = f"{environ.get('XLA_FLAGS', '')} {_NO_GRAPHS}".strip()
    return first, later


def divided(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide variables into those that programs need to start, and the others; a tool's are in neither."""
    first, later = dict[str, str](), dict[str, str]()
    for name, value in environ.items():
        if not _LEFT_BY_TOOLS.fullmatch(name):
            needed = _NEEDED.fullmatch(name) and not is_secret(name)
            (first if needed else later)[name] = value
    return first, later


def own_preloads(environ: Mapping[str, str]) -> str:
    """Give what LD_PRELOAD names besides the libraries of nsys: the user's own, an allocator, say."""
    names = re.split(r"[:\s]+", environ.get("LD_PRELOAD", ""))
    return ":".join(name for name in names if name and not _LIBRARY_OF_TOOL.search(name))


def jax_cache(store_root: Path) -> tuple[str, str]:
    """Give the directory in which JAX keeps what the program compiles, and why there is none (a sentence).

    Programs that were not used for a month are removed.
    """
    directory = store_root / "jax-cache"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(0, "you have no permission")
    except OSError as error:
        return "", (
            f"What the cell compiles is not kept for the next run: {directory} can't be used "
            f"({error.strerror or error})."
        )
    oldest_s = time.time() - _CACHE_DAYS * 86_400
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if max(status.st_mtime, status.st_atime) < oldest_s and entry.is_file(follow_symlinks=False):
                    Path(entry.path).unlink()
    return str(directory), ""
