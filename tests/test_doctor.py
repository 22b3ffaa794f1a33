"""The doctor finds what is broken in real environments, and its commands mend it."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import stat
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_jaxprof import environment
from jupyterlab_jaxprof.captures import Store
from jupyterlab_jaxprof.captures.record import Status
from jupyterlab_jaxprof.environment import Problem
from jupyterlab_jaxprof.reports import doctor_store
from tests.support.servers import ROOT, write_dist_info
from tests.test_environment import fine, tool

REPORT = "import json; from jupyterlab_jaxprof import environment; print(json.dumps(environment.report()))"


def by_check(problems: list[Problem]) -> dict[str, Problem]:
    """The problems by their checks; each is a sentence with something that helps."""
    for problem in problems:
        assert problem["what"].endswith((".", ")")), problem
        assert problem["remedy"].endswith("."), problem
        assert not problem["command"] or "\n" not in problem["command"]
    return {problem["check"]: problem for problem in problems}


def now() -> dict[str, Problem]:
    return by_check(environment.report()["problems"])


def distribution(site: Path, name: str, version: str) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_variables_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "nvidia-smi", "echo '0, NVIDIA H200, 143771, 580.65.06, Disabled'")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    usual = set(now())
    for name, value in {
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "90",
        "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_malloc",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "no",
        "JAX_PLATFORMS": "cuda",
        "CUDA_VISIBLE_DEVICES": "3",
        "XLA_FLAGS": "xla_gpu_autotune_level=0",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_DEBUG_NANS": "True",
        "http_proxy": "http://me:secret@proxy:3128",
        "LD_LIBRARY_PATH": str(tmp_path),
        "JPY_SESSION_NAME": "notebook.ipynb",
        "TMPDIR": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("no_proxy", "NO_PROXY", "JAXPROF_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    report = environment.report()
    found = by_check(report["problems"])
    assert set(found) - usual == {
        "memory-fraction", "allocator", "preallocate", "no-such-platform", "hidden-gpus", "flags-file",
        "tensorflow-variables", "hidden-errors", "slowed-down", "proxy", "no-server-half",
        "temporary-directory",
    }  # fmt: skip
    assert all(found[name]["command"] for name in set(found) - usual)
    needed = {name for name in set(found) - usual if found[name]["needed"]}
    assert needed == {"allocator", "no-such-platform", "flags-file", "temporary-directory"}
    assert "secret" not in json.dumps(report)

    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1,::1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "a half")
    monkeypatch.setenv("JAXPROF_BASE_URL", "/user/me/")
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/you/")
    found = now()
    assert {"not-on-gpu", "hidden-gpus", "two-memory-fractions", "hub-address"} <= set(found)
    assert not {"proxy", "no-server-half", "no-such-platform"} & set(found)
    assert found["memory-fraction"]["needed"]  # the last one told of: JAX raises an error for it


def test_xla_does_end_where_the_flags_are_no_flags(tmp_path: Path) -> None:
    """What `flags-file` says is so."""
    program = "import jax; jax.devices()"
    env = os.environ | {"XLA_FLAGS": "xla_gpu_autotune_level=0", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "file" in done.stderr


def test_packages_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, bin_, cuda = (tmp_path / name for name in ("site", "bin", "cuda"))
    for name, version in {
        "jax-cuda13-plugin": "0.9.0",
        "jax-cuda12-plugin": "0.9.0",
        "nvidia-cuda-cupti": "13.0.85",
        "tensorboard-plugin-profile": "2.14.0",
        "jupyterlab": "3.6.8",
        "xprof": "2.20.0",
        "jupyterlab-nvidia-nsight": "1.0.1",
    }.items():
        distribution(site, name, version)
    for place in (bin_, cuda):
        place.mkdir()
    (cuda / "libcupti.so.12").touch()
    tool(bin_, "nvidia-smi", "echo '0, NVIDIA H200, 143771, 525.85.12, Disabled'")
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(cuda))
    monkeypatch.syspath_prepend(site)
    found = now()
    assert {
        "xprof-version", "installed-twice", "front-end-version", "colliding-packages", "nsight-extension",
        "cuda-plugin-version", "two-cuda-plugins", "other-cuda-libraries",
    } <= set(found)  # fmt: skip
    assert "jupyterlab is installed more than once: 3.6.8 in" in "".join(
        problem["what"] for problem in environment.report()["problems"]
    )
    assert "driver-too-old" not in found  # it runs CUDA 12, whose plugin is there too
    shutil.rmtree(site / "jax_cuda12_plugin-0.9.0.dist-info")
    assert "580" in now()["driver-too-old"]["what"]
    shutil.rmtree(site / "nvidia_cuda_cupti-13.0.85.dist-info")
    assert "cupti-missing" not in now()  # the system's is there
    monkeypatch.delenv("LD_LIBRARY_PATH")
    monkeypatch.setattr("jupyterlab_jaxprof.environment.machine._CUPTI_PLACES", ())
    assert "cupti-missing" in now()


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"permissions": {"gpu_devices_refused": ["/dev/nvidia0"]}}, "gpu-refused"),
        ({"permissions": {"temporary_free_bytes": 10**8}}, "temporary-files"),
        ({"permissions": {"perf_event_paranoid": 4}}, "cpu-samples"),
        ({"tools": {"nsys": {"path": "/x/nsys", "version": "2024.5.1"}}}, "nsys-too-old"),
        ({"clock": {"now_s": 0.0, "installed_s": 1e9}}, "clock"),
        ({"python": "3.14.0"}, "python-untested"),
        (
            {
                "versions": {"jupyterlab": "4.6.3", "jupyterlab-jaxprof": "0.1.0"},
                "jupyter": {
                    "switch": True,
                    "labextension": None,
                    "target": "/there",
                    "disabled": "",
                    "startup_file": "",
                    "kernel_of_server": False,
                },
            },
            "labextension",
        ),
    ],
)
def test_what_no_test_can_bring_about(changes: dict[str, Any], check: str) -> None:
    report = fine()
    for key, value in changes.items():
        report[key] = report[key] | value if key in report else value
    (problem,) = environment.problems(report)
    assert problem["check"] == check
    assert by_check([problem])[check]["command"]


def test_others_that_measure_are_seen(tmp_path: Path) -> None:
    """Programs of these names: DCGM and Nsight Compute need a GPU to run."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name in ("nv-hostengine", "ncu"):
            shutil.copy(shutil.which("sleep") or "", tmp_path / name)
            running.append(subprocess.Popen([tmp_path / name, "60"]))
        found = now()
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert str(running[0].pid) in found["counters-held"]["what"]
    assert str(running[1].pid) in found["other-profiler"]["what"]
    assert not {"counters-held", "other-profiler"} & set(now())


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with this package, borrowed packages, and Jupyter's settings in disorder."""
    place = tmp_path_factory.mktemp("broken") / "environment"
    venv.create(place, with_pip=False)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    write_dist_info(site / "metadata")
    for info in (site / "metadata").iterdir():
        info.rename(site / info.name)
    for directory, content in {
        "etc/jupyter/jupyter_server_config.d/jupyterlab_jaxprof.json": {
            "ServerApp": {"jpserver_extensions": {"jupyterlab_jaxprof": False}}
        },
        "etc/jupyter/labconfig/page_config.json": {"disabledExtensions": {"jupyterlab-jaxprof": True}},
        "share/jupyter/labextensions/jupyterlab-jaxprof/package.json": {
            "name": "jupyterlab-jaxprof",
            "version": "0.0.1",
            "jupyterlab": {"_build": {"load": "static/remoteEntry.js"}},
        },
        "share/jupyter/kernels/elsewhere/kernel.json": {
            "argv": [str(place.parent / "elsewhere/bin/python"), "-m", "ipykernel_launcher"],
            "display_name": "Elsewhere",
            "language": "python",
        },
    }.items():
        path = place / directory
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    venv.create(place.parent / "elsewhere", with_pip=False)
    for name, program in {
        "jupyter": "-m jupyter",
        "jupyter-server": "-m jupyter_server",
        "jupyter-labextension": "-c 'from jupyterlab.labextensions import main; main()'",
    }.items():
        tool(place / "bin", name, f'exec "{place}/bin/python" {program} "$@"')
    return place


