"""What no recorder at hand writes: other clocks, other kinds of operations, dropped events."""

from __future__ import annotations

import pytest

from jupyterlab_jaxprof.timeline import Timeline, read
from jupyterlab_jaxprof.timeline.model import CopyKind, OpKind, RangeKind
from tests.support.xspace import Plane, block, number, space

BEGAN_NS = 1_796_028_606_418_385_433


def task() -> Plane:
    return Plane("Task Environment", {"profile_start_time": BEGAN_NS, "profile_stop_time": BEGAN_NS + 10**9})


@pytest.fixture
def written(tmp_path):
    def write(*planes: Plane, **options) -> Timeline:
        path = tmp_path / "host.xplane.pb"
        path.write_bytes(space(*planes, **options))
        return read(path)

    return write


@pytest.mark.parametrize("unix", [False, True])
def test_picoseconds_survive_any_clock(written, unix):
    plane = Plane("/device:GPU:0")
    events = [plane.event("k", 1_234_567, 89), plane.event("k", 3_599 * 10**12 + 1, 1)]
    plane.line("Stream #7(Compute)", (BEGAN_NS if unix else 0) + 5_000, events)
    timeline = written(plane, task())
    assert timeline.origin_ns == BEGAN_NS
    assert timeline.ops.start_ns.tolist() == [6_234.567, 3_599e9 + 5_000.001]
    assert timeline.ops.duration_ns.tolist() == [0.089, 0.001]
    assert timeline.ops.stream.tolist() == [7, 7]
    assert timeline.recorded_ns == (0.0, 1e9)


def test_without_a_known_begin_times_count_from_the_first_line(written):
    plane = Plane("/device:GPU:0")
    plane.line("Stream #7(Compute)", BEGAN_NS, [plane.event("k", 5_000, 1_000)])
    timeline = written(plane)
    assert (timeline.origin_ns, timeline.ops.start_ns.tolist()) == (BEGAN_NS, [5.0])


def test_kinds_of_operations(written):
    plane = Plane("/device:GPU:0")
    names = ["MemcpyP2P", "MemcpyD2H", "Memset 0", "CudaGraphExec:3", "memcpy32_post"]
    details = {"memcpy_details": "kind_src:device kind_dst:managed size:12 dest:1 async:1"}
    events = [
        plane.event(name, at * 1000, 500, details if name.startswith("Memcpy") else {})
        for at, name in enumerate(names)
    ]
    timeline = written(plane.line("Stream #1(Compute)", 0, events), task())
    assert timeline.ops.kind.tolist() == [OpKind.COPY, OpKind.COPY, OpKind.SET, OpKind.GRAPH, OpKind.KERNEL]
    assert timeline.ops.copy_kind[:2].tolist() == [CopyKind.PEER_TO_PEER, CopyKind.DEVICE_TO_HOST]
    assert timeline.ops.size_bytes.tolist() == [12, 12, 0, 0, 0]
    assert "graphs" in timeline.blind


