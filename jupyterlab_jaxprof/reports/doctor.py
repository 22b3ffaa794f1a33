"""What is amiss here, and what helps: `%jaxprof doctor`, and the same in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from jupyterlab_jaxprof import environment
from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cards.sheet import Fact, Section, Sheet, State
from jupyterlab_jaxprof.environment import Check, Problem

from .doctor_store import CHECKS as STORE_CHECKS
from .doctor_store import store_facts, store_problems

#: What is asked here, beside environment.SUBJECTS.
CHECKS = (
    Check("jax-starts", "a JAX that raises an error when it is asked for its devices", lambda found: ()),
    Check("set-too-late", "variables set after JAX had read them (in a kernel)", lambda found: ()),
    Check("xprof-starts", "an XProf that can't be imported, as with another protobuf", lambda found: ()),
    *STORE_CHECKS,
)


@dataclass(frozen=True)
class CheckUp:
    """What was found: the environment's report, JAX's devices, and all that is amiss, the worst first."""

    found: Mapping[str, Any]
    devices: list[Fact]
    problems: list[Problem]

    @property
    def is_sound(self) -> bool:
        """Whether nothing needed is missing."""
        return not any(problem["needed"] for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """Give it as `jaxprof doctor --json` does; `severity` is `needed`, `advice` or `note`."""
        return {
            "sound": self.is_sound,
            "problems": [
                {
                    "check": problem["check"],
                    "severity": _severity(problem),
                    "what": problem["what"],
                    "remedy": problem["remedy"],
                    "command": problem["command"],
                }
                for problem in self.problems
            ],
            "devices": {fact.label: fact.value for fact in self.devices},
            **{key: value for key, value in self.found.items() if key != "problems"},
        }


def check_up(
    store: Store,
    devices: Callable[[], Sequence[Mapping[str, Any]]],
    more: Callable[[], Iterable[Problem]] = tuple,
) -> CheckUp:
    """Look at everything that a profile depends on.

    `devices` asks JAX for its devices; `more` tells what else this process knows to be amiss.
    """
    found = environment.report()
    known = [*more()]  # before JAX is asked: it reads its variables then
    listed, device_problems = _device_facts(devices)
    xprof = environment.xprof_problem()
    problems = [
        *found["problems"],
        *known,
        *device_problems,
        *([{"check": "xprof-starts", **xprof}] if xprof else []),
        *store_problems(store),
    ]
    return CheckUp(found, listed, sorted(problems, key=lambda one: (one["note"], not one["needed"])))


def doctor(checked: CheckUp, store: Store, magics: Sequence[Fact] | None = None) -> Sheet:
    """Show what was found. The first section names what is amiss; `magics` tell which of ours a shell has."""
    found = checked.found
    problems = [_problem_fact(problem) for problem in checked.problems if not problem["note"]]
    notes = [_problem_fact(problem) for problem in checked.problems if problem["note"]]
    needed = sum(fact.state == "needed" for fact in problems)
    if needed:
        verdict = f"{units.count(needed, 'thing')} must be mended"
    else:
        verdict = f"ready, with {units.count(len(problems), 'hint')}" if problems else "ready"
    return Sheet(
        f"jaxprof doctor: {verdict}",
        [
            Section(
                "What to do", problems or [Fact("", "Nothing: all that is used here is as it should be.")]
            ),
            Section("Devices", checked.devices + _gpu_facts(found["gpus"])),
            Section("Versions", _version_facts(found)),
            Section("Tools", _tool_facts(found["tools"])),
            Section("Permissions", _permission_facts(found["permissions"])),
            Section(
                "Variables", [Fact(*item) for item in found["variables"].items()] or [Fact("", "none is set")]
            ),
            Section("Store", [fact for fact in store_facts(store) if not fact.state]),
            *([Section("Magics", magics)] if magics is not None else []),
            *([Section("Notes", notes)] if notes else []),
        ],
    )


def store_section(store: Store) -> Section:
    """Tell of the store, and what is amiss with it."""
    return Section("Store", [*store_facts(store), *map(_problem_fact, store_problems(store))])


def _severity(problem: Problem) -> str:
    return "note" if problem["note"] else "needed" if problem["needed"] else "advice"


def _problem_fact(problem: Problem) -> Fact:
    state: State = "" if problem["note"] else "needed" if problem["needed"] else "advice"
    return Fact("", problem["what"], state, problem["remedy"], problem["command"])


def _device_facts(
    devices: Callable[[], Sequence[Mapping[str, Any]]],
) -> tuple[list[Fact], list[Problem]]:
    """Ask JAX for its devices, where it is installed; if it does not start, that is a problem."""
    if find_spec("jax") is None:
        return [Fact("JAX", "is not installed in this kernel's environment")], []
    try:
        listed = devices()
    except Exception as error:  # noqa: BLE001 (whatever a broken JAX raises is what the user must read)
        what = f"JAX does not start: {type(error).__name__}: {error}"
        remedy = "Mend what it says; a fresh kernel may be needed, since JAX reads its settings only once."
        return [Fact("JAX", "does not start")], [
            {"check": "jax-starts", **environment.problem(what, remedy, needed=True)}
        ]
    facts = [Fact(f"{device['platform']}:{device['id']}", str(device["kind"])) for device in listed]
    return facts or [Fact("JAX", "has no device")], []


def _gpu_facts(gpus: list[dict[str, Any]] | None) -> list[Fact]:
    facts: list[Fact] = []
    for gpu in gpus or []:
        mig = ", MIG" if gpu["mig"] else ""
        memory = f"{gpu['memory_bytes'] / 2**30:.0f} GiB" if gpu["memory_bytes"] else "memory unknown"
        value = f"{gpu['name']}, {memory}, driver {gpu['driver']}{mig}"
        facts.append(Fact(f"nvidia-smi {gpu['index']}", value))
    return facts


def _version_facts(found: Mapping[str, Any]) -> list[Fact]:
    facts = [
        Fact("python", f"{found['python']} ({found['executable']})"),
        Fact("platform", found["platform"]),
    ]
    return facts + [Fact(name, version) for name, version in found["versions"].items() if version]


def _tool_facts(tools: Mapping[str, Any]) -> list[Fact]:
    facts: list[Fact] = []
    for name, tool in tools.items():
        version = f" ({tool['version']})" if tool and tool["version"] else ""
        facts.append(Fact(name, f"{tool['path']}{version}" if tool else "not found"))
    return facts


def _permission_facts(found: Mapping[str, Any]) -> list[Fact]:
    admin_only = {None: "no NVIDIA driver here", True: "administrators only", False: "everybody"}
    return [
        Fact("GPU profiling", admin_only[found["gpu_profiling_admin_only"]]),
        Fact("administrator", {None: "unknown", True: "yes", False: "no"}[found["sys_admin"]]),
        Fact("perf_event_paranoid", _or_unknown(found["perf_event_paranoid"])),
        Fact("/dev/shm free", units.size(found["shm_bytes"])),
        Fact(
            "temporary files",
            found["temporary_directory"] + (", noexec" if found["temporary_noexec"] else ""),
        ),
    ]


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)
