"""A viewer for tests, run as a viewer is: it sleeps, grows, fails and tells what it got, when asked to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import parse_qs

from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers import serve
from jupyterlab_jaxprof.server.viewers.gate import Gate

kept: list[bytearray] = []


class Rules:
    title = "Echo"

    def check(self, environ):
        return None

    def working(self, environ):
        return nullcontext()

    def explain(self, environ, error):
        return f"Echo failed: {error}."

    def mend(self, environ, response):
        return response


def application(environ, start_response):
    query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
    time.sleep(float(query.get("sleep", 0)))
    kept.append(bytearray(os.urandom(1024)) * (int(query.get("grow_mib", 0)) * 1024))
    if "exit" in query:
        os._exit(int(query["exit"]))
    if "child" in query:
        subprocess.Popen(["sleep", "600"])
    data = {
        "environment": dict(os.environ),
        "pid": os.getpid(),
        "umask": os.umask(0o077),
        "cwd": str(Path.cwd()),
    }
    return Response(json.dumps(data), content_type="application/json")(environ, start_response)


def main():
    arguments = serve.parser("Echo")
    arguments.add_argument("--delay", type=float, default=0)
    arguments.add_argument("--fail", default="")
    arguments.add_argument("--without-prctl", action="store_true", help="end with the parent as on macOS")
    options = arguments.parse_args()
    if options.without_prctl:
        sys.platform = "darwin"
    serve.prepare(options)
    if options.fail:
        print("a line before", file=sys.stderr)
        raise SystemExit(options.fail)
    time.sleep(options.delay)
    serve.serve(Gate(application, Rules(), notice="an echo"), options)


if __name__ == "__main__":
    main()
