"""What was written: real traces of H200s, damaged and oversized ones, and what becomes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyterlab_jaxprof.captures import Status, Store
from jupyterlab_jaxprof.reports import examine
from jupyterlab_jaxprof.tracing import contents
from jupyterlab_jaxprof.tracing.contents import diagnosed, look_at
from jupyterlab_jaxprof.tracing.surroundings import notices_after
from jupyterlab_jaxprof.tracing.trace import Outcome, Source, publish, settle, summary
from tests.support.captures import unpacked

GPU = [{"id": 0, "platform": "gpu", "kind": "NVIDIA H200", "process_index": 0}]
CPU = [{"id": 0, "platform": "cpu", "kind": "cpu", "process_index": 0}]


def silent(_: str) -> None:
    pass


def test_a_gpu_trace_with_steps_is_diagnosed(real_trace):
    path = real_trace("gpu_bound")
    assert look_at(path) == ""
    examined, problem = diagnosed([path], "run", say=silent)
    assert problem == ""
    found = summary(Outcome(wall_ms=60.0), examined)
    assert (found["steps"]["name"], found["steps"]["count"]) == ("train_step", 5)
    assert found["headline"]["value"] == found["steps"]["median_ms"] == pytest.approx(11.63, abs=0.01)
    assert found["wall_ms"] == 60.0
    assert [finding["level"] for finding in examined.findings] == ["fine"]


def test_steps_that_a_magic_ran_keep_its_own_times_and_gain_their_parts(real_trace):
    examined, _ = diagnosed([real_trace("gpu_bound")], "run", say=silent)
    durations_ms = [12.0, 11.0, 12.5, 11.5, 12.1]
    found = summary(Outcome(step_name="train_step", step_durations_ms=durations_ms), examined)
    assert found["steps"]["durations_ms"] == durations_ms
    assert found["headline"]["value"] == 12.0
    assert found["steps"]["parts"]["compute_ms"] == pytest.approx(10.8, abs=0.3)
    other = summary(Outcome(step_name="step", step_durations_ms=durations_ms[:2]), examined)
    assert "parts" not in other["steps"], "these are not the steps of the trace"
    assert [one["name"] for one in other["steps"]["others"]] == ["train_step"]


def test_the_headline_of_steps_that_time_their_dispatch_is_the_devices_time():
    examined, _ = diagnosed([unpacked("small_inputs.xplane.pb")], "run", say=silent)
    found = summary(Outcome(wall_ms=5.0), examined)
    assert found["headline"]["label"] == "device time a step"
    assert found["headline"]["value"] == found["steps"]["device_ms"] > 10 * found["steps"]["median_ms"]


def test_a_gpu_trace_without_steps(real_trace):
    examined, _ = diagnosed([real_trace("no_steps")], "run", say=silent)
    found = summary(Outcome(wall_ms=5.0), examined)
    assert found["steps"] is None
    assert found["headline"] == {"label": "wall time", "value": 5.0, "unit": "ms"}


def test_kernels_inside_command_buffers_are_told(real_trace):
    (notice,) = notices_after(GPU, examine([real_trace("no_steps")]).timeline)
    assert "'--xla_gpu_enable_command_buffer='" in notice
    assert notices_after(GPU, examine([real_trace("two_hosts_r0")]).timeline) == []


def test_a_gpu_trace_without_device_events_is_told(tmp_path, new_profiler):
    profiler = new_profiler()
    profiler.start()
    profiler.stop(tmp_path / "trash", silent)
    (path,) = profiler.directory.rglob("*.xplane.pb")
    timeline = examine([path]).timeline
    (notice,) = notices_after(GPU, timeline)
    assert "no events of the GPU" in notice
    for known in (timeline, None):
        (notice,) = notices_after(CPU, known)
        assert "trace viewer and graph viewer" in notice
        assert len(notice.split()) < 20  # it stands on every card
    assert notices_after(GPU, None) == []


@pytest.fixture
def written(tmp_path):
    """A draft into whose writing directory JAX might write, and that directory."""
    with Store(tmp_path / "store").begin("trace", "full disk") as draft:
        session = draft.directory / "writing" / "plugins" / "profile" / "2026_01_01_00_00_00"
        session.mkdir(parents=True)
        yield draft, session


def settled(draft, outcome, **options):
    return settle(draft.directory / "writing", draft, outcome, **options)


@pytest.mark.parametrize("keep", [0, 300, -1])
def test_cut_off_files_are_told_and_hidden_from_xprof(real_trace, written, keep):
    draft, session = written
    (session / "vm.xplane.pb").write_bytes(real_trace("no_steps").read_bytes()[:keep])
    (session / "vm.trace.json.gz").touch()
    outcome = Outcome()
    assert settled(draft, outcome) == []
    record = draft.publish(status=outcome.status, reason=outcome.reason)
    assert record.status is Status.PARTIAL
    assert (
        "is empty although JAX reported success" if keep == 0 else "is cut off or damaged"
    ) in record.reason
    assert record.xprof_run is None
    assert [Path(file.path).name for file in record.files] == ["vm.trace.json.gz", "vm.xplane.pb.unreadable"]


@pytest.mark.parametrize("beginning", [b"", b"\0", b"\x0a" + b"\xff" * 9 + b"\x7f", b"\x0b"])
def test_random_bytes_are_no_trace(tmp_path, beginning):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(beginning + os.urandom(5000))
    assert "damaged" in look_at(path)


def test_over_two_gigabytes(tmp_path):
    path = tmp_path / "vm.xplane.pb"
    with path.open("wb") as file:
        file.truncate(2**31)  # sparse: it takes no room
    assert "2.1 GB, more than the 2 GB" in look_at(path)


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


def test_a_large_trace_is_kept_and_said_to_be_diagnosed_later(written):
    draft, session = written
    large_trace(session / "vm.xplane.pb")
    outcome = Outcome()
    traces = settled(draft, outcome)
    assert (outcome.status, len(traces)) == (Status.OK, 1)
    examined, problem = diagnosed(traces, draft.reference, say=silent)
    assert examined is None
    assert "300 MB, too large to be read while you wait" in problem
    assert "%jaxprof report 'full disk' reads it, in about 60 s." in problem


@pytest.mark.parametrize("change_bytes", [-1, -LARGE_BYTES // 20, 1])
def test_a_large_trace_that_is_cut_off_is_not_taken_for_a_whole_one(tmp_path, change_bytes):
    path = large_trace(tmp_path / "vm.xplane.pb")
    os.truncate(path, path.stat().st_size + change_bytes)
    assert "is cut off or damaged" in look_at(path)


def test_no_fault_of_the_diagnosis_costs_the_capture(real_trace, written, monkeypatch):
    draft, session = written
    real_trace("no_steps").rename(session / "vm.xplane.pb")
    outcome = Outcome(wall_ms=5.0)
    traces = settled(draft, outcome)

    def fails(_: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(contents, "examine", fails)
    examined, problem = diagnosed(traces, draft.reference, say=silent)
    outcome.notices.append(problem)
    record = publish(draft, outcome, Source(), {}, examined)
    assert (record.status, record.findings) == (Status.OK, ())
    assert record.notices[0].startswith(
        "The trace is kept, but its diagnosis failed (ZeroDivisionError: of ours)"
    )
    assert record.summary["headline"]["value"] == 5.0


def test_what_is_damaged_inside_is_told_as_far_as_it_can_be_read(real_trace, written):
    draft, session = written
    damaged = bytearray(real_trace("gpu_bound").read_bytes())
    middle = damaged.index(b"train_step")
    damaged[middle - 40 : middle] = b"\xff" * 40
    (session / "vm.xplane.pb").write_bytes(damaged)
    outcome = Outcome()
    traces = settled(draft, outcome)
    examined, problem = diagnosed(traces, draft.reference, say=silent)
    record = publish(draft, outcome, Source(), {}, examined)
    assert problem or record.status is Status.PARTIAL
    assert record.xprof_run is not None


def test_what_jax_failed_to_write_makes_room(real_trace, written):
    draft, session = written
    real_trace("no_steps").rename(session / "vm.xplane.pb")
    (session / "vm.trace.json.gz").write_bytes(b"half")
    settled(draft, Outcome(), written=False)
    record = draft.publish(status=Status.FAILED)
    assert [Path(file.path).name for file in record.files] == ["vm.xplane.pb"]
    assert record.xprof_run == f"{record.id}/full-disk"


def test_hosts_of_one_program_count_their_steps_once(real_trace):
    examined = examine([real_trace(f"two_hosts_r{rank}") for rank in range(2)])
    assert [device.ordinal for device in examined.timeline.devices] == [0, 1]
    assert examined.summary["steps"]["count"] == 5
