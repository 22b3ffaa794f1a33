"""The installed distributions, and whether what they require is met."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
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
    "jax-cuda12-pjrt",
    "jax-cuda13-pjrt",
    "xprof",
    "tensorboard",
    "tensorboard-plugin-profile",
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
_DIST_INFO = re.compile(r"(.+?)-(\d[^-]*)(?:\.dist-info|(?:-py[\d.]+)?\.egg-info)")

#: Of a number in what another program prints; Python refuses to read thousands.
_MOST_DIGITS = 18


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
    return tuple(int(part[:_MOST_DIGITS]) for part in re.findall(r"\d+", version))


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


def distributions_in(site: Path) -> dict[str, list[str]]:
    """Give the versions of what is installed in a directory of packages, by the names of its files alone."""
    found: dict[str, list[str]] = {}
    try:
        names = os.listdir(site)  # noqa: PTH208 (a large environment has thousands: no object for each)
    except OSError:
        return found
    for name in names:
        match = _DIST_INFO.fullmatch(name)
        if match:
            found.setdefault(re.sub(r"[-_.]+", "-", match.group(1)).lower(), []).append(match.group(2))
    return found


def duplicates() -> dict[str, list[tuple[str, str]]]:
    """Give (version, directory) of all of DISTRIBUTIONS are there in several versions, the used one first."""
    places = dict.fromkeys(os.path.realpath(entry) for entry in sys.path if entry)
    found: dict[str, list[tuple[str, str]]] = {}
    for place in places:
        for name, installed in distributions_in(Path(place)).items():
            found.setdefault(name, []).extend((version, place) for version in installed)
    several = {name: found[name] for name in DISTRIBUTIONS if name in found}
    return {name: each for name, each in several.items() if len({version for version, _ in each}) > 1}


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
