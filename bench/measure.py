"""`python -m bench.measure GROUP [--long]`: measure one group, and write each figure as a line of JSON.

The lines go to what was the standard output when the process began; whatever a library or a cell prints
goes to the standard error.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module


def main(group: str, long: bool) -> None:
    """Measure, a line for each figure as soon as it is there."""
    with os.fdopen(os.dup(1), "w") as lines:
        os.dup2(2, 1)
        for figure in import_module(f"bench.{group}").figures(long):
            print(json.dumps(asdict(figure)), file=lines, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], "--long" in sys.argv)
