"""Write the list of the doctor's checks into docs/doctor.md: `python scripts/doctor_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from jupyterlab_jaxprof.environment import SUBJECTS, Check
from jupyterlab_jaxprof.reports.doctor import CHECKS

PAGE = Path(__file__).parents[1] / "docs/doctor.md"
BEGIN, END = "<!-- checks: scripts/doctor_page.py writes them -->\n", "<!-- end of checks -->\n"


def table(title: str, checks: tuple[Check, ...]) -> str:
    """One subject's checks."""
    rows = "\n".join(f"| `{check.name}` | {check.finds} |" for check in checks)
    return f"### {title}\n\n| check | what it tells of |\n| --- | --- |\n{rows}\n"


def tables() -> str:
    """All checks, a table for each subject."""
    subjects = {**SUBJECTS, "JAX, XProf and the store": CHECKS}
    return "\n" + "\n".join(table(title, checks) for title, checks in subjects.items()) + "\n"


def page(text: str) -> str:
    """Give the page with the list as it is now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + tables() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
