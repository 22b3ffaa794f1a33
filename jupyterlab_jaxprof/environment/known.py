"""Everything that the doctor looks at, one file a subject; docs/doctor.md lists it."""

from __future__ import annotations

from . import gpu, jupyter, nsight, packages, permissions, settings
from .problem import Check, Found, Problem

#: By the heading that they have in docs/doctor.md.
SUBJECTS: dict[str, tuple[Check, ...]] = {
    "Packages": packages.CHECKS,
    "Jupyter, and several environments": jupyter.CHECKS,
    "GPUs, driver and CUDA": gpu.CHECKS,
    "Environment variables": settings.CHECKS,
    "Permissions, and what else runs": permissions.CHECKS,
    "Nsight Systems": nsight.CHECKS,
}


def problems(found: Found) -> list[Problem]:
    """Give what is known to go wrong with what was found, each with the name of its check and its remedy."""
    return [
        {"check": check.name, **one}
        for checks in SUBJECTS.values()
        for check in checks
        for one in check.look(found)
    ]
