"""Real Jupyter servers for tests, each with this package's extension enabled from the source tree.

Whether the package is installed in the test environment or not, every server gets what an installation would
give it: the extension's switch in its configuration, the version in a dist-info on the path, the labextension
in a directory of JUPYTER_PATH and the magics' start-up file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import requests

from tests.support.captures import unpacked_to

ROOT = Path(__file__).parents[2]
TOKEN = "jaxprof-test-token"
START_TIMEOUT_S = 60
# A server without JupyterLab starts in a fraction of the time.
LAB_EXTENSIONS = ("jupyterlab", "notebook", "notebook_shim", "jupyter_lsp", "jupyter_server_terminals")


@dataclass
class Server:
    """A running Jupyter server."""

    url: str
    """Its base URL, with a slash at the end."""
    base_url: str
    store: Path
    process: subprocess.Popen[bytes]
    log_path: Path
    home: Path
    token: str = TOKEN

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def api(self) -> str:
        return f"{self.url}jaxprof/api/"

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def request(self, method: str, path: str, *, token: bool = True, **kwargs: Any) -> requests.Response:
        """Make one request for `path` below the base URL."""
        headers = dict(kwargs.pop("headers", None) or {})
        if token:
            headers["Authorization"] = f"token {self.token}"
        kwargs.setdefault("timeout", 90)
        kwargs.setdefault("allow_redirects", False)
        return requests.request(method, self.url + path, headers=headers, **kwargs)

    def get(self, path: str, **kwargs: Any) -> requests.Response:
        return self.request("GET", path, **kwargs)

    def get_json(self, path: str, **kwargs: Any) -> Any:
        answer = self.get(path, **kwargs)
        answer.raise_for_status()
        return answer.json()

    def viewer(self, name: str, action: str) -> dict[str, Any]:
        """Start, stop or restart a viewer."""
        answer = self.request("POST", f"jaxprof/api/viewers/{name}", json={"action": action})
        answer.raise_for_status()
        return answer.json()

    def lab_address(self, path: str = "lab") -> str:
        """An address for a browser that logs in by the way."""
        return f"{self.url}{path}?token={self.token}"

    def stop(self, timeout: float = 30) -> int:
        """End the server as a hub does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)


@contextmanager
def running_server(
    base_url: str = "/",
    store: Path | None = None,
    *,
    lab: bool = False,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    python_path: Sequence[Path] = (),
    extension: bool = True,
    interpreter: Sequence[str] = (sys.executable,),
    new_session: bool = True,
) -> Iterator[Server]:
    """Start a Jupyter server (JupyterLab with `lab`) on a free port of 127.0.0.1, and end it at the end.

    `store` is its capture directory (else a temporary one); `arguments` go to its command line, `python_path`
    before everything else on its path; without `extension` it runs as if this package's server half weren't
    enabled.
    """
    # A short path: unix sockets are below it.
    home = Path(tempfile.mkdtemp(prefix="jp-"))
    process = None
    try:
        store = store or home / "store"
        _prepare(home, lab=lab, extension=extension)
        log_path = home / "server.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [*interpreter, *_command(base_url, store, lab=lab), *arguments],
                env={**_environment(home, python_path), **(environment or {})},
                cwd=home / "work",
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=new_session,
            )
        url = await_url(home / "run", process, log_path)
        yield Server(url, base_url, store, process, log_path, home)
    finally:
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _prepare(home: Path, *, lab: bool, extension: bool) -> None:
    """Lay out what an installation would bring."""
    for name in (
        "config/jupyter_server_config.d",
        "data",
        "run",
        "ipython/profile_default/startup",
        "work",
        "site",
    ):
        (home / name).mkdir(parents=True, mode=0o700)
    config = home / "config/jupyter_server_config.d"
    switch = ROOT / "etc/jupyter_server/jaxprof.json"
    if extension:
        shutil.copy(switch, config)
    else:  # said, since this environment may have the package installed, and switched on
        (config / switch.name).write_text(switch.read_text().replace("true", "false"))
    if not lab:
        unused = dict.fromkeys(LAB_EXTENSIONS, False)
        (config / "quick.json").write_text(json.dumps({"ServerApp": {"jpserver_extensions": unused}}))
    startup = ROOT / "etc/ipython/00-jaxprof.py"
    if startup.exists():
        shutil.copy(startup, home / "ipython/profile_default/startup/")
    labextension = ROOT / "jupyterlab_jaxprof/labextension"
    if labextension.exists():
        (home / "share/labextensions").mkdir(parents=True)
        (home / "share/labextensions/jupyterlab-jaxprof").symlink_to(labextension)
    write_dist_info(home / "site")


def _environment(home: Path, python_path: Sequence[Path]) -> dict[str, str]:
    """The whole environment of a server that lives in `home`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "JPY_", "JAXPROF", "IPYTHON"))
    }
    return inherited | {
        "PYTHONPATH": os.pathsep.join(map(str, [*python_path, ROOT, home / "site"])),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_PREFER_ENV_PATH": "0",  # that directory counts for more than the environment's
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "JUPYTER_PATH": str(home / "share"),
        "JUPYTER_TOKEN": TOKEN,
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
    }


def _command(base_url: str, store: Path, *, lab: bool) -> list[str]:
    """What follows the interpreter on the command line."""
    lab_options = [
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    return [
        *("-m", "jupyterlab" if lab else "jupyter_server"),
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"),
        f"--ServerApp.base_url={base_url}",
        f"--JaxProfApp.directory={store}",
        *(lab_options if lab else []),
    ]


def write_dist_info(site: Path) -> None:
    """Write the package's metadata, as an installation does, below `site`."""
    version = json.loads((ROOT / "package.json").read_text())["version"]
    info = site / f"jupyterlab_jaxprof-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: jupyterlab-jaxprof\nVersion: {version}\n")


def await_url(run: Path, process: subprocess.Popen[bytes], log_path: Path) -> str:
    """Wait until the server has written where it listens."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The server ended with {process.returncode}:\n{log_path.read_text()}")
        for info in run.glob(f"jpserver-{process.pid}.json"):
            try:
                data = json.loads(info.read_text())
            except ValueError:
                continue
            for port in _ports(process.pid):
                url = f"http://127.0.0.1:{port}{quote(data['base_url'], safe='/@')}"
                with suppress(requests.ConnectionError):
                    requests.get(f"{url}api", timeout=10)
                    return url
        time.sleep(0.05)
    raise RuntimeError(f"The server didn't start in {START_TIMEOUT_S} s:\n{log_path.read_text()}")


def _ports(pid: int) -> list[int]:
    """The ports that a process listens at; a server of jupyter_server 2.14 writes down the 0 it was given."""
    connections = psutil.Process(pid).net_connections(kind="inet")
    return [found.laddr.port for found in connections if found.status == psutil.CONN_LISTEN]


def unpacked(name: str, directory: Path) -> Path:
    """Unpack the trace `<name>` of tests/data/h200 as `directory/vm.xplane.pb`."""
    return unpacked_to(directory, f"{name}.xplane.pb", "vm.xplane.pb")
