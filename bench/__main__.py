"""`python -m bench`: measure, print the table, and end with 1 where a row misses its limit."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from bench import GROUPS
from bench.document import document
from bench.machine import describe, load
from bench.run import measured
from bench.table import text_table


def main() -> int:
    """Run the command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="What jupyterlab-jaxprof costs, each figure against a peer or a limit of the same run.",
        epilog="Groups: " + "; ".join(f"{group}: {what}" for group, what in GROUPS.items()) + ".",
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, metavar="GROUP", help="this group alone; may be repeated"
    )
    parser.add_argument("--long", action="store_true", help="files of 3 GB where else 1 GB does; more rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="keep the table there (docs/performance.md)"
    )
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write keeps a whole run: leave out --only.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what it has started ends with it
    before, machine = load(), describe()
    if before > 0.5 * (os.cpu_count() or 1):
        print(
            f"The load of this machine is {before:.1f}: limits in seconds may be missed for it.",
            file=sys.stderr,
        )
    groups = [group for group in GROUPS if not options.only or group in options.only]
    figures = measured(groups, options.long, lambda line: print(line, file=sys.stderr, flush=True))
    machine["load when it began"] = f"{before:.1f}"
    if options.json:
        print(json.dumps({"machine": machine, "figures": [one.to_json() for one in figures]}, indent=1))
    else:
        print(text_table(figures))
    if options.write:
        options.write.write_text(document(figures, machine, options.long))
    missed = [figure.name for figure in figures if not figure.ok]
    if missed:
        print(
            f"{len(missed)} of {len(figures)} figures miss their limit: {'; '.join(missed)}", file=sys.stderr
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
