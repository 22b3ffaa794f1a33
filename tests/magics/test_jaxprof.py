"""`%jaxprof` and `%jaxprof doctor` in a real shell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from tests.support.shells import Shell, running_shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAXPROF_DIR", str(tmp_path / "my store"))
    monkeypatch.setenv("JAXPROF_SIZE_LIMIT", "")
    with running_shell("jupyterlab_jaxprof") as shell:
        yield shell


def capture(store: Store) -> None:
    with store.begin("trace", "run") as draft:
        (draft.directory / "x.xplane.pb").write_bytes(b"x" * 2000)
        draft.publish(status=Status.OK)


def test_status_tells_the_store_and_the_magics(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path / "my store")
    text = repr(shell.run("%jaxprof").result.result)
    assert f"{store.root} (JAXPROF_DIR)" in " ".join(text.split())  # a long path has lines of its own
    assert "captures  0" in text
    assert "%%jaxtrace" in text
    assert not store.root.exists()
    capture(store)
    capture(store)
    monkeypatch.setenv("JAXPROF_SIZE_LIMIT", "3 kB")
    text = repr(shell.run("%jaxprof").result.result)
    assert "captures  2" in text
    assert "of 3.00 kB" in text
    assert "delete the oldest capture in the sidebar" in text
    monkeypatch.setenv("JAXPROF_SIZE_LIMIT", "1 kB")
    assert "delete the 2 oldest captures in the sidebar" in repr(shell.run("%jaxprof").result.result)
    assert store.list().total == 2


def test_a_name_that_another_extension_took_is_told(shell: Shell) -> None:
    shell.run("get_ipython().register_magic_function(lambda line, cell: None, 'cell', 'jaxtrace')")
    sheet = shell.run("%jaxprof").result.result
    assert [fact.value for fact in sheet.facts if "%%jaxtrace" in fact.value and "belongs to" in fact.value]


def test_a_store_that_can_not_be_written_is_told_first(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "my store").write_text("a file")
    sheet = shell.run("sheet = %jaxprof doctor\nsheet").result.result
    assert "must be mended" in sheet.title
    assert sheet.sections[0].facts[0].state == "needed"
    assert "a file is there where a directory is needed" in sheet.sections[0].facts[0].value


def test_doctor_looks_at_everything(shell: Shell) -> None:
    import jax

    outcome = shell.run("%jaxprof doctor")
    assert outcome.error is None
    sheet = outcome.result.result
    text = repr(sheet)
    for part in (
        "Devices",
        "cpu:0",
        "Versions",
        jax.__version__,
        "Tools",
        "nsys",
        "Permissions",
        "Variables",
        "Store",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= 100
    html = sheet._repr_html_()
    assert "<script" not in html
    assert jax.__version__ in html
    for fact in sheet.sections[0].facts:
        assert fact.value.endswith(".")


def test_doctor_tells_of_variables_that_are_set_too_late(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("XLA_FLAGS", "JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES")

    def too_late() -> dict[str, tuple[str, str]]:
        facts = shell.run("%jaxprof doctor").result.result.sections[0].facts
        late = [fact for fact in facts if "the change does nothing." in fact.value]
        return {fact.value.split()[0]: (fact.value, fact.remedy) for fact in late}

    shell.run("import jax; jax.devices()")
    assert not set(names) & set(too_late())
    for name, value in zip(names, ("--xla_gpu_autotune_level=0", "cpu,cuda", "1"), strict=True):
        assert os.environ.get(name) != value
        monkeypatch.setenv(name, value)
    told = too_late()
    assert set(names) <= set(told)
    for name in names:
        assert f"{name} is set to {os.environ[name]!r} now, but JAX read it when" in told[name][0]
        assert "Restart the kernel" in told[name][1]


def test_doctor_and_trace_tell_of_nsight_by_one_rule(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    told = "This process runs under NVIDIA Nsight"
    facts = shell.run("%jaxprof doctor").result.result.sections[0].facts
    assert [fact.value for fact in facts if fact.value.startswith(told)]
    shell.run("%%jaxtrace\n1;")
    (row,) = Store(tmp_path / "my store").list().rows
    assert row.record is not None
    assert [notice for notice in row.record.notices if notice.startswith(told)]


def test_what_only_nsight_needs_is_a_note_at_the_end_and_no_hint(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = shell.run("%jaxprof doctor").result.result
    nsys = tmp_path / "nsys"
    nsys.write_text("#!/bin/sh\nexit 3\n")
    nsys.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sheet = shell.run("%jaxprof doctor").result.result
    assert (sheet.title, sheet.sections[0]) == (before.title, before.sections[0])
    assert sheet.sections[-1].title == "Notes"
    assert f"For Nsight Systems: {nsys} does not run: exit status 3." in [
        fact.value for fact in sheet.sections[-1].facts
    ]
    assert not [fact for fact in sheet.sections[-1].facts if fact.state]


def test_other_words_are_a_usage_error(shell: Shell) -> None:
    outcome = shell.run("%jaxprof doctors")
    assert (
        "%jaxprof: there is no 'doctors'. Write %jaxprof, or %jaxprof doctor, report, compare, import, "
        "explain or install-nsys-kernel. Nothing has run." in outcome.text
    )
    assert "Traceback" not in outcome.text
    assert "doctor" in shell.run("%jaxprof --help").text
