"""Which requests reach XProf, and what becomes of its answers.

XProf answers for any directory that a request names (`session_path`, `run_path`, `run=../..`,
`module_name`), writes caches there, and dials addresses (`capture_profile`). So only the routes and
parameters that its own pages need pass, each parameter with the shape it has there.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from werkzeug.wrappers import Response

from jupyterlab_jaxprof.server.viewers import bundle, caches
from jupyterlab_jaxprof.server.viewers.gate import Environ, Refused, json_response

PREFIX = "/data/plugin/profile"
RUN_ROUTE = "/-/run"

# Pages and assets: the query, if any, is read in the browser only.
STATIC_ROUTES = re.compile(
    r"/|/(local|version|config|runs)|/index\.(html|js)|/(bundle|zone|runtime)\.js|/styles\.css"
    r"|/(materialicons|material_symbols_outlined)\.woff2"
    r"|/trace_viewer_(index\.html|index\.js|v2\.js|v2\.wasm)"
)
DATA_ROUTES = frozenset(["/data", "/data_csv", "/run_tools", "/hosts", "/module_list"])
TOOL_PAGE = re.compile(r"/[A-Za-z0-9_]+[@^#]?")

_FLAG = re.compile(r"true|false|0|1", re.IGNORECASE)
_INTEGER = re.compile(r"\d{1,20}")
_NUMBER = re.compile(r"-?\d{1,20}(\.\d{0,20})?([eE][+-]?\d{1,3})?")
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]{1,4096}")
# One part of a path: XProf makes file names out of these.
_COMPONENT = re.compile(r"(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]{1,512}")
_COMPONENTS = re.compile(r"(?!(.*,)?\.{1,2}(,|$))[^/\\\x00-\x1f\x7f]{1,4096}")

PARAMETERS: dict[str, re.Pattern[str]] = {
    "tag": re.compile(r"[A-Za-z0-9_]{1,64}[@^#]?"),
    "host": _COMPONENT,
    "hosts": _COMPONENTS,
    "module_name": _COMPONENT,
    "node_name": _COMPONENT,
    "program_id": _INTEGER,
    "memory_space": _INTEGER,
    "view_memory_allocation_timeline": _FLAG,
    "graph_width": _INTEGER,
    "show_metadata": _FLAG,
    "merge_fusion": _FLAG,
    "format": _WORD,
    "type": _WORD,
    "tqx": re.compile(r"[A-Za-z0-9_:;,.=-]{1,256}"),
    "group_by": _WORD,
    "perfetto": _FLAG,
    "use_saved_result": _FLAG,
    "full_dma": _FLAG,
    "refresh_suggestion": _FLAG,
    "resolution": _NUMBER,
    "start_time_ms": _NUMBER,
    "end_time_ms": _NUMBER,
    "duration_ms": _NUMBER,
    "unique_id": _WORD,
    "event_name": _TEXT,
    "search_prefix": _TEXT,
    "search_metadata": _FLAG,
    "names_only": _FLAG,
    "device_type": _WORD,
}
READS_ELSEWHERE = ("session_path", "run_path")
CACHE_TOOLS = ("trace_viewer@", "memory_viewer", "graph_viewer")


class XProfRules:
    """XProf's rules for one log directory."""

    title = "XProf"

    def __init__(self, logdir: Path) -> None:
        self._logdir = logdir
        self._bundle: bytes | None = None
        self._bundle_lock = threading.Lock()

    def check(self, environ: Environ) -> Response | None:
        """Pass what XProf's own pages need, with a query that holds nothing else."""
        path = path_of(environ)
        require_method(environ, ("GET", "HEAD"))
        if path in ("", "/"):
            query = environ.get("QUERY_STRING", "")
            return Response(
                status=302, headers={"Location": f"{PREFIX[1:]}/" + (f"?{query}" if query else "")}
            )
        if path == RUN_ROUTE:
            return self._describe_run(environ)
        if path == PREFIX or path.startswith(PREFIX + "/"):
            self.check_route(environ, path[len(PREFIX) :] or "/")
            return None
        raise Refused(404, "XProf has no such address.")

    def check_route(self, environ: Environ, route: str) -> None:
        """Check one of XProf's routes, without its prefix; the query is rewritten to what may pass.

        Raises:
            Refused: if the route or a parameter must not pass.
        """
        if route in REFUSED:
            raise Refused(403, REFUSED[route])
        if route in DATA_ROUTES:
            environ["QUERY_STRING"] = urlencode(self._parameters(environ))
        elif STATIC_ROUTES.fullmatch(route) or TOOL_PAGE.fullmatch(route):
            environ["QUERY_STRING"] = ""
        else:
            raise Refused(404, "XProf has no such address.")

    def _parameters(self, environ: Environ) -> dict[str, str]:
        passed: dict[str, str] = {}
        for name, value in query_of(environ):
            if name in READS_ELSEWHERE and value:
                raise Refused(
                    403, f"'{name}' is refused: XProf may read the captures of this store and nothing else."
                )
            if name in passed or not value:
                continue
            if name == "run":
                self.run_directory(value)
            elif name not in PARAMETERS:
                continue  # XProf's pages send more than its server reads
            elif not PARAMETERS[name].fullmatch(value):
                raise Refused(400, f"The parameter '{name}' has a value that XProf's pages don't send.")
            passed[name] = value
        if "run" not in passed:
            raise Refused(400, "The address names no run: choose a capture.")
        return passed

    def run_directory(self, run: str) -> Path:
        """The directory of a run `<capture>/<session>` inside the log directory, no link on the way or in it.

        Raises:
            Refused: 404 if there is no such run, 403 if a link leads elsewhere.
        """
        *parents, session = parts = run.split("/")
        if not all(_COMPONENT.fullmatch(part) for part in parts) or len(run) > 1024:
            raise Refused(404, "There is no such run in this store.")
        directory = self._logdir
        try:
            for part in (*parents, "plugins", "profile", session):
                directory = directory / part
                if stat.S_ISLNK(directory.lstat().st_mode):
                    raise Refused(
                        403, "This run is a symbolic link; XProf may read this store's own files only."
                    )
            with os.scandir(directory) as entries:
                if any(entry.is_symlink() for entry in entries):
                    raise Refused(
                        403, "This run holds a symbolic link; XProf may read this store's own files only."
                    )
        except (OSError, ValueError) as error:
            raise Refused(
                404, f"There is no run '{run[:120]}' in this store: it may have been deleted."
            ) from error
        return directory

    def _describe_run(self, environ: Environ) -> Response:
        """`/-/run?run=`: what XProf doesn't say of a run: `{problem, notice}`, each a sentence or null."""
        run = dict(query_of(environ)).get("run", "")
        directory = self.run_directory(run)
        return json_response(200, {"problem": trace_problem(directory), "notice": caches_notice(directory)})

    def working(self, environ: Environ) -> AbstractContextManager[None]:
        """Mark the run's directory while XProf may write caches there."""
        if environ["PATH_INFO"].removeprefix(PREFIX) not in DATA_ROUTES:
            return nullcontext()
        return caches.at_work(self.run_directory(dict(query_of(environ))["run"]))

    def explain(self, environ: Environ, error: Exception) -> str:
        """Say what an exception of XProf means."""
        query = dict(query_of(environ))
        tool = query.get("tag", "this tool").rstrip("@^#")
        if isinstance(error, AssertionError):
            return f"XProf shows {tool} for one host at a time: choose a host."
        return f"XProf failed on this request ({type(error).__name__}: {str(error)[:300]})."

    def mend(self, environ: Environ, response: Response) -> Response:
        """Mend the addresses in XProf's script, and explain its errors."""
        route = environ["PATH_INFO"][len(PREFIX) :]
        if route == "/bundle.js":
            return self._mended_bundle(response)
        if response.mimetype == "text/html" and route not in DATA_ROUTES:
            trace_viewer = route == "/trace_viewer_index.html"
            patches = bundle.TRACE_VIEWER_PATCHES if trace_viewer else bundle.PAGE_PATCHES
            encoding = response.headers.get("Content-Encoding", "")
            response.set_data(bundle.mended(response.get_data(), encoding, patches))
            response.headers["Content-Encoding"] = "gzip"
        if route in DATA_ROUTES and (response.status_code >= 400 or route == "/run_tools"):
            return self._explained(environ, route, response)
        return response

    def _mended_bundle(self, response: Response) -> Response:
        if response.status_code != 200:
            return response
        with self._bundle_lock:
            if self._bundle is None:
                self._bundle = bundle.mended(
                    response.get_data(), response.headers.get("Content-Encoding", "")
                )
            response.set_data(self._bundle)
        response.headers["Content-Encoding"] = "gzip"
        return response

    def _explained(self, environ: Environ, route: str, response: Response) -> Response:
        """An error, or an empty list of tools, with what is known of the run instead of XProf's few words."""
        text = bundle.decoded(response.get_data(), response.headers.get("Content-Encoding", ""))
        text = text.decode("utf-8", "replace").strip()
        if response.status_code < 400 and text != "[]":
            return response
        query = dict(query_of(environ))
        directory = self.run_directory(query["run"])
        reason = trace_problem(directory)
        if reason is None and route == "/run_tools":
            reason = "XProf can't read this trace: its file is damaged or was cut off. Capture it again."
        if reason is None and "Host must be specified" in text:
            reason = "This capture has several hosts: choose one."
        if reason is None and query.get("tag") in CACHE_TOOLS:
            reason = caches_notice(directory)
        if reason is None:
            tool = query.get("tag", "this tool")
            reason = f"XProf can't show {tool.rstrip('@^#')} of this trace; it says '{text[:300]}'."
        status = response.status_code if response.status_code >= 400 else 422
        return json_response(status, {"message": reason})


