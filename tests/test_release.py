"""A release: built twice to the same bytes, installed into a fresh environment, and taken out again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # it builds the front end

ROOT = Path(__file__).parents[1]
PACKAGE: dict[str, Any] = json.loads((ROOT / "package.json").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DATA = f"jupyterlab_jaxprof-{PACKAGE['version']}.data/data/"
EXTENSION = DATA + "share/jupyter/labextensions/jupyterlab-jaxprof/"
# those that ask for no more than their text beside the code: they go with BSD-3-Clause
LICENCES = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"}
BUNDLE_MOST_BYTES = 400_000
WHEEL_MOST_BYTES = 1_500_000


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT, umask: int = 0o022) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, umask=umask)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Release:
    """What was built of one tree in two places."""

    sdist: Path
    sdist_elsewhere: Path
    wheel: Path
    """Made of the source distribution, with nothing on the PATH: no Node."""
    wheel_of_tree: Path

    def wheel_files(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def metadata(self) -> Message:
        (name,) = [name for name in self.wheel_files() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(self.wheel_files()[name])


def clone(place: Path) -> Path:
    """Copy what git tracks, and borrow the packages that yarn.lock names: jlpm fetches none again."""
    for name in filter(None, run("git", "ls-files", "-z").split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    (place / "node_modules").symlink_to(ROOT / "node_modules")
    return place


def only(place: Path, pattern: str) -> Path:
    (found,) = place.glob(pattern)
    return found


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    here, there = clone(tmp_path_factory.mktemp("here")), clone(tmp_path_factory.mktemp("there"))
    # jlpm, which the build calls, is beside this Python
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": "1800000000",
    }
    built = env | {"HATCH_BUILD_NO_HOOKS": "true"}
    build = (sys.executable, "-m", "hatchling", "build", "-t")
    run(*build, "sdist", env=env, cwd=here)
    # The types are checked once: the bundle is what could tell of its place, its time or a strict umask.
    shutil.copytree(here / "lib", there / "lib")
    run("jupyter-builder", "build", ".", env=env, cwd=there, umask=0o077)
    run(*build, "sdist", env=built, cwd=there, umask=0o077)
    run(*build, "wheel", "-d", "of-tree", env=built, cwd=here)
    pip = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        here / "out",
    )
    run(*pip, only(here, "dist/*.tar.gz"), env=env | {"PATH": ""})
    return Release(
        only(here, "dist/*.tar.gz"),
        only(there, "dist/*.tar.gz"),
        only(here, "out/*.whl"),
        only(here, "of-tree/*.whl"),
    )


def test_the_same_tree_gives_the_same_bytes(release: Release) -> None:
    assert release.sdist.read_bytes() == release.sdist_elsewhere.read_bytes()
    assert release.wheel.read_bytes() == release.wheel_of_tree.read_bytes()


def test_the_index_would_take_it(release: Release) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", release.sdist, release.wheel)


def test_the_wheel_carries_everything_and_no_more(release: Release) -> None:
    files = release.wheel_files()
    names = set(files)
    switch = json.loads(files[DATA + "etc/jupyter/jupyter_server_config.d/jupyterlab_jaxprof.json"])
    assert switch == {"ServerApp": {"jpserver_extensions": {"jupyterlab_jaxprof": True}}}
    entry = json.loads(files[EXTENSION + "package.json"])["jupyterlab"]["_build"]["load"]
    assert EXTENSION + entry in names
    assert DATA + "etc/ipython/startup/00-jaxprof.py" in names
    assert "jupyterlab_jaxprof/py.typed" in names
    assert "jupyterlab_jaxprof/server/viewers/xprof_app.py" in names
    assert "jupyterlab_jaxprof/docs/patterns/host-starves-device.md" in names
    assert any(name.startswith("jupyterlab_jaxprof/server/static/") for name in names)
    assert {name.split("/")[0] for name in names} == {
        "jupyterlab_jaxprof",
        DATA.split("/")[0],
        DATA.replace(".data/data/", ".dist-info"),
    }
    assert not [name for name in names if re.search(r"node_modules|\.map$|\.tsx?$|__pycache__|/tests/", name)]
    places = [str(release.sdist.parents[1]), str(ROOT / "node_modules")]
    assert not [name for name, content in files.items() for place in places if place.encode() in content]
    bundle_bytes = sum(
        len(content) for name, content in files.items() if name.startswith(EXTENSION + "static")
    )
    assert bundle_bytes < BUNDLE_MOST_BYTES
    assert release.wheel.stat().st_size < WHEEL_MOST_BYTES


def test_the_source_distribution_needs_no_node(release: Release) -> None:
    with tarfile.open(release.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "jupyterlab_jaxprof/labextension/package.json" in names
    assert {"NOTICE", "LICENSE", "package.json", "yarn.lock", "labextension/src/index.ts"} <= names
    assert not [name for name in names if name.startswith(("node_modules", "lib/", "dist", ".git/"))]


def test_what_the_extension_manager_shows(release: Release) -> None:
    metadata, files = release.metadata(), release.wheel_files()
    assert metadata["Version"] == PACKAGE["version"]  # the one place where it stands
    assert metadata["Summary"] == PACKAGE["description"]
    assert sorted(metadata["Keywords"].split(",")) == sorted(PACKAGE["keywords"])
    assert metadata["License-Expression"] == PACKAGE["license"]
    assert "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt" in metadata.get_all(
        "Classifier", []
    )
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert urls["Homepage"] == urls["Documentation"] == PACKAGE["homepage"]
    assert urls["Source Code"] + ".git" == PACKAGE["repository"]["url"]
    assert urls["Bug Tracker"] == PACKAGE["bugs"]["url"]
    assert "jupyterlab-extension" in PACKAGE["keywords"]
    assert PACKAGE["jupyterlab"]["discovery"]["server"]["base"]["name"] == PROJECT["name"]
    assert json.loads(files[EXTENSION + "install.json"])["packageName"] == PROJECT["name"]


def test_the_readme_stands_alone_on_an_index(release: Release) -> None:
    readme = release.metadata().get_payload(decode=True)
    assert isinstance(readme, bytes)
    links = re.findall(r'\]\(([^)]+)\)|(?:src|srcset|href)="([^"]+)"', readme.decode())
    assert links
    assert [
        link for found in links for link in found if link and not link.startswith(("https://", "#"))
    ] == []
    # and in a checkout each leads to a file
    for found in re.findall(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text()):
        link = "".join(found).partition("#")[0]
        assert not link or link.startswith("https://") or (ROOT / link).exists(), link


def test_the_notice_tells_what_the_bundle_contains(release: Release) -> None:
    bundled = json.loads(release.wheel_files()[EXTENSION + "static/third-party-licenses.json"])["packages"]
    notice = (ROOT / "NOTICE").read_text()
    assert bundled
    assert set(re.findall(r"^-{80}\n(\S+) \(", notice, re.MULTILINE)) == {one["name"] for one in bundled}
    for one in bundled:
        assert one["licenseId"] in LICENCES, one["name"]
        assert f"{one['name']} ({one['licenseId']})\n\n{one['extractedText'].strip()}\n" in notice
    (kept,) = [name for name in release.wheel_files() if name.endswith(".dist-info/licenses/NOTICE")]
    assert release.wheel_files()[kept].decode() == notice


def test_the_changelog_tells_of_this_version() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert PACKAGE["version"] in versions


def test_installed_and_taken_out_again(release: Release, tmp_path: Path) -> None:
    """A fresh environment that sees this one's packages, but none of its Jupyter and IPython directories."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin/python"
    (site,) = environment.glob("lib/python*/site-packages")
    borrowed = tmp_path / "borrowed"
    borrowed.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith("jupyterlab_jaxprof"):  # this one may be there, too
            (borrowed / package.name).symlink_to(package)
    (site / "borrowed.pth").write_text(str(borrowed))
    env = {"PATH": str(environment / "bin"), "HOME": str(tmp_path)}  # no Node
    pip = (sys.executable, "-m", "pip", "--python", python, "-q", "--disable-pip-version-check")

    def tree() -> set[str]:
        files = (path.relative_to(environment) for path in environment.rglob("*"))
        return {str(path) for path in files if "__pycache__" not in path.parts}

    before = tree()
    run(*pip, "install", "--no-deps", "--no-index", "--no-compile", release.wheel, env=env)
    installed = tree() - before
    assert "etc/ipython/startup/00-jaxprof.py" in installed
    assert "bin/jaxprof" in installed

    magics = "sorted(get_ipython().magics_manager.magics['cell'])"
    said = run(python, "-m", "IPython", "--no-banner", "-c", f"print({magics})", env=env, cwd=tmp_path)
    assert {"jaxtime", "jaxtrace", "jaxsweep", "nsys"} <= set(re.findall(r"'(\w+)'", said))
    assert PACKAGE["version"] in run(environment / "bin/jaxprof", "--version", env=env, cwd=tmp_path)
    for module, name in (
        ("jupyterlab.labextensions", "jupyterlab-jaxprof v"),
        ("jupyter_server.extension.serverextension", "jupyterlab_jaxprof "),
    ):
        command = [python, "-c", f"from {module} import main; main()", "list"]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
        listed = re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)
        lines = [line for line in listed.splitlines() if f"{name}{PACKAGE['version']}" in line]
        assert lines, listed
        assert all("OK" in line for line in lines), listed

    run(*pip, "uninstall", "-y", "jupyterlab-jaxprof", env=env)
    # pip keeps directories that other packages may share (share/, etc/); no file may be left
    assert not {name for name in tree() - before if (environment / name).is_file()}
