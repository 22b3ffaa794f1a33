"""The installed distributions, and whether what they require is met."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from .problem import pip_install, problem

OWN = "jupyterlab-jaxprof"
# The versions of XProf whose private parts the viewer uses; pyproject.toml requires the same.
XPROF_TESTED = "2.24"
XPROF_SPECIFIERS = ">=2.24,<2.25"
XPROF_REQUIREMENT = f"xprof{XPROF_SPECIFIERS}"
DISTRIBUTIONS = (
    OWN,
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


def versions() -> dict[str, str | None]:
    """Give the installed version of each of DISTRIBUTIONS."""
    return {name: version_of(name) for name in DISTRIBUTIONS}


def version_of(distribution: str) -> str | None:
    """Give the installed version of a distribution; None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def own_version() -> str:
    """Give this package's version; empty when it runs from a source tree."""
    return version_of(OWN) or ""


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


def conflicts() -> Iterator[dict[str, Any]]:
    """Yield the requirements of our DISTRIBUTIONS that what is installed does not meet."""
    for name in DISTRIBUTIONS:
        version = version_of(name)
        for line in (metadata.requires(name) or []) if version is not None else ():
            requirement, _, marker = line.partition(";")
            extra = re.fullmatch(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker.strip())
            if marker and not (extra and extra.group(1).startswith("cuda")):
                continue
            match = re.match(r"\s*([\w.-]+?)\s*(?:\[[^\]]*\])?\s*\(?([<>=!~].*?)?\)?\s*$", requirement)
            installed = version_of(match.group(1)) if match else None
            if match and installed and not satisfies(installed, match.group(2) or ""):
                wanted = f"{match.group(1)}{match.group(2)}"
                yield problem(
                    f"{name} {version} needs {wanted}, but {installed} is installed.",
                    pip_install(f"'{wanted}'", "the kernel"),
                    needed=True,
                )
