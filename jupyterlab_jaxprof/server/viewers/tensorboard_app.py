"""TensorBoard's process: `python -m jupyterlab_jaxprof.server.viewers.tensorboard_app`.

TensorBoard's command listens on a port that everybody on the machine can reach, and starts a data server
that speaks gRPC. This launcher takes TensorBoard's WSGI application instead, reads the files in this
process, and serves the application on a unix socket only. XProf is in it as its Profile plugin, behind the
same rules as XProf itself.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers import serve
from jupyterlab_jaxprof.server.viewers.bundle import decoded
from jupyterlab_jaxprof.server.viewers.gate import Application, Environ, Gate, Refused, json_response
from jupyterlab_jaxprof.server.viewers.xprof_rules import PREFIX, XProfRules, path_of, require_method

# Every look walks the whole store.
RELOAD_INTERVAL_S = 30

# TensorBoard's pages ask for some data of "the experiment"; there is this one only.
EXPERIMENT = "/experiment/defaultExperimentId"
PAGES = re.compile(r"/([A-Za-z0-9_-]+\.[a-z0-9.]+)?|/(font-roboto|icons?|static)/[A-Za-z0-9_.-]+")
CORE_ROUTES = re.compile(
    r"/data/(environment|logdir|runs|experiments|experiment_runs|plugins_listing|notifications)"
    r"|/data/plugin_entry\.html"
)
PLUGIN_ROUTES = re.compile(r"/data/plugin/[a-z0-9_-]+(/[A-Za-z0-9_.@-]+)+")
# What TensorBoard's own pages ask for by POST, since the question is long; it changes nothing.
POST_ROUTES = re.compile(
    r"/data/plugin/(timeseries/timeSeries|hparams/(experiment|session_groups|metric_evals))"
)


class TensorBoardRules:
    """TensorBoard's rules; its Profile plugin is XProf and has XProf's."""

    title = "TensorBoard"

    def __init__(self, logdir: Path) -> None:
        self._xprof = XProfRules(logdir)

    def check(self, environ: Environ) -> Response | None:
        """Pass TensorBoard's own pages and data, and of its Profile plugin what passes to XProf."""
        path = path_of(environ).removeprefix(EXPERIMENT)
        require_method(environ, ("GET", "HEAD", "POST") if POST_ROUTES.fullmatch(path) else ("GET", "HEAD"))
        if path_of(environ).startswith(EXPERIMENT + PREFIX):
            raise Refused(404, "TensorBoard has no such address.")
        if path == PREFIX or path.startswith(PREFIX + "/"):
            self._xprof.check_route(environ, path[len(PREFIX) :] or "/")
        elif not (PAGES.fullmatch(path) or CORE_ROUTES.fullmatch(path) or PLUGIN_ROUTES.fullmatch(path)):
            raise Refused(404, "TensorBoard has no such address.")
        return None

    def working(self, environ: Environ) -> AbstractContextManager[None]:
        """As for XProf where it is the Profile plugin's work."""
        return self._xprof.working(environ) if path_of(environ).startswith(PREFIX) else nullcontext()

    def explain(self, environ: Environ, error: Exception) -> str:
        """Say what an exception means."""
        if path_of(environ).startswith(PREFIX):
            return self._xprof.explain(environ, error)
        return f"TensorBoard failed on this request ({type(error).__name__}: {str(error)[:300]})."

    def mend(self, environ: Environ, response: Response) -> Response:
        """Mend the Profile plugin's answers as XProf's; its buttons for capturing would be refused."""
        path = path_of(environ)
        if path == f"{PREFIX}/config" and response.status_code == 200:
            config = json.loads(decoded(response.get_data(), response.headers.get("Content-Encoding", "")))
            return json_response(200, {**config, "hideCaptureProfileButton": True})
        return self._xprof.mend(environ, response) if path.startswith(PREFIX) else response


def build(logdir: Path) -> Application:
    """TensorBoard's WSGI application for `logdir`."""
    from tensorboard import default, program

    applications: list[Application] = []

    class NoServer(program.TensorBoardServer):
        """Takes the application where TensorBoard would open a port."""

        def __init__(self, wsgi_app: Application, flags: object) -> None:
            applications.append(wsgi_app)

        def serve_forever(self) -> None:
            """Serve nothing."""

        def get_url(self) -> str:
            """No address."""
            return ""

    tensorboard = program.TensorBoard(plugins=default.get_plugins(), server_class=NoServer)
    tensorboard.configure(
        argv=[
            "tensorboard",
            *("--logdir", str(logdir)),
            "--load_fast=false",  # no data server: it would listen for gRPC
            f"--reload_interval={RELOAD_INTERVAL_S}",
        ]
    )
    tensorboard.launch()
    return applications[0]


def main() -> None:
    """Serve until the Jupyter server ends."""
    options = serve.parser(__doc__ or "").parse_args()
    serve.prepare(options)
    application = build(options.logdir)
    rules = TensorBoardRules(options.logdir)
    serve.serve(Gate(application, rules, external_scripts=not options.no_external_scripts), options)


if __name__ == "__main__":
    sys.exit(main())
