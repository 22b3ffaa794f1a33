"""What is known to go wrong between the GPUs, their driver and JAX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .problem import Check, Found, Problem, pip_install, pip_uninstall, problem, run
from .versions import numbers

#: By the major version of CUDA, the first driver that runs it (NVIDIA's CUDA compatibility tables).
_DRIVERS = {"12": (525, 60, 13), "13": (580,)}
_SERIES = ("12", "13")


def _plugins(found: Found) -> dict[str, str]:
    """The CUDA parts of JAX that are installed, by their names."""
    have: Mapping[str, str | None] = found["versions"]
    return {name: version for name, version in have.items() if name.startswith("jax-cuda") and version}


def _series(found: Found) -> list[str]:
    """The major versions of CUDA that JAX has a plugin for."""
    return [number for number in _SERIES if f"jax-cuda{number}-plugin" in _plugins(found)]


def _driver(found: Found) -> str:
    return next((gpu["driver"] for gpu in found["gpus"] or () if gpu.get("driver")), "")


def _nvidia_smi(found: Found) -> Iterator[Problem]:
    yield from found.get("gpu_problems", ())


def _none(found: Found) -> Iterator[Problem]:
    if not found["gpus"]:
        yield problem(
            "No NVIDIA GPU is seen here: JAX computes on the CPU.",
            "Everything works, but a CPU's profile misleads about a GPU, where launches, copies and kernels "
            "cost differently. Measure on the machine that you want to make faster.",
        )


def _no_plugin(found: Found) -> Iterator[Problem]:
    if found["gpus"] and not _plugins(found) and found["versions"].get("jax"):
        driver = numbers(_driver(found))
        wanted = "jax[cuda12]" if driver and driver < _DRIVERS["13"] else "jax[cuda13]"
        yield problem(
            "There is an NVIDIA GPU, but JAX has no CUDA plugin, so it computes on the CPU.",
            pip_install(f"--upgrade '{wanted}'", "the kernel"),
        )


def _other_version(found: Found) -> Iterator[Problem]:
    jaxlib = found["versions"].get("jaxlib")
    for name, version in _plugins(found).items():
        if version != jaxlib:
            yield problem(
                f"{name} {version} does not belong to jaxlib {jaxlib}: JAX will not load it.",
                pip_install(f"'{name}=={jaxlib}'", "the kernel"),
                needed=True,
            )


def _two_plugins(found: Found) -> Iterator[Problem]:
    if len(_series(found)) > 1:
        driver = numbers(_driver(found))
        old = "13" if driver and driver < _DRIVERS["13"] else "12"
        yield problem(
            "JAX has the plugins of CUDA 12 and of CUDA 13: only one of them serves.",
            pip_uninstall(
                f"jax-cuda{old}-plugin jax-cuda{old}-pjrt",
                "restart the kernel",
            ),
        )


def _old_driver(found: Found) -> Iterator[Problem]:
    driver = _driver(found)
    for series in _series(found)[:1] if driver else ():
        if numbers(driver) < _DRIVERS[series]:
            wanted = ".".join(map(str, _DRIVERS[series]))
            twelve = series == "13" and numbers(driver) >= _DRIVERS["12"]
            yield problem(
                f"JAX's plugin is for CUDA {series}, which needs NVIDIA's driver {wanted} or newer; this "
                "one is "
                f"{driver}.",
                pip_install(
                    "--upgrade 'jax[cuda12]'", "the kernel", first="Update the driver, or take CUDA 12."
                )
                if twelve
                else "Update NVIDIA's driver.",
                needed=True,
            )


def _no_cupti(found: Found) -> Iterator[Problem]:
    libraries = found.get("libraries")
    if libraries and _series(found) and not libraries["cupti"]:
        series = _series(found)[0]
        yield problem(
            "CUPTI, by which traces see the GPU, is not found: neither its wheel nor one of the system.",
            pip_install(f"--upgrade 'jax[cuda{series}]'", "the kernel"),
        )


def _other_libraries(found: Found) -> Iterator[Problem]:
    libraries = found.get("libraries")
    if libraries and libraries["wheel"] and libraries["before_wheel"]:
        first = libraries["before_wheel"][0]
        yield problem(
            f"LD_LIBRARY_PATH leads to other CUDA libraries than the ones that came with JAX ({first}): "
            "they may "
            "be loaded in their place, and one of another version has no GPU events, or no GPU.",
            run("unset LD_LIBRARY_PATH", "start Jupyter again from that terminal"),
        )


def _refused(found: Found) -> Iterator[Problem]:
    refused = found["permissions"].get("gpu_devices_refused")
    if refused:
        yield problem(
            f"This user may not open {refused[0]}, so no GPU is seen.",
            run(
                'sudo usermod --append --groups video "$USER"',
                "log in again",
                first="Where the group video owns it:",
            ),
            needed=True,
        )


CHECKS = (
    Check("nvidia-smi", "nvidia-smi is there and fails, as after an update of the driver", _nvidia_smi),
    Check("no-gpu", "no NVIDIA GPU", _none),
    Check("gpu-refused", "/dev/nvidia* may not be opened by this user", _refused),
    Check("cuda-plugin-missing", "a GPU, and a JAX that only knows the CPU", _no_plugin),
    Check("cuda-plugin-version", "a CUDA plugin of another version than jaxlib", _other_version),
    Check("two-cuda-plugins", "the plugins of CUDA 12 and 13 at once", _two_plugins),
    Check("driver-too-old", "a driver older than the plugin's CUDA needs", _old_driver),
    Check("cupti-missing", "no CUPTI for the CUDA plugin", _no_cupti),
    Check("other-cuda-libraries", "LD_LIBRARY_PATH leads to another CUDA than JAX's own", _other_libraries),
)
