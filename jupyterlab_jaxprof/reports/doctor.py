"""What is amiss here, and what helps: `%jaxprof doctor`, and the same in a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from jupyterlab_jaxprof import environment
from jupyterlab_jaxprof.captures import Page, Store
from jupyterlab_jaxprof.cards import units
from jupyterlab_jaxprof.cards.sheet import Fact, Section, Sheet


def is_sound(sheet: Sheet) -> bool:
    """Tell whether nothing needed is missing."""
    return not any(fact.state == "needed" for fact in sheet.facts)


def doctor(
    store: Store, devices: Callable[[], Sequence[Mapping[str, Any]]], magics: Sequence[Fact] | None = None
) -> Sheet:
    """Look at everything that a profile depends on. The first section names what is amiss.

    `devices` asks JAX for its devices; `magics` tell which of ours a shell has, if there is one.
    """
    found = environment.report()
    listed, device_problem = _device_facts(devices)
    xprof_problem = environment.xprof_problem()
    problems = [
        _problem_fact(problem)
        for problem in [*found["problems"], *filter(None, [xprof_problem])]
        if not problem["note"]
    ]
    problems += device_problem
    problems.sort(key=lambda fact: fact.state != "needed")
    stored = store_facts(store)
    problems = [fact for fact in stored if fact.state] + problems
    needed = sum(fact.state == "needed" for fact in problems)
    if needed:
        verdict = f"{units.count(needed, 'thing')} must be mended"
    else:
        verdict = f"ready, with {units.count(len(problems), 'hint')}" if problems else "ready"
    notes = [
        Fact("", problem["what"], remedy=problem["remedy"])
        for problem in found["problems"]
        if problem["note"]
    ]
    return Sheet(
        f"jaxprof doctor: {verdict}",
        [
            Section(
                "What to do", problems or [Fact("", "Nothing: all that is used here is as it should be.")]
            ),
            Section("Devices", listed + _gpu_facts(found["gpus"])),
            Section("Versions", _version_facts(found)),
            Section("Tools", _tool_facts(found["tools"])),
            Section("Permissions", _permission_facts(found["permissions"])),
            Section(
                "Variables", [Fact(*item) for item in found["variables"].items()] or [Fact("", "none is set")]
            ),
            Section("Store", [fact for fact in stored if not fact.state]),
            *([Section("Magics", magics)] if magics is not None else []),
            *([Section("Notes", notes)] if notes else []),
        ],
    )


def store_facts(store: Store) -> list[Fact]:
    """Tell where the store is, how full, and what is amiss with it."""
    page: Page = store.list(limit=0)
    limit = page.size_limit_bytes
    size = units.size(page.size_bytes) + (f" of {units.size(limit)}" if limit else ", no limit is set")
    set_by = "JAXPROF_DIR" if os.environ.get("JAXPROF_DIR", "").strip() else "Jupyter's data directory"
    facts = [
        Fact("path", f"{store.root} ({set_by})"),
        Fact("captures", f"{page.total:,}"),
        Fact("size", size),
    ]
    if page.over_limit.bytes:
        number = len(page.over_limit.ids)
        oldest = f"{units.count(number)} oldest captures" if number > 1 else "oldest capture"
        facts.append(
            Fact(
                "limit",
                f"The store is {units.size(page.over_limit.bytes)} over its limit.",
                "advice",
                f"Nothing is deleted by itself: delete the {oldest} in the sidebar, pin what you want "
                "to keep, or raise JAXPROF_SIZE_LIMIT.",
            )
        )
    return facts + [
        Fact("", problem, "advice" if problem == store.limit_problem else "needed")
        for problem in page.problems
    ]


def _problem_fact(problem: Mapping[str, Any]) -> Fact:
    return Fact("", problem["what"], "needed" if problem["needed"] else "advice", problem["remedy"])


def _device_facts(
    devices: Callable[[], Sequence[Mapping[str, Any]]],
) -> tuple[list[Fact], list[Fact]]:
    """Ask JAX for its devices, where it is installed; if it does not start, that is a problem."""
    if find_spec("jax") is None:
        return [Fact("JAX", "is not installed in this kernel's environment")], []
    try:
        listed = devices()
    except Exception as error:  # noqa: BLE001 (whatever a broken JAX raises is what the user must read)
        what = f"JAX does not start: {type(error).__name__}: {error}"
        remedy = "Mend what it says; a fresh kernel may be needed, since JAX reads its settings only once."
        return [Fact("JAX", "does not start")], [Fact("", what, "needed", remedy)]
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
