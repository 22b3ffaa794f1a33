"""Which notebook a cell belongs to."""

from __future__ import annotations

import os

from IPython.core.getipython import get_ipython


def notebook_name() -> str:
    """The path of the notebook that this kernel serves, as its front end tells it; empty when none does.

    Jupyter Server sets `JPY_SESSION_NAME` in the kernel's environment; VS Code sets a name in the user's
    namespace.
    """
    shell = get_ipython()
    in_vscode = shell.user_ns.get("__vsc_ipynb_file__", "") if shell is not None else ""
    return str(in_vscode or os.environ.get("JPY_SESSION_NAME", ""))