def test_collectives_are_known_by_kernel_and_by_operation(written):
    plane = Plane("/device:GPU:3")
    operations = [
        "all-gather-start.1",
        "all-to-all",
        "collective-permute.2",
        "reduce-scatter.7",
        "sender_fusion",
    ]
    events = [plane.event("some_kernel", at, 1, {"hlo_op": op}) for at, op in enumerate(operations)]
    events.append(plane.event("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 9, 1))
    timeline = written(plane.line("Stream #1(Compute)", 0, events), task())
    kinds = [timeline.text(kind) for kind in timeline.collectives.kind]
    assert kinds == ["all-gather", "all-to-all", "permute", "reduce-scatter", "permute"]
    assert timeline.collectives.op.tolist() == [0, 1, 2, 3, 5]
    assert timeline.devices[0].ordinal == 3


def test_a_step_may_be_called_like_the_runtimes_own_events(written):
    host = Plane("/host:CPU")
    events = [
        host.event("Execute::step", 0, 9_000, {"_r": 1, "step_num": 4}),
        host.event("my part", 1_000, 1_000),
        host.event("Execute::inner", 3_000, 3_000),
        host.event("part of the runtime", 4_000, 1_000),
    ]
    timeline = written(host.line("python3", 0, events), task())
    assert [timeline.text(name) for name in timeline.steps.name] == ["Execute::step"]
    assert timeline.steps.number.tolist() == [4]
    kinds = dict(zip(map(timeline.text, timeline.ranges.name), timeline.ranges.kind, strict=True))
    assert kinds == {
        "my part": RangeKind.ANNOTATION,
        "Execute::inner": RangeKind.RUNTIME,
        "part of the runtime": RangeKind.RUNTIME,
    }
    assert "devices" in timeline.blind


def test_steps_without_a_number_are_steps_all_the_same(written):
    host = Plane("/host:CPU")
    events = [host.event("train", 10_000 * at, 9_000, {"_r": 1}) for at in range(3)]
    events.append(host.event("Execute::run", 40_000, 3_000, {"_r": 1}))
    events.append(host.event("evaluate", 50_000, 3_000, {"_r": 1, "step_num": 7}))
    timeline = written(host.line("python3", 0, events), task())
    assert [timeline.text(name) for name in timeline.steps.name] == ["train"] * 3 + ["evaluate"]
    assert timeline.steps.number.tolist() == [0, 1, 2, 7]
    assert "`train` have no `step_num`" in timeline.notices[0]
    assert len(timeline.notices) == 1


def test_what_the_recorder_lost_is_told(written):
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1(Compute)", 0, [plane.event("k", 0, 1)])
    timeline = written(plane, task(), warnings=["CUPTI: 17 events were dropped for want of buffers"])
    assert timeline.dropped_events == 17
    assert "17 events" in timeline.notices[0]
    assert timeline.files[0].complete, "all that was written is there"


def test_fields_of_later_versions_are_passed_over(written):
    plane = Plane("/device:GPU:0")
    first, later = (plane.event("k", at, 1) for at in (0, 10_000))
    plane.line(
        "Stream #1(Compute)", 0, [first + block(14, "new")], number(15, 3) + block(4, later) + block(30, "x")
    )
    timeline = written(plane, task())
    assert timeline.ops.start_ns.tolist() == [0.0, 10.0]
    assert timeline.files[0].complete


@pytest.mark.parametrize("digits", ["9" * 30, "9" * 5000, "٣"])
def test_a_number_that_no_recorder_writes_counts_as_none(written, digits):
    device = Plane(f"/device:GPU:{digits}", {"memory_size": -5, "peak_teraflops_per_second": 1 << 62})
    copy = {"memcpy_details": f"kind_src:pinned kind_dst:device size:{digits} async:1", "program_id": "--5"}
    device.line(f"Stream #{digits}(MemcpyH2D)", 0, [device.event("MemcpyH2D", 0, 1000, copy)])
    timeline = written(device, task(), warnings=[f"{digits} events were dropped"])
    assert timeline.ops.size_bytes.tolist() == [0]
    assert timeline.ops.program.tolist() == [-1]
    assert (timeline.devices[0].memory_bytes, timeline.devices[0].peak_flops_per_s) == (0, 0.0)
    assert timeline.dropped_events == 0


def test_compiling_that_crosses_its_call_takes_no_negative_time(written):
    host = Plane("/host:CPU")
    names = [("PjitFunction(f)", 100, 100), ("lower_sharding_computation", 120, 200), ("shard_args", 150, 5)]
    events = [host.event(name, at * 1_000_000, us * 1_000_000) for name, at, us in names]
    timeline = written(host.line("python3/7", 0, events), task())
    assert len(timeline.compiles) >= 2
    assert (timeline.compiles.duration_ns >= 0).all()
