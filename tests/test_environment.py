"""The environment report: honest about what is there, silent about secrets, and without jax."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

import jupyterlab_jaxprof
from jupyterlab_jaxprof import environment
from jupyterlab_jaxprof.environment import command, nsys
from jupyterlab_jaxprof.environment.versions import satisfies


def test_the_report_imports_no_jax_and_is_json() -> None:
    program = (
        "import json, sys; from jupyterlab_jaxprof import environment; report = environment.report();"
        "heavy = {'jax', 'jaxlib', 'numpy', 'xprof'} & set(sys.modules);"
        "print(json.dumps([report, sorted(heavy)]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    report, heavy = json.loads(done.stdout)
    assert heavy == []
    import jax

    assert report["versions"]["jax"] == jax.__version__
    assert report["executable"] == sys.executable
    assert Path(report["tools"]["xprof"]["path"]).is_file()
    for problem in report["problems"]:
        assert problem["what"].endswith(".")
        assert problem["remedy"].endswith(".")


def test_only_variables_that_matter_are_told() -> None:
    told = {
        "XLA_FLAGS": "--a=1", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5", "XLA_CLIENT_MEM_FRACTION": ".4",
        "JAX_PLATFORMS": "cpu", "JAXPROF_DIR": "/x", "LD_PRELOAD": "", "CUDA_VISIBLE_DEVICES": "0",
    }  # fmt: skip
    secret = {
        "AWS_SECRET_ACCESS_KEY": "s", "JUPYTERHUB_API_TOKEN": "s", "GITHUB_TOKEN": "s", "HOME": "/root",
        "PATH": "/bin",
        "JAXPROF_TOKEN": "s", "JAX_API_KEY": "s", "MY_JAX_PLATFORMS": "s", "XLA_FLAGS_OLD": "s",
    }  # fmt: skip
    assert environment.variables(told | secret) == told


@pytest.mark.parametrize(
    "version", ["2.24.2", "2.23", "2.25.0", "2.25.0rc1", "2.24.0.post1", "1", "10.0", "0.10.2+cuda"]
)
@pytest.mark.parametrize(
    "specifiers",
    [
        ">=2.24,<2.25",
        "<=0.10.2,>=0.10.1",
        "==2.24.*",
        "!=2.24.2",
        "~=2.24",
        "~=2.24.1",
        ">1",
        "",
        "==2.25.0",
        "<10",
    ],
)
def test_versions_are_compared_as_pip_does(version: str, specifiers: str) -> None:
    release = version.replace("rc1", "").replace(".post1", "").replace("+cuda", "")  # what we say we look at
    assert satisfies(version, specifiers) == SpecifierSet(specifiers).contains(release, prereleases=True)


def tool(place: Path, name: str, script: str) -> None:
    """Put a stand-in for a tool on the PATH, for what the machine at hand can't show."""
    path = place / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return tmp_path


def sentences(report: dict[str, Any]) -> str:
    return "\n".join(problem["what"] for problem in report["problems"])


def test_gpus_are_as_nvidia_smi_tells(tools: Path) -> None:
    tool(
        tools,
        "nvidia-smi",
        "echo '0, NVIDIA H200, 143771, 570.1, Disabled'; echo '1, A100, [N/A], 570.1, Enabled'",
    )
    report = environment.report()
    assert report["gpus"] == [
        {
            "index": "0",
            "name": "NVIDIA H200",
            "memory_bytes": 143771 * 2**20,
            "driver": "570.1",
            "mig": False,
        },
        {"index": "1", "name": "A100", "memory_bytes": None, "driver": "570.1", "mig": True},
    ]
    assert "JAX has no CUDA plugin" in sentences(report)
    assert "No NVIDIA GPU" not in sentences(report)


