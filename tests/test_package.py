"""What a built wheel carries, and that installing and uninstalling it is clean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
DATA = "jupyterlab_jaxprof-0.1.0.data/data/"


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made of a source distribution of what git tracks: Node is there for the latter only."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("wheel")
    for name in filter(None, run("git", "ls-files", "-z").split("\0")):
        target = clone / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    # the packages that yarn.lock names are here already: jlpm sees so, and fetches and unpacks none again
    (clone / "node_modules").symlink_to(ROOT / "node_modules")
    # jlpm, which the build calls, is beside this Python
    beside = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", env=beside, cwd=clone)
    (source,) = (clone / "dist").glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "-w", out, source, env={**os.environ, "PATH": ""})
    (built,) = out.glob("*.whl")
    return built


def test_wheel_carries_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        switch = json.loads(
            archive.read(DATA + "etc/jupyter/jupyter_server_config.d/jupyterlab_jaxprof.json")
        )
        package = json.loads(
            archive.read(DATA + "share/jupyter/labextensions/jupyterlab-jaxprof/package.json")
        )
    assert switch == {"ServerApp": {"jpserver_extensions": {"jupyterlab_jaxprof": True}}}
    entry = package["jupyterlab"]["_build"]["load"]
    assert DATA + f"share/jupyter/labextensions/jupyterlab-jaxprof/{entry}" in names
    assert DATA + "etc/ipython/startup/00-jaxprof.py" in names
    assert "jupyterlab_jaxprof/py.typed" in names
    assert "jupyterlab_jaxprof/server/viewers/xprof_app.py" in names
    assert "jupyterlab_jaxprof/docs/patterns/host-starves-device.md" in names
    assert any(name.startswith("jupyterlab_jaxprof/server/static/") for name in names)
    strays = {name for name in names if name.startswith(("tests/", "scripts/")) or "node_modules" in name}
    assert not strays


def test_uninstall_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    pip = (environment / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check")
    # a PATH with no node on it: a built wheel needs none
    env = {"PATH": str(environment / "bin"), "HOME": str(tmp_path)}

    def tree() -> set[str]:
        files = (path.relative_to(environment) for path in environment.rglob("*"))
        return {str(path) for path in files if "__pycache__" not in path.parts}

    before = tree()
    run(*pip, "install", "--no-deps", "--no-index", wheel, env=env)
    installed = tree() - before
    assert "etc/ipython/startup/00-jaxprof.py" in installed
    assert any("labextensions/jupyterlab-jaxprof/static/" in name for name in installed)
    assert "bin/jaxprof" in installed
    run(*pip, "uninstall", "-y", "jupyterlab-jaxprof", env=env)
    # pip keeps directories that other packages may share (share/, etc/); no file may be left
    left = {name for name in tree() - before if (environment / name).is_file()}
    assert not left
