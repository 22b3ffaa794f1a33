"""`%jaxprof`: what there is here, what is amiss, what a capture says, and what changed between two."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jupyterlab_jaxprof import environment, reports
from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.cards.sheet import Fact, Section, Sheet
from jupyterlab_jaxprof.reports.doctor import store_section

from . import jaxprof_install, jaxprof_report, registry
from .arguments import usage_error
from .jaxprof_arguments import HELP

_RESTART = environment.Remedy(
    "Restart the kernel and set it in the first cell, before JAX is imported.", "%env NAME=VALUE"
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["HELP", "line_magic"]


def line_magic(shell: InteractiveShell, line: str) -> object:
    """Run `%jaxprof line`; raises UsageError for what it does not know."""
    __tracebackhide__ = True
    command, _, rest = line.strip().partition(" ")
    words = rest.split()
    if command in ("help", "--help", "-h") or not {"--help", "-h"}.isdisjoint(words):
        sys.stdout.write(HELP)
    elif command == "report":
        jaxprof_report.report(shell, rest)
    elif command == "compare":
        jaxprof_report.compare(shell, rest)
    elif command == "import":
        jaxprof_report.import_file(shell, rest)
    elif command == "explain":
        jaxprof_report.explain(shell, rest)
    elif command == "install-nsys-kernel":
        jaxprof_install.install(rest)
    elif not command:
        return status(shell)
    elif command == "doctor" and not words:
        return doctor(shell)
    elif command == "doctor":
        raise usage_error("%jaxprof doctor", f"it takes no argument, and there is {rest.strip()!r}.")
    else:
        raise usage_error(
            "%jaxprof",
            f"there is no {command!r}. Write %jaxprof, or %jaxprof doctor, report, compare, import, explain "
            "or install-nsys-kernel.",
        )
    return None


def status(shell: InteractiveShell) -> Sheet:
    """Say in a few lines what there is: version, store, magics."""
    version = environment.own_version()
    hint = Fact("", "%jaxprof doctor looks at tools, versions, devices and permissions, and says what helps.")
    sections = [
        store_section(Store.default()),
        Section("Magics", _magic_facts(shell)),
        Section("", [hint]),
    ]
    return Sheet(f"jupyterlab-jaxprof {version or '(from its source, not installed)'}", sections)


def doctor(shell: InteractiveShell) -> Sheet:
    """Look at everything that a profile depends on. The first section names what is amiss."""
    from jupyterlab_jaxprof import tracing

    store = Store.default()
    checked = reports.check_up(store, tracing.devices, _set_too_late)
    return reports.doctor(checked, store, _magic_facts(shell))


def _set_too_late() -> list[environment.Problem]:
    """Tell of the variables that JAX read before they were set."""
    from jupyterlab_jaxprof.timing.variables import VARIABLES

    return [
        {"check": "set-too-late", **environment.problem(what, _RESTART)} for what in VARIABLES.sentences()
    ]


def _magic_facts(shell: InteractiveShell) -> list[Fact]:
    names = registry.status(shell)
    ours = ", ".join(name.name for name in names if name.active)
    others = [Fact("", str(name), "advice" if name.owner else "") for name in names if not name.active]
    return [Fact("active", ours or "none"), *others]
