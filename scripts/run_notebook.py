"""Run a notebook headless and print each cell and what it showed; exit status 1 when a cell fails."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def shown(output: nbformat.NotebookNode) -> str:
    """The plain-text form of one output, without a trailing newline."""
    if output.output_type == "stream":
        return str(output.text).rstrip("\n")
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data.get("text/plain", "")).rstrip("\n")


def print_cell(cell: nbformat.NotebookNode, **_: object) -> None:
    """Print one executed code cell: its source behind `>`, then its outputs."""
    print("".join(f"> {line}\n" for line in cell.source.splitlines()), end="")
    for output in cell.outputs:
        print(shown(output))
    print(flush=True)


def main(path: Path) -> int:
    """Run the notebook at `path` in a kernel of this environment."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        # ipykernel warns of whoever listens on loopback; nothing secret is said here
        extra_arguments=["--log-level=ERROR"],
        timeout=600,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_executed=print_cell,
    )
    try:
        client.execute()
    except CellExecutionError:
        print(f"A cell of {path} failed: its error stands above.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
