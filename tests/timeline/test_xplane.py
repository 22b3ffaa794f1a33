"""Real traces of H200s: the timeline against XProf's own numbers and against what the programs did."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline import Timeline, read
from jupyterlab_jaxprof.timeline.model import CopyKind, HostMemory, OpKind, Phase, RangeKind
from tests.support.captures import TRACES, unpacked, unpacked_to


def profile_data():
    """The reader of JAX; of XProf where JAX, before 0.7, has none."""
    import jax

    if getattr(jax.profiler, "ProfileData", None):
        return jax.profiler.ProfileData
    from xprof.profile_data import ProfileData

    return ProfileData


def trace(name: str) -> Timeline:
    return read(unpacked(f"{name}.xplane.pb"))


def marks(timeline: Timeline) -> Counter[str]:
    """How often each annotation of the user's was."""
    return Counter(
        timeline.text(name) for name in timeline.ranges.name[timeline.ranges.kind == RangeKind.ANNOTATION]
    )


@pytest.mark.parametrize("name", TRACES)
def test_kernels_are_as_xprof_counts_them(name, tmp_path):
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    path = unpacked_to(tmp_path, f"{name}.xplane.pb")  # XProf writes caches beside a trace
    table = json.loads(xspace_to_tool_data([str(path)], "kernel_stats", {})[0])
    ids = [column["id"] for column in table["cols"]]
    rows = [dict(zip(ids, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]
    expected: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        one = expected[row["kernel_name"]]
        one[0] += row["occurrences"]
        one[1] += row["total_duration_us"]
        one[2] = max(one[2], row["max_duration_us"])
    timeline = read(path)
    ops, found = timeline.ops, {}
    for number in np.unique(ops.name[ops.kind == OpKind.KERNEL]):
        durations_us = ops.duration_ns[(ops.kind == OpKind.KERNEL) & (ops.name == number)] / 1e3
        found[timeline.text(number)] = [len(durations_us), durations_us.sum(), durations_us.max()]
    assert found.keys() == expected.keys()
    for kernel, values in expected.items():
        assert found[kernel] == pytest.approx(values, rel=1e-9), kernel


@pytest.mark.parametrize("name", ["healthy", "dp_balanced", "tiny_scan"])
def test_every_event_is_where_jaxs_own_reader_sees_it(name):
    timeline = trace(name)
    device, python = [], []
    for plane in profile_data().from_file(str(unpacked(f"{name}.xplane.pb"))).planes:
        for line in plane.lines:
            for event in line.events:
                seen = (event.start_ns, event.duration_ns, event.name.removeprefix("$"))
                if plane.name.startswith("/device"):
                    device.append(seen)
                elif event.name.startswith("$"):
                    python.append(seen)
    for expected, table in (
        (device, timeline.ops),
        (python, timeline.ranges.take(timeline.ranges.kind == RangeKind.PYTHON)),
    ):
        names = [timeline.text(number) for number in table.name]
        found = zip(table.start_ns.tolist(), table.duration_ns.tolist(), names, strict=True)
        assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "step", "count", "ops", "copies"),
    [
        ("healthy", "train_step", 6, 108, {"HOST_TO_DEVICE": 6, "DEVICE_TO_DEVICE": 18}),
        ("float_loss", "train_step", 30, 330, {"DEVICE_TO_HOST": 30}),
        ("small_ops", "chain", 3, 600, {"HOST_TO_DEVICE": 150}),
        ("host_starved", "train_step", 6, 72, {"HOST_TO_DEVICE": 12}),
        ("gpu_bound", "train_step", 5, 40, {}),
        ("h2d_every_step", "train", 8, 280, {"HOST_TO_DEVICE": 8, "DEVICE_TO_DEVICE": 8}),
        ("tiny_scan", "rnn", 5, 12510, {"DEVICE_TO_DEVICE": 10}),
        ("host_callback", "train", 8, 272, {"HOST_TO_DEVICE": 8, "DEVICE_TO_HOST": 8}),
        ("no_steps", "", 0, 160, {}),
    ],
)
def test_steps_operations_and_copies(name, step, count, ops, copies):
    timeline = trace(name)
    assert {timeline.text(one) for one in timeline.steps.name} == ({step} if step else set())
    assert timeline.steps.number.tolist() == list(range(count))
    assert len(timeline.ops) == ops
    kinds = timeline.ops.copy_kind[timeline.ops.kind == OpKind.COPY]
    assert Counter(CopyKind(int(kind)).name for kind in kinds) == copies
    assert np.isin(timeline.ops.correlation, timeline.calls.correlation).all(), "each joins its launch"
    launched = np.isin(timeline.ops.correlation, timeline.calls.correlation[timeline.calls.launches])
    assert launched[timeline.ops.kind == OpKind.KERNEL].all()
    assert timeline.files[0].complete
    assert timeline.notices == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy", {"make_batch": 6, "sgd_update": 6}),
        ("host_starved", {"load_data": 6}),
        ("loader_gap", {"preprocess": 8}),
        *((name, {}) for name in TRACES if name not in {"healthy", "host_starved", "loader_gap"}),
    ],
)
def test_only_what_the_user_marked_is_an_annotation(name, expected):
    assert marks(trace(name)) == expected