def in_environment(place: Path, *command: str) -> str:
    env = {
        "PATH": f"{place / 'bin'}:/usr/bin:/bin",
        "HOME": str(place.parent),
        "JAXPROF_SERVER_VERSION": "0.0.9",
    }
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=place.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_jupyters_settings_and_their_remedies(broken: Path) -> None:
    def found() -> dict[str, Problem]:
        return by_check(json.loads(in_environment(broken, "python", "-c", REPORT))["problems"])

    problems = found()
    assert {
        "server-extension", "labextension", "labextension-disabled", "kernel-environment", "server-version",
    } <= set(problems)  # fmt: skip
    assert "lacks this package" in problems["kernel-environment"]["what"]
    assert "elsewhere/bin/python -m pip install" in problems["kernel-environment"]["command"]
    assert "0.0.9" in problems["server-version"]["command"]
    assert "0.0.1" in problems["labextension"]["what"]
    for check in ("server-extension", "labextension-disabled", "labextension"):
        in_environment(broken, "sh", "-c", problems[check]["command"])
    mended = found()
    assert not {"server-extension", "labextension-disabled"} & set(mended)
    assert "--force-reinstall" in mended["labextension"]["command"]  # the old one is gone


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    store = Store.default()
    with store.begin("memory", "one") as capture:
        capture.publish(status=Status.OK)
    return store


def test_a_store_that_others_may_read(store: Store) -> None:
    assert doctor_store.store_problems(store) == []
    store.root.chmod(0o755)
    found = by_check(doctor_store.store_problems(store))
    subprocess.run(["sh", "-c", found["store-owner"]["command"]], check=True)
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    assert doctor_store.store_problems(store) == []


def test_a_store_of_another_user_on_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: store.root.stat().st_uid + 1)
    monkeypatch.setattr(doctor_store, "_FREE_NEEDED_BYTES", 10**18)
    monkeypatch.setattr(doctor_store, "_FREE_NEEDED_INODES", 10**18)
    problems = doctor_store.store_problems(store)
    assert [problem["check"] for problem in problems] == ["store-owner", "store-disk", "store-disk"]


def test_a_store_with_a_capture_from_the_future(store: Store) -> None:
    (row,) = store.list().rows
    later = store.directory(row.id).with_name(f"2099{row.id[4:]}")
    store.directory(row.id).rename(later)
    record = json.loads((later / "capture.json").read_text())
    (later / "capture.json").write_text(json.dumps(record | {"id": later.name}))
    assert "store-clock" in by_check(doctor_store.store_problems(store))


def test_the_documentation_lists_every_check() -> None:
    script = runpy.run_path(str(ROOT / "scripts/doctor_page.py"))
    assert script["page"](script["PAGE"].read_text("utf-8")) == script["PAGE"].read_text("utf-8")
    names = [check.name for checks in environment.SUBJECTS.values() for check in checks]
    names += [check.name for check in script["CHECKS"]]
    assert len(names) == len(set(names))
