"""`%jaxprof install-nsys-kernel` in a real shell, and what the magics for such a kernel say without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from tests.support.shells import Shell, running_shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "store"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PATH", "")
    with running_shell("jupyterlab_jaxprof") as shell:
        yield shell


def test_it_makes_a_kernelspec_and_removes_it(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "jupyter" / "kernels" / "python3-nsys"
    said = shell.run("%jaxprof install-nsys-kernel --osrt").text
    assert f"Made the kernel 'Python 3 (Nsight Systems)' in {place}." in said
    assert "%jaxprof install-nsys-kernel --remove removes it." in said
    spec = KernelSpecManager(kernel_dirs=[str(place.parent)]).get_kernel_spec("python3-nsys")
    assert spec.argv[0] == sys.executable
    assert spec.argv[-3:] == ["--trace=cuda,nvtx,osrt", "-f", "{connection_file}"]
    assert spec.display_name == "Python 3 (Nsight Systems)"
    assert (place / "logo-svg.svg").exists()
    assert shell.run("%jaxprof install-nsys-kernel").error is None  # once more, in its place
    assert [path.name for path in place.parent.iterdir()] == ["python3-nsys"]
    assert f"Removed {place}." in shell.run("%jaxprof install-nsys-kernel --remove").text
    assert not place.exists()
    assert "there is no kernelspec python3-nsys" in shell.run("%jaxprof install-nsys-kernel --remove").text


def test_nothing_of_others_is_replaced_or_removed(shell: Shell, tmp_path: Path) -> None:
    kernels = tmp_path / "jupyter" / "kernels"
    (kernels / "theirs").mkdir(parents=True)
    (kernels / "theirs" / "kernel.json").write_text(json.dumps({"argv": ["theirs"]}))
    for options in ("--name theirs", "--name theirs --remove"):
        assert (
            "was not made by jupyterlab-jaxprof" in shell.run(f"%jaxprof install-nsys-kernel {options}").text
        )
    shell.run("%jaxprof install-nsys-kernel --name mine --display-name 'My nsys'")
    place = kernels / "mine" / "kernel.json"
    place.write_text(place.read_text().replace(sys.executable, "/bin/sh"))
    assert "starts another Python (/bin/sh)" in shell.run("%jaxprof install-nsys-kernel --name mine").text
    assert "there is mine (--name NAME)" in shell.run("%jaxprof install-nsys-kernel --remove").text
    assert (kernels / "theirs" / "kernel.json").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--trace nonsense", "can't trace 'nonsense'; it can trace cublas,"),
        ("--name a/b", "--name takes letters, digits, dots, dashes and underscores"),
        ("mykernel", "it takes options only, and there is 'mykernel'"),
        ("--remve", "Did you mean --remove?"),
    ],
)
def test_wrong_options_are_sentences(shell: Shell, tmp_path: Path, line: str, said: str) -> None:
    text = shell.run(f"%jaxprof install-nsys-kernel {line}").text
    assert said in text
    assert text.endswith("Nothing was written.\n")
    assert not (tmp_path / "jupyter").exists()


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%nsys --in-kernel\n1", "nsys has not started this kernel"),
        ("%nsys start", "nsys has not started this kernel"),
        ("%nsys stop", "nothing is being recorded"),
        ("%%nsys --in-kernel --osrt\n1", "--osrt is decided when the kernel starts"),
        ("%%nsys --in-kernel --return a\n1", "nothing is carried"),
        ("%%nsys --in-kernel --graphs=off\n1", "--graphs=off must be there before JAX starts"),
        ("%nsys start --steps 3", "--steps and --no-warmup need a cell"),
    ],
)
def test_what_can_not_be_recorded_is_a_sentence(shell: Shell, cell: str, said: str) -> None:
    outcome = shell.run(cell)
    assert said in outcome.text
    assert "Traceback" not in outcome.text
