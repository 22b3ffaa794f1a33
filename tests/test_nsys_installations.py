"""Every nsys is found, asked for its version once, and the newest that works comes first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyterlab_jaxprof.environment import nsys


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No nsys but those that a test makes."""
    monkeypatch.setattr(nsys, "PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def make(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho called >> {path}.log\n{script}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f"echo 'NVIDIA Nsight Systems version {version}'"


def test_the_one_that_is_installed_works() -> None:
    found = nsys.best()
    assert found is not None, f"The tests need a real nsys. {nsys.HOW_TO_GET}"
    assert found.usable
    assert found.version >= (2022, 4)
    assert found.importer is not None
    assert found.importer.name == "QdstrmImporter"
    assert found.imports == (not found.problem)


def test_the_newest_that_works_comes_first(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = make(alone / "a" / "nsys", "exit 3")
    old = make(alone / "b" / "nsys", says("2022.4.2.1-df9881f"))
    new = make(alone / "c" / "nsys", says("2025.10.1.2-1"))
    middle = make(alone / "d" / "nsys", says("2025.9.9"))
    monkeypatch.setattr(nsys, "PLACES", (f"{alone}/[cd]/nsys",))
    monkeypatch.setenv("PATH", f"{broken.parent}{os.pathsep}{old.parent}{os.pathsep}{alone / 'none'}")
    found = nsys.installations()
    assert [one.path for one in found] == [new, middle, old, broken]
    assert [one.version for one in found] == [(2025, 10, 1, 2), (2025, 9, 9), (2022, 4, 2, 1), ()]
    assert found[-1].problem == f"{broken} does not run: exit status 3."
    assert nsys.best() == found[0]


def test_a_version_is_asked_once_until_the_file_changes(alone: Path) -> None:
    path = make(alone / "bin" / "nsys", says("2024.5.1"))
    assert [nsys.installations()[0].version for _ in range(3)] == [(2024, 5, 1)] * 3
    assert Path(f"{path}.log").read_text().count("called") == 1
    make(path, says("2026.2.1.210-3763964"))
    os.utime(path, ns=(1, 1))
    assert nsys.installations()[0].version == (2026, 2, 1, 210)


def test_one_that_is_reached_by_two_ways_is_one(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(alone / "opt" / "nsys", says("2025.3.1"))
    (alone / "bin").mkdir()
    (alone / "bin" / "nsys").symlink_to(path)
    monkeypatch.setattr(nsys, "PLACES", (str(path),))
    assert [one.path for one in nsys.installations()] == [alone / "bin" / "nsys"]


def test_none_at_all(alone: Path) -> None:
    assert nsys.installations() == ()
    assert nsys.best() is None


@pytest.mark.parametrize(
    ("host", "libdw", "imports", "problem"),
    [
        ("host-linux-x64", None, True, ""),
        ("linux-desktop-glibc_2_11_3-x64", "libdw.so.1", True, ""),
        ("linux-desktop-glibc_2_11_3-x64", None, False, "lacks libdw.so.1"),
        ("elsewhere", None, False, "is not beside it"),
    ],
)
def test_the_importer_of_each_layout(
    alone: Path, monkeypatch: pytest.MonkeyPatch, host: str, libdw: str | None, imports: bool, problem: str
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: libdw)
    make(alone / "target-linux-x64" / "nsys", says("2025.3.1"))
    importer = make(alone / host / "QdstrmImporter", "exit 0")
    monkeypatch.setenv("PATH", str(alone / "target-linux-x64"))
    found = nsys.installations()[0]
    assert found.importer == (None if host == "elsewhere" else importer)
    assert found.imports is imports
    assert problem in found.problem
    assert bool(problem) == bool(found.problem)
