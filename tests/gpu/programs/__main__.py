"""Run one program and record it: `python -m tests.gpu.programs NAME --out DIRECTORY`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.gpu.programs.recording import PROGRAMS, Recording
from tests.gpu.programs.table import table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.programs", description=__doc__)
    parser.add_argument("name", choices=[*table()])
    parser.add_argument("--out", type=Path, required=True, help="where the trace and facts.json go")
    parser.add_argument("--recorder", choices=["xplane", "nsys", "none"], default="xplane")
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    parser.add_argument(
        "--lock", type=Path, help="a file: only one of those that name it is recorded at a time"
    )
    arguments = parser.parse_args()
    chosen = PROGRAMS[arguments.name]
    arguments.out.mkdir(parents=True, exist_ok=True)
    record = Recording(arguments.out, arguments.recorder, chosen.python, arguments.small, arguments.lock)
    record.prepare()
    chosen.run(record)
    (arguments.out / "facts.json").write_text(json.dumps(record.facts()))


if __name__ == "__main__":
    main()
