"""Looking into traces: real ones of H200s (tests/data), damaged and oversized ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.tracing.contents import main_steps, read_contents
from jupyterlab_jaxprof.tracing.surroundings import notices_after
from jupyterlab_jaxprof.tracing.trace import Outcome, settle, summary

GPU = [{"id": 0, "platform": "gpu", "kind": "NVIDIA H200", "process_index": 0}]
CPU = [{"id": 0, "platform": "cpu", "kind": "cpu", "process_index": 0}]
OLD_READER = getattr(jax.profiler, "ProfileData", None) is None


def test_a_gpu_trace_with_steps(real_trace):
    contents = read_contents(real_trace("gpu_bound"))
    assert (contents.problem, contents.events, contents.device_events) == ("", 244, 40)
    assert contents.devices == [("gpu", 0)]
    name, durations_ns = main_steps([contents])
    assert (name, len(durations_ns)) == ("train_step", 5)
    assert summary(Outcome(), [contents])["steps"]["median_ms"] == pytest.approx(11.63, abs=0.01)


def test_a_gpu_trace_without_steps(real_trace):
    contents = read_contents(real_trace("no_steps"))
    assert contents.device_events == 160
    assert main_steps([contents]) is None
    assert summary(Outcome(wall_ms=5.0), [contents])["headline"] == {
        "label": "wall time",
        "value": 5.0,
        "unit": "ms",
    }


def test_what_jaxs_bindings_warn_of_does_not_reach_the_user(real_trace):
    path = real_trace("two_hosts_r0")
    code = (
        "import sys; from pathlib import Path\n"
        "from jupyterlab_jaxprof.tracing.contents import read_contents\n"
        "print(read_contents(Path(sys.argv[1])).events)"
    )  # in a process of its own: the bindings make their types, and Python warns, only once
    done = subprocess.run(
        [sys.executable, "-W", "always:builtin type", "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert int(done.stdout) > 0


@pytest.mark.skipif(OLD_READER, reason="XProf's reader, which stands in before JAX 0.7, gives no hlo_op")
def test_kernels_inside_command_buffers_are_told(real_trace):
    (notice,) = notices_after(GPU, [read_contents(real_trace("no_steps"))])
    assert "'--xla_gpu_enable_command_buffer='" in notice
    assert notices_after(GPU, [read_contents(real_trace("two_hosts_r0"))]) == []


def test_a_gpu_trace_without_device_events_is_told(tmp_path, new_profiler):
    profiler = new_profiler()
    profiler.start()
    profiler.stop(tmp_path / "trash", lambda _: None)
    (path,) = profiler.directory.rglob("*.xplane.pb")
    (notice,) = notices_after(GPU, [read_contents(path)])
    assert "no events of the GPU" in notice
    (notice,) = notices_after(CPU, [read_contents(path)])
    assert "trace viewer and graph viewer" in notice
    assert len(notice.split()) < 20  # it stands on every card


@pytest.mark.parametrize("keep", [0, 300, -1])
def test_cut_off_files_are_told_and_hidden_from_xprof(real_trace, tmp_path, keep):
    whole = real_trace("no_steps").read_bytes()
    with Store(tmp_path / "store").begin("trace", "cut") as draft:
        session = draft.directory / "writing" / "plugins" / "profile" / "2026_01_01_00_00_00"
        session.mkdir(parents=True)
        (session / "vm.xplane.pb").write_bytes(whole[:keep])
        (session / "vm.trace.json.gz").touch()
        outcome = Outcome()
        settle(draft.directory / "writing", draft, outcome)
        record = draft.publish(status=outcome.status, reason=outcome.reason)
    assert record.status is Status.PARTIAL
    assert (
        "is empty although JAX reported success" if keep == 0 else "is cut off or damaged"
    ) in record.reason
    assert record.xprof_run is None
    assert [Path(file.path).name for file in record.files] == ["vm.trace.json.gz", "vm.xplane.pb.unreadable"]


@pytest.mark.parametrize("beginning", [b"", b"\0", b"\x0a" + b"\xff" * 9 + b"\x7f", b"\x0b"])
def test_random_bytes_are_no_trace(tmp_path, monkeypatch, beginning):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(beginning + os.urandom(5000))
    assert "damaged" in read_contents(path).problem
    monkeypatch.setattr("jupyterlab_jaxprof.tracing.contents._profile_data", lambda: None)
    assert "damaged" in read_contents(path).problem


def test_over_two_gigabytes(tmp_path):
    path = tmp_path / "vm.xplane.pb"
    with path.open("wb") as file:
        file.truncate(2**31)  # sparse: it takes no room
    assert "2.1 GB, more than the 2 GB" in read_contents(path).problem


LARGE_BYTES = 300_000_000


def large_trace(path: Path) -> Path:
    """Write a trace of one plane, larger than what is read here; sparse, so that it takes no room."""
    length, varint = LARGE_BYTES, b""
    while length:
        varint += bytes([length & 0x7F | (0x80 if length > 0x7F else 0)])
        length >>= 7
    path.write_bytes(b"\x0a" + varint)
    os.truncate(path, 1 + len(varint) + LARGE_BYTES)
    return path


def test_a_large_trace_is_said_to_be_too_large_to_count(tmp_path):
    with Store(tmp_path / "store").begin("trace", "large") as draft:
        session = draft.directory / "writing" / "plugins" / "profile" / "2026_01_01_00_00_00"
        session.mkdir(parents=True)
        path = large_trace(session / "vm.xplane.pb")
        contents = read_contents(path)
        assert (contents.problem, contents.too_large_to_read, contents.exceeds_json) == ("", True, False)
        outcome = Outcome()
        settle(draft.directory / "writing", draft, outcome)
    assert outcome.status is Status.OK
    (notice,) = outcome.notices
    assert "300 MB, too large to look into here" in notice


@pytest.mark.parametrize("change_bytes", [-1, -LARGE_BYTES // 20, 1])
def test_a_large_trace_that_is_cut_off_is_not_taken_for_a_whole_one(tmp_path, change_bytes):
    path = large_trace(tmp_path / "vm.xplane.pb")
    os.truncate(path, path.stat().st_size + change_bytes)
    contents = read_contents(path)
    assert "is cut off or damaged" in contents.problem
    assert not contents.too_large_to_read


@pytest.mark.parametrize("name", ["gpu_bound", "two_hosts_r0"])
def test_without_a_reader_whole_and_cut_off_are_told_apart_all_the_same(real_trace, monkeypatch, name):
    monkeypatch.setattr("jupyterlab_jaxprof.tracing.contents._profile_data", lambda: None)  # as old JAX alone
    path = real_trace(name)
    size_bytes = path.stat().st_size
    assert (read_contents(path).problem, read_contents(path).was_read) == ("", False)
    for keep in (1, 300, size_bytes // 2, size_bytes - 1):
        os.truncate(real_trace(name), keep)
        assert "is cut off or damaged" in read_contents(path).problem


def test_what_jax_failed_to_write_makes_room(real_trace, tmp_path):
    with Store(tmp_path / "store").begin("trace", "full disk") as draft:
        session = draft.directory / "writing" / "plugins" / "profile" / "2026_01_01_00_00_00"
        session.mkdir(parents=True)
        real_trace("no_steps").rename(session / "vm.xplane.pb")
        (session / "vm.trace.json.gz").write_bytes(b"half")
        settle(draft.directory / "writing", draft, Outcome(), written=False)
        record = draft.publish(status=Status.FAILED)
    assert [Path(file.path).name for file in record.files] == ["vm.xplane.pb"]
    assert record.xprof_run == f"{record.id}/full-disk"


def test_hosts_of_one_program_count_their_steps_once(real_trace):
    contents = [read_contents(real_trace(f"two_hosts_r{rank}")) for rank in range(2)]
    assert [one.devices for one in contents] == [[("gpu", 0)], [("gpu", 1)]]
    assert len(main_steps(contents)[1]) == 5