def test_a_copys_size_and_memory():
    ops = trace("h2d_every_step").ops
    copies = ops.take(ops.copy_kind == CopyKind.HOST_TO_DEVICE)
    assert copies.size_bytes.tolist() == [128 * 1024**2] * 8
    assert set(copies.host_memory) == {HostMemory.PINNED}, "JAX copies it into pinned memory first"
    assert copies.duration_ns.sum() == pytest.approx(19.5e6, rel=0.01)
    read_back = trace("host_callback").ops
    pageable = read_back.host_memory[read_back.copy_kind == CopyKind.DEVICE_TO_HOST]
    assert set(pageable) == {HostMemory.PAGEABLE}
    assert trace("h2d_every_step").ops.size_bytes[ops.kind == OpKind.SET].tolist() == [4] * 56


def test_the_phases_of_a_first_call():
    timeline = trace("first_call")
    assert [Phase(int(phase)) for phase in timeline.compiles.phase] == [
        Phase.TRACE,
        Phase.LOWER,
        Phase.COMPILE,
    ]
    assert {timeline.text(one) for one in timeline.compiles.function} == {"train_step"}
    assert timeline.compiles.duration_ns.sum() == pytest.approx(512.5e6, rel=0.01)
    first = timeline.steps.start_ns[0], timeline.steps.start_ns[0] + timeline.steps.duration_ns[0]
    assert (timeline.compiles.start_ns >= first[0]).all()
    assert (timeline.compiles.start_ns + timeline.compiles.duration_ns <= first[1]).all()


def test_kernels_inside_cuda_graphs_have_their_operation_scope_and_source():
    timeline = trace("first_call")
    ops = timeline.ops
    assert (ops.graph > 0).all()
    found = {
        tuple(timeline.text(number) for number in row)
        for row in zip(ops.name, ops.hlo_op, ops.module, ops.source, strict=True)
    }
    assert ("gemm_fusion_dot_2", "gemm_fusion_dot.2", "jit_train_step", "codelab.py:15") in found
    assert "jit(train_step)/jvp()/dot_general" in {timeline.text(scope) for scope in ops.scope}
    assert len(set(ops.program)) == 1


def test_the_device_and_its_allocator():
    timeline = trace("mem_near_limit")
    (device,) = timeline.devices
    assert (device.name, device.model, device.multiprocessors) == ("GPU 0", "NVIDIA H200", 132)
    assert device.memory_bytes == 150_109_880_320
    assert device.peak_bytes_per_s == pytest.approx(4.8e12, rel=0.01)
    assert timeline.allocator.peak_bytes.max() == pytest.approx(99.17e9, rel=1e-3)
    assert set(timeline.allocator.limit_bytes) == {112_583_507_968}
    assert timeline.blind == {"python"}
    assert timeline.versions["jax"] == "0.11.2"
    began, ended = timeline.recorded_ns
    last = timeline.ops.start_ns[-1] + timeline.ops.duration_ns[-1]
    assert 0 == began < timeline.steps.start_ns[0] < last < ended


def test_collectives_of_two_devices():
    timeline = trace("dp_balanced")
    collectives = timeline.collectives
    assert {timeline.text(kind) for kind in collectives.kind} == {"all-reduce"}
    of_device = timeline.ops.device[collectives.op]
    assert Counter(of_device.tolist()) == {0: 18, 1: 18}
    names = {timeline.text(name).split("(")[0] for name in timeline.ops.name[collectives.op]}
    assert names == {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all_reduce_4_0_fusion_1"}
    weights = 2 * 2048**2  # bytes of one layer's, in bfloat16
    assert Counter(collectives.size_bytes.tolist()) == {weights: 12, 3 * weights: 12, 0: 12}


def test_two_hosts_are_one_timeline():
    alone = [trace(f"two_hosts_r{rank}") for rank in (0, 1)]
    timeline = read([unpacked("two_hosts_r0.xplane.pb"), unpacked("two_hosts_r1.xplane.pb")])
    assert [(one.process, one.ordinal) for one in timeline.devices] == [(0, 0), (1, 1)], "no empty planes"
    assert {one.process for one in timeline.threads} == {0, 1}
    assert timeline.origin_ns == min(one.origin_ns for one in alone)
    for rank, one in enumerate(alone):
        own = timeline.ops.take(timeline.ops.device == rank)
        shift_ns = one.origin_ns - timeline.origin_ns
        assert own.start_ns == pytest.approx(one.ops.start_ns + shift_ns, abs=1e-3)
        assert [timeline.text(name) for name in own.name] == [one.text(name) for name in one.ops.name]
        calls = timeline.calls.take(np.isin(timeline.calls.correlation, own.correlation))
        assert {timeline.threads[thread].process for thread in calls.thread} == {rank}
    kinds = [timeline.text(name) for name in timeline.ops.name[timeline.collectives.op]]
    assert len(kinds) == 10
    assert all(kind.startswith("ncclDevKernel_AllReduce") for kind in kinds)
    assert len(timeline.files) == 2
