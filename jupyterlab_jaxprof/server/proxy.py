"""The entries of jupyter-server-proxy that carry the viewers' traffic under Jupyter's login.

They have no command: this package's server extension starts the processes, since jupyter-server-proxy can
neither stop nor restart one, and leaves them behind when the server is killed.
"""

from __future__ import annotations

from typing import Any

from jupyterlab_jaxprof.server.viewers import sockets


def xprof_entry() -> dict[str, Any]:
    """The entry `xprof`: `<base_url>xprof/`."""
    return _entry("xprof", "XProf")


def tensorboard_entry() -> dict[str, Any]:
    """The entry `jaxprof-tensorboard`: `<base_url>jaxprof-tensorboard/`."""
    return _entry("tensorboard", "TensorBoard")


def _entry(viewer: str, title: str) -> dict[str, Any]:
    return {
        "unix_socket": str(sockets.path(viewer)),
        "timeout": 30,
        # An open tab is no activity: a hub may still end an idle server.
        "update_last_activity": False,
        # The viewers have no business with Jupyter's credentials.
        "request_headers_override": {"Cookie": "", "Authorization": "", "X-XSRFToken": ""},
        "launcher_entry": {"enabled": False, "title": title},
    }
