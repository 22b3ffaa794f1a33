"""What is known to go wrong with permissions, with the machine's clock, and with others who measure."""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Check, Found, Problem, Remedy, export, problem, run

#: A clock that is behind by less may be another file system's.
_CLOCK_SLACK_S = 3600.0
_LOCKS_CLOCKS = {"ncu": "Nsight Compute", "nv-nsight-cu-cli": "Nsight Compute"}


def _admin_only(found: Found) -> Iterator[Problem]:
    have = found["permissions"]
    if have["gpu_profiling_admin_only"] and not have["sys_admin"]:
        yield problem(
            "The NVIDIA driver lets only administrators profile: traces lack device events "
            "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).",
            Remedy(
                "Ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or to "
                "start the container with --cap-add=SYS_ADMIN.",
                "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | "
                "sudo tee /etc/modprobe.d/nvidia-profiling.conf && sudo reboot",
            ),
        )


def _temporary(found: Found) -> Iterator[Problem]:
    have = found["permissions"]
    if have.get("temporary_writable") is False:
        yield problem(
            f"No file can be made in {have['temporary_directory']}, where traces and reports are put "
            "together.",
            export("TMPDIR=$HOME/tmp", first="Make a directory of your own and name it."),
            needed=True,
        )


def _clock(found: Found) -> Iterator[Problem]:
    clock = found.get("clock")
    if clock and clock["installed_s"] - clock["now_s"] > _CLOCK_SLACK_S:
        yield problem(
            "This machine's clock is behind the time at which this package was installed: captures will be "
            "listed in a wrong order.",
            run("sudo timedatectl set-ntp true"),
        )


def _spoilers(found: Found) -> Iterator[Problem]:
    yield from found.get("spoilers", ())


def _others(found: Found) -> Iterator[Problem]:
    for one in found.get("profilers", ()):
        if one["name"] in _LOCKS_CLOCKS:
            yield problem(
                f"{_LOCKS_CLOCKS[one['name']]} runs here (process {one['pid']}): while it profiles it "
                "holds the "
                "GPU's clocks, as a rule, so other programs' times on that GPU are not what they would be.",
                run(f"tail --pid={one['pid']} -f /dev/null", "measure", first="Wait for its end."),
            )


CHECKS = (
    Check("profiling-refused", "a driver that lets only the administrator profile", _admin_only),
    Check("temporary-directory", "a temporary directory that can't be written", _temporary),
    Check("clock", "a clock that is behind", _clock),
    Check("spoiled-trace", "Nsight around this process, or quotes in XLA_FLAGS", _spoilers),
    Check("other-profiler", "Nsight Compute at work on this machine", _others),
)
