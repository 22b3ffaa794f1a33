"""docs/performance.md: the last whole run with its machine, and what was recorded on GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from bench import GROUPS
from bench.recorded import DATE, MACHINE, RECORDED
from bench.table import Figure, markdown_table

OPENING = """# Performance

What jupyterlab-jaxprof costs. Each figure of a run is the median of several measurements, beside a peer
that was measured in turns with it on the same machine, or held against a limit; a limit that is missed is
marked, and makes the command end with 1. This page is written by the command itself:

```bash
make bench                                          # all figures, in ten minutes
.venv/bin/python -m bench --only store              # those of one group
.venv/bin/python -m bench --json                    # for programs
.venv/bin/python -m bench --long                    # transfers of 3 GB, three times the rounds
.venv/bin/python -m bench --write docs/performance.md
```

Run it on a machine that does nothing else: a peer slows down as we do, a limit in milliseconds knows nothing
of that.
"""


def document(figures: Sequence[Figure], machine: Mapping[str, str], long: bool) -> str:
    """The whole page, in Markdown."""
    missed = [figure for figure in figures if not figure.ok]
    kept = (
        f"all {len(figures)} within their limits" if not missed else f"{len(missed)} of {len(figures)} missed"
    )
    with_options = " with `--long`" if long else ""
    parts = [
        OPENING,
        f"## The last run\n\n{datetime.now(UTC):%d %B %Y}{with_options}: {kept}.\n",
        "| machine | |\n| --- | --- |\n"
        + "".join(f"| {name} | {text} |\n" for name, text in machine.items()),
    ]
    for group, what in GROUPS.items():
        of_it = [figure for figure in figures if figure.group == group]
        parts.append(f"### {what[0].upper()}{what[1:]} (`{group}`)\n\n{markdown_table(of_it)}\n")
    parts.append(
        f"## Recorded on a GPU\n\nNo part of a run: recorded on {DATE} on {MACHINE}.\n\n"
        "| figure | recorded | aim |\n| --- | --- | --- |\n"
        + "".join(f"| {name} | {value} | {aim} |\n" for name, value, aim in RECORDED)
    )
    return "\n".join(parts)
