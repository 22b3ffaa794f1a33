"""What %%nsys is made of, where no nsys has to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyterlab_jaxprof.environment.importer import REPORT_MAGIC, STREAM_MAGIC
from jupyterlab_jaxprof.environment.nsys import Installation
from jupyterlab_jaxprof.nsight import flags as flags_module
from jupyterlab_jaxprof.nsight.errors import described, remade
from jupyterlab_jaxprof.nsight.flags import FlagError, Wishes, flags, known_flags
from jupyterlab_jaxprof.nsight.gather import Gathered, gather
from jupyterlab_jaxprof.nsight.memory import Gpu, Memory
from jupyterlab_jaxprof.nsight.nvtx import Domain, NotAttached
from jupyterlab_jaxprof.nsight.outcome import judge
from jupyterlab_jaxprof.nsight.progress import Phase
from jupyterlab_jaxprof.nsight.ran import Ran
from jupyterlab_jaxprof.nsight.surroundings import environments
from tests.nsight.stand_ins import REAL

OUTPUT = Path("/nowhere/report")
NVTX = {"name": "nvtx", "notices": [], "environment": {}}


def installed(version: str = "2022.4.2", path: str = REAL) -> Installation:
    numbers = tuple(int(part) for part in version.split("."))
    return Installation(Path(path), numbers, version, None, True, "", "")


def chosen(**wishes) -> dict[str, str]:
    given = flags(installed(), Wishes(**wishes), OUTPUT).arguments
    return {name: value for name, _, value in (word.partition("=") for word in given)}


def test_flags_are_lean_by_default():
    given = chosen()
    assert given["--trace"] == "cuda,nvtx"
    assert given["--sample"] == given["--cpuctxsw"] == "none"
    assert given["--cuda-graph-trace"] == "node"
    assert "--resolve-symbols" not in given


def test_wishes_become_flags():
    given = chosen(osrt=True, libs=True, sample=True, raw="--cuda-memory-usage true -b none")
    assert given["--trace"] == "cuda,nvtx,osrt,cudnn,cublas"
    assert given["--sample"] == "process-tree"
    assert given["--resolve-symbols"] == "false"
    assert (given["--cuda-memory-usage"], given["--backtrace"]) == ("true", "none")
    assert chosen(trace="cuda, osrt")["--trace"] == "cuda,osrt,nvtx"
    assert chosen(raw="--sample=system-wide")["--sample"] == "system-wide"


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        ("gpu-metrics-device", "--gpu-metrics-device=all"),
        ("gpu-metrics-devices", "--gpu-metrics-devices=cuda-visible"),
    ],
)
def test_flags_follow_what_the_version_has(monkeypatch, known, wanted):
    own = known_flags(Path(REAL), "2022.4.2")
    has = {name: "" for name in own if "gpu-metrics" not in name and name != "cuda-graph-trace"} | {known: ""}
    monkeypatch.setattr(flags_module, "known_flags", lambda path, version: has)
    given = flags(installed(), Wishes(gpu_metrics=True), OUTPUT)
    assert wanted in given.arguments
    assert not [word for word in given.arguments if "graph-trace" in word]
    assert "--graphs=off" in given.notices[0]
    del has["capture-range"]
    with pytest.raises(FlagError, match=r"has no --capture-range, .* 2022\.4 or newer"):
        flags(installed(), Wishes(), OUTPUT)


def test_secrets_and_tools_variables_do_not_start_with_nsys():
    kernel = {
        "PATH": "/bin", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "a", "MY_DATA": "/d",
        "JAX_API_KEY": "b", "LD_PRELOAD": "x.so", "NVTX_INJECTION64_PATH": "y.so", "TMPDIR": "/scratch",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline", "XLA_FLAGS": "--xla_a=1",
    }  # fmt: skip
    first, later = environments(kernel, graphs=False)
    assert set(first) == {
        "PATH", "JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES", "TMPDIR", "XLA_FLAGS", "PYTHONUNBUFFERED",
        "MPLBACKEND",
    }  # fmt: skip
    assert set(later) == {"HF_TOKEN", "MY_DATA", "JAX_API_KEY", "TMPDIR"}
    assert first["XLA_FLAGS"] == "--xla_a=1 --xla_gpu_enable_command_buffer="


def test_the_second_process_gets_what_is_free_and_never_both_variables():
    taken = Memory(
        (Gpu(0, "GPU-a", 140 << 30, 36 << 30),), "GPU 0 has 150.3 GB; this notebook's kernel holds most."
    )
    given = taken.variables({"XLA_CLIENT_MEM_FRACTION": "0.9"})
    assert given == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.250"}
    assert (
        taken.variables({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".1"})["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.100"
    )
    assert taken.explains("RESOURCE_EXHAUSTED: Out of memory while trying to allocate") == taken.holders
    assert taken.explains("ValueError") == ""
    assert Memory().variables({}) == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def test_ranges_need_a_tool(monkeypatch, tmp_path):
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    with pytest.raises(NotAttached, match="is not set"):
        Domain("jaxprof")
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(tmp_path / "none.so"))
    with pytest.raises(NotAttached, match="can't be loaded"):
        Domain("jaxprof")


def test_errors_keep_their_name_chain_and_places():
    source = "def f():\n    raise KeyError('a')\ntry:\n    f()\nexcept KeyError:\n    raise OSError(2, 'b')"
    with pytest.raises(OSError) as caught:
        exec(compile(source, "<cell>", "exec"), {})
    error = remade(described(caught.value, "<cell>"), lambda name: "Cell In[7]" if name == "<cell>" else None)
    shown = "\n".join(error._render_traceback_())
    assert type(error).__name__ == "FileNotFoundError"
    assert (
        shown.index("Cell In[7], line 4") < shown.index("Cell In[7], line 2, in f") < shown.index("KeyError")
    )
    assert "During handling of the above exception" in shown
    assert shown.rindex("Cell In[7], line 6") < shown.index("FileNotFoundError: [Errno 2] b")
    assert __file__ not in shown


@pytest.mark.parametrize(
    ("ran", "version", "said"),
    [
        (Ran(done={"nvtx": "0.2.12"}), "2023.4.4", "pip install 'nvtx<0.2.12'"),
        (Ran(done={"nvtx": "0.2.11"}), "2023.4.4", ""),
        (Ran(done={"nvtx": "0.2.17"}), "2025.3.1", ""),
        (Ran(phase=Phase.WARM_UP, nsys_status=137), "2025.3.1", "was killed (SIGKILL; for want of memory"),
        (Ran(phase=Phase.CAPTURE, nsys_status=139, durations_ms=[1.0]), "2025.3.1", "(SIGSEGV) in step 1"),
        (Ran(nsys_failure="Exec format error"), "2025.3.1", "does not start: Exec format error. On Debian"),
        (Ran(captured=True, done={}, nsys_status=0, said=["Capture range started.", "Odd."]),
         "2025.3.1", "wrote no report. It said: 'Capture range started. Odd.'."),
    ],
)  # fmt: skip
def test_sentences(ran, version, said, tmp_path):
    report = None if ran.captured else tmp_path
    outcome = judge(ran, Gathered(report), installed(version), tmp_path / "work", Memory())
    text = " ".join([outcome.reason, *outcome.notices])
    assert said in text if said else not text.strip()


def test_the_importer_of_another_version_is_told_and_the_next_is_tried(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "report.qdstrm").write_bytes(STREAM_MAGIC + b"2025.3.1!")
    for name, script in (
        ("old", "echo 'Unsupported version'; exit 0"),
        ("right", f"printf '{REPORT_MAGIC.decode()}' > ${{2#--output-file=}}"),
    ):
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    old, right = (replace(installed(), importer=tmp_path / name) for name in ("old", "right"))
    failed = gather([work], work / "report", old)
    assert failed.report is None
    assert failed.stream == work / "report.qdstrm"
    assert "'Unsupported version'" in failed.problem
    assert "the importer must be of the version that recorded" in failed.problem
    assert gather([work], work / "report", old, [old, right]).report == work / "report.nsys-rep"
    (work / "report.nsys-rep").write_bytes(b"cut")  # what a full disk leaves is no report
    assert gather([work], work / "report", old).report is None
