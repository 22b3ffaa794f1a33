"""XProf's process, `python -m jupyterlab_jaxprof.server.viewers.xprof_app`; all that is private of XProf.

XProf's command listens on all interfaces, for HTTP and, without any authentication, for gRPC. This launcher
builds XProf's WSGI application instead and serves it on a unix socket only. Neither XProf's gRPC server nor
its stubs are started: with stubs that lead nowhere, every tool over several hosts would wait for many
seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterlab_jaxprof.environment import XPROF_TESTED
from jupyterlab_jaxprof.server.viewers import serve
from jupyterlab_jaxprof.server.viewers.gate import Gate
from jupyterlab_jaxprof.server.viewers.xprof_rules import XProfRules


def build(logdir: Path) -> tuple[Callable[..., Any], str]:
    """XProf's WSGI application for `logdir`, and a notice if its version isn't one that was tested."""
    from xprof import server, version

    context = server.TBContext(str(logdir), server.DataProvider(str(logdir)), server.TBContext.Flags(False))
    context.hide_capture_profile_button = True
    plugin = server.ProfilePluginLoader().load(context)
    if plugin is None:
        raise SystemExit("XProf's plugin could not be loaded; the lines above say why.")
    installed: str = version.__version__
    if installed.split(".")[:2] == XPROF_TESTED.split("."):
        return server.make_wsgi_app(plugin), ""
    notice = f"XProf {installed} may behave differently: this package was tested with {XPROF_TESTED}."
    return server.make_wsgi_app(plugin), notice


def main() -> None:
    """Serve until the Jupyter server ends."""
    options = serve.parser(__doc__ or "").parse_args()
    serve.prepare(options)
    application, notice = build(options.logdir)
    gate = Gate(
        application,
        XProfRules(options.logdir),
        notice=notice,
        external_scripts=not options.no_external_scripts,
    )
    serve.serve(gate, options)


if __name__ == "__main__":
    sys.exit(main())
