"""Which notebook, kernel and cell of a front end a cell belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from IPython.core.getipython import get_ipython

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: In an execution request's metadata: the front end put a magic's line above the cell, whose text lacks it.
ADDED_LINE = "jaxprof_added_line"
_CONNECTION_FILE = re.compile(r"kernel-([0-9A-Za-z-]+)\.json")


def notebook_name() -> str:
    """The path of the notebook that this kernel serves, as its front end tells it; empty when none does.

    Jupyter Server sets `JPY_SESSION_NAME` in the kernel's environment; VS Code sets a name in the user's
    namespace.
    """
    shell = get_ipython()
    in_vscode = shell.user_ns.get("__vsc_ipynb_file__", "") if shell is not None else ""
    return str(in_vscode or os.environ.get("JPY_SESSION_NAME", ""))


def kernel_id(shell: InteractiveShell) -> str:
    """The identifier by which a Jupyter server knows this kernel; empty for a terminal.

    Jupyter names the connection file after it: `kernel-<identifier>.json`.
    """
    app: Any = getattr(getattr(shell, "kernel", None), "parent", None)
    found = _CONNECTION_FILE.fullmatch(Path(str(getattr(app, "connection_file", ""))).name)
    return found[1] if found else ""


def cell_id(shell: InteractiveShell) -> str:
    """The front end's identifier of the running cell, which stays when its text changes; empty without."""
    return str(_metadata(shell).get("cellId") or "")


def line_was_added(shell: InteractiveShell, body: str) -> bool:
    """Tell whether the magic's line above `body` stands in no cell: the front end added it for this run."""
    if not _metadata(shell).get(ADDED_LINE):
        return False
    content = _mapping(_request(shell).get("content"))
    return str(content.get("code") or "").rstrip().endswith(body.rstrip())  # not a cell that this one runs


def _request(shell: InteractiveShell) -> Mapping[str, Any]:
    """The message that asked for the running cell; empty in a terminal."""
    return _mapping(getattr(shell, "parent_header", None))


def _metadata(shell: InteractiveShell) -> Mapping[str, Any]:
    return _mapping(_request(shell).get("metadata"))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