@pytest.mark.parametrize(
    "script", ["echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "sleep 9"]
)
def test_an_nvidia_smi_that_fails_is_a_problem(
    tools: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    if "sleep" in script:
        monkeypatch.setattr(command, "_TIMEOUT_S", 0.5)
    tool(tools, "nvidia-smi", script)
    report = environment.report()
    assert report["gpus"] is None
    assert "nvidia-smi does not work here" in sentences(report)
    assert ("version mismatch" if "mismatch" in script else "no answer within") in sentences(report)


def test_an_nsys_that_fails_or_tells_no_version(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys, "PLACES", ())
    monkeypatch.setenv("PATH", str(tools))
    tool(tools, "nsys", "exit 3")
    report = environment.report()
    assert report["tools"]["nsys"] == {
        "path": str(tools / "nsys"),
        "version": None,
        "failure": "exit status 3",
    }
    assert "does not run: exit status 3" in sentences(report)
    tool(tools, "nsys", "echo 'NVIDIA Nsight Systems version 2026.2.1.210-3763964'")
    assert environment.report()["tools"]["nsys"]["version"] == "2026.2.1.210-3763964"


def test_an_xprof_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.xprof_problem() is None
    (tmp_path / "xprof").mkdir()
    (tmp_path / "xprof" / "__init__.py").write_text(
        "raise TypeError('Descriptors cannot be created directly.')"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    problem = environment.xprof_problem()
    assert problem is not None
    assert "Descriptors cannot be created directly" in problem["what"]
    assert problem["needed"]


def fine() -> dict[str, Any]:
    """A report of a machine where all is well."""
    return {
        "executable": "/usr/bin/python",
        "versions": {
            "jax": "0.11.2", "jaxlib": "0.11.2", "xprof": "2.24.2", "ipython": "9.0", "nvtx": "0.2.12",
            "jax-cuda13-plugin": "0.11.2", "jupyterlab-nvidia-nsight": None,
        },
        "tools": {"nsys": {"path": "/usr/bin/true", "version": "2025.3.1", "failure": None}},
        "gpus": [{"name": "NVIDIA H200"}],
        "permissions": {
            "gpu_profiling_admin_only": False, "sys_admin": False, "shm_bytes": 2**30,
            "temporary_directory": "/tmp",
            "temporary_noexec": False,
        },
        "variables": {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="},
    }  # fmt: skip


def test_where_all_is_well_there_is_no_problem() -> None:
    assert environment.problems(fine()) == []


@pytest.mark.parametrize(
    ("changes", "what", "needed"),
    [
        ({"versions": {"xprof": None}}, "xprof is not installed", True),
        ({"versions": {"xprof": "2.25.0"}}, "made for 2.24", True),
        (
            {"versions": {"jax": None, "jaxlib": None, "jax-cuda13-plugin": None}},
            "jax is not installed",
            True,
        ),
        ({"versions": {"jax-cuda13-plugin": None}}, "JAX has no CUDA plugin", False),
        ({"versions": {"jax-cuda13-plugin": "0.10.0"}}, "does not belong to jaxlib 0.11.2", True),
        ({"tools": {"nsys": None}}, "For Nsight Systems: nsys is not found", False),
        (
            {"tools": {"nsys": {"path": "/x/nsys", "version": "2023.4.4", "failure": None}}},
            "drops every range",
            False,
        ),
        ({"gpus": None}, "No NVIDIA GPU is seen here", False),
        ({"permissions": {"gpu_profiling_admin_only": True}}, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", False),
        ({"permissions": {"temporary_noexec": True}}, "mounted noexec", False),
        ({"permissions": {"shm_bytes": 2**20}}, "/dev/shm has only 1 MiB", False),
        (
            {"variables": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5", "XLA_CLIENT_MEM_FRACTION": ".5"}},
            "jaxlib refuses that",
            True,
        ),
        ({"variables": {"JAX_PLATFORMS": "cpu"}}, "JAX_PLATFORMS is cpu", False),
    ],
)
def test_known_problems(changes: dict[str, Any], what: str, needed: bool) -> None:
    report = fine()
    for key, value in changes.items():
        report[key] = report[key] | value if isinstance(value, dict) else value
    problems = environment.problems(report)
    (problem,) = [problem for problem in problems if what in problem["what"]]
    assert problem["needed"] == needed
    assert problem["remedy"].endswith(".")
    assert problem["note"] == problem["what"].startswith("For Nsight Systems: ")


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("LD_PRELOAD", "/opt/nvidia/nsight-systems/libToolsInjectionProxy64.so", "under NVIDIA Nsight"),
        ("NSYS_PROFILING_SESSION_ID", "1", "under NVIDIA Nsight"),
        ("CUDA_INJECTION64_PATH", "/x.so", "under NVIDIA Nsight"),
        ("XLA_FLAGS", "--xla_gpu_enable_command_buffer='' --x=1", "sets --xla_gpu_enable_command_buffer to"),
        ("XLA_FLAGS", '--x="" --y=1', "sets --x to a pair of quotes"),
    ],
)
def test_variables_that_spoil_a_trace(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, what: str
) -> None:
    monkeypatch.setenv(variable, value)
    (problem,) = [problem for problem in environment.report()["problems"] if what in problem["what"]]
    assert problem["remedy"].endswith(".")
    assert not problem["needed"]


@pytest.mark.parametrize("flags", ["", "--x= --y=''1''", "--x='' --x=", "--x"])
def test_flags_without_a_pair_of_quotes(flags: str) -> None:
    assert list(environment.spoilers({"XLA_FLAGS": flags, "LD_PRELOAD": "", "MY_NSYS_X": "1"})) == []


def test_xprofs_versions_are_those_that_the_package_requires() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert environment.XPROF_REQUIREMENT in project["dependencies"]
    package = Path(environment.__file__).parents[1]
    stated = [path for path in package.rglob("*.py") if re.search(r"xprof[<>=]=?\d", path.read_text())]
    assert stated == []
    assert satisfies(environment.XPROF_TESTED, environment.XPROF_REQUIREMENT.removeprefix("xprof"))


def test_an_nsys_whose_importer_is_elsewhere(tmp_path: Path) -> None:
    """Debian's package is laid out so."""
    nsys = tmp_path / "nsight-systems" / "target-linux-x64" / "nsys"
    nsys.parent.mkdir(parents=True)
    nsys.touch()
    (tmp_path / "nsys").symlink_to(nsys)
    report = fine()
    report["tools"]["nsys"]["path"] = str(tmp_path / "nsys")
    assert [problem for problem in environment.problems(report) if "importer" in problem["what"]]
    (nsys.parent.parent / "host-linux-x64").mkdir()
    assert environment.problems(report) == []


@pytest.mark.parametrize("libdw", [None, "libdw.so.1"])
def test_the_nsys_within_nsight_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libdw: str | None
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: libdw)
    nsys = tmp_path / "host" / "target-linux-x64" / "nsys"
    nsys.parent.mkdir(parents=True)
    nsys.touch()
    (tmp_path / "host" / "linux-desktop-glibc_2_11_3-x64").mkdir()
    report = fine()
    report["tools"]["nsys"]["path"] = str(nsys)
    problems = environment.problems(report)
    assert ["libdw.so.1" in problem["what"] for problem in problems] == ([] if libdw else [True])


def test_requirements_that_are_not_met_are_found(tmp_path: Path) -> None:
    """A real environment in which xprof's metadata asks for another protobuf than the installed one."""
    for name, version, requires in (
        ("xprof", "2.24.9", "protobuf (<4,>=3.20)"),
        ("jax", "0.10.2", "jaxlib<=0.10.2"),
    ):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: {requires}\n"
            "Requires-Dist: numpy<1; python_version < '3'\nRequires-Dist: nothing-of-this-name\n"
        )
    program = (
        "import json; from jupyterlab_jaxprof import environment; print(json.dumps(environment.report()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[1]}"},
    )
    needed = [problem for problem in json.loads(done.stdout)["problems"] if problem["needed"]]
    (conflict,) = needed
    assert conflict["what"].startswith("xprof 2.24.9 needs protobuf<4,>=3.20, but ")
    assert "-m pip install 'protobuf<4,>=3.20'" in conflict["remedy"]


def test_a_source_tree_that_is_not_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert jupyterlab_jaxprof.__version__ == "unknown"  # Jupyter's servers ask, and end where it raises