REFUSED = {
    "/capture_profile": "Capturing from here is refused: it would let any page dial any address. "
    "Use %%jaxtrace --remote HOST:PORT in a notebook instead.",
    "/generate_cache": "Making caches on request is refused; XProf makes those that it needs.",
}


def trace_problem(directory: Path) -> str | None:
    """Why a run's trace can't be shown, as far as its files tell, or None."""
    traces = sorted(directory.glob("*.xplane.pb"))
    if not traces:
        return "This capture has no trace file (*.xplane.pb): there is nothing that XProf could show."
    empty = [trace.name for trace in traces if trace.stat().st_size == 0]
    if not empty:
        return None
    return (
        f"The trace file {empty[0]} is empty (0 bytes): the profiler reported success but wrote nothing, as "
        "it does for traces over 2 GB. Capture fewer steps."
    )


def caches_notice(directory: Path) -> str | None:
    """What a run's read-only directory or a full disk means, or None where caches can be written."""
    if os.access(directory, os.W_OK | os.X_OK):
        return _full_disk_notice(directory)
    return (
        f"The directory {directory} can't be written, and XProf keeps its caches there: trace_viewer, "
        "memory_viewer and graph_viewer stay empty. Make it writable, or copy the capture to a store that is."
    )


def _full_disk_notice(directory: Path) -> str | None:
    """What a full disk means, where XProf itself says "No Data"."""
    room = caches.room(directory)
    if room.suffices:
        return None
    return (
        f"The disk of {directory} has {room.free_bytes / 1e6:,.1f} MB free, and XProf keeps caches there, "
        f"which take about as much as the trace ({room.trace_bytes / 1e6:,.1f} MB): trace_viewer, "
        "memory_viewer and graph_viewer may stay empty. Delete captures, or make room otherwise, and open it "
        "again."
    )


def path_of(environ: Environ) -> str:
    """The request's path as text.

    Raises:
        Refused: if it isn't UTF-8.
    """
    try:
        return environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8")
    except UnicodeError as error:
        raise Refused(400, "The address is not valid text.") from error


def query_of(environ: Environ) -> list[tuple[str, str]]:
    """The query's names and values, in order.

    Raises:
        Refused: if it isn't UTF-8, or has very many parameters.
    """
    try:
        return parse_qsl(
            environ.get("QUERY_STRING", ""), keep_blank_values=True, errors="strict", max_num_fields=100
        )
    except ValueError as error:
        raise Refused(400, "The query is not valid text.") from error


def require_method(environ: Environ, methods: tuple[str, ...]) -> None:
    """Refuse any other method: nothing that a viewer's own page needs changes anything.

    Raises:
        Refused: with status 405.
    """
    if environ.get("REQUEST_METHOD") not in methods:
        raise Refused(405, "This address is for reading only.")
