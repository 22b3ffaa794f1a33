"""Nsight exports become timelines: totals as `nsys stats` has them, and each kernel's HLO operation.

`nsys_cold` is four steps that compile within the recording, so that XLA's graph is made in it as well;
`nsys_child_graphs` is of `%%nsys` itself. Of `nsys_import_error` and `nsys_two_processes` nsys could
not process all events.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline.model import CopyKind, HostMemory, OpKind, Phase, RangeKind, Steps, Timeline
from jupyterlab_jaxprof.timeline.nsight import read_export
from tests.support import nsys_stats
from tests.support.captures import DATA, unpacked

STATS = sorted(path.name.removesuffix(".stats.csv") for path in DATA.glob("nsys_*.stats.csv"))


@cache
def timeline(name: str) -> Timeline:
    return read_export(unpacked(f"{name}.sqlite"))


def tables(name: str) -> dict[str, list[dict[str, str]]]:
    """What `nsys stats` said, by the name of its report; a report that it skipped has no rows."""
    return nsys_stats.tables((DATA / f"{name}.stats.csv").read_text())


@pytest.mark.parametrize("name", STATS)
def test_totals_are_those_of_nsys_stats_to_the_nanosecond(name: str) -> None:
    nsys_stats.assert_equal(timeline(name), tables(name))


def test_bytes_are_those_of_nsys_stats() -> None:
    read = timeline("nsys_cold")
    copies = read.ops.take(read.ops.kind == OpKind.COPY)
    for row in tables("nsys_cold")["cuda_gpu_mem_size_sum"]:
        own = copies.size_bytes[[read.text(number) == row["Operation"] for number in copies.name]]
        assert (len(own), f"{own.sum() / 1e6:.3f}") == (int(row["Count"]), row["Total (MB)"])


def projections(read: Timeline) -> Iterator[tuple[str, float, int]]:
    """Each NVTX range: name, from its first to its last thing on the device, how many launches."""
    call_of = {number: row for row, number in enumerate(read.calls.correlation.tolist()) if number}
    calls = np.array([call_of[number] for number in read.ops.correlation.tolist()])
    starts, ends = read.ops.start_ns, read.ops.start_ns + read.ops.duration_ns
    rows = [(one, row) for one in (read.ranges, read.steps) for row in range(len(one))]
    for table, row in rows:
        begin = table.start_ns[row]
        own = read.calls.thread[calls] == table.thread[row]
        own &= (read.calls.start_ns[calls] >= begin) & (
            read.calls.start_ns[calls] <= begin + table.duration_ns[row]
        )
        if own.any():
            name = read.text(table.name[row])
            if isinstance(table, Steps):
                name = f"{name}{' ' if name == 'train_step' else '_'}{table.number[row]}"
            elif detail := read.text(table.detail[row]):
                name += f":#{detail}#"
            launches = len(np.unique(read.ops.correlation[own]))
            yield name, ends[own].max() - starts[own].min(), launches


@pytest.mark.parametrize("name", ["nsys_dp2", "nsys_gpu_bound", "nsys_cold"])
def test_ranges_projected_on_the_device_are_those_of_nsys_stats(name: str) -> None:
    found: dict[str, list[float]] = defaultdict(list)
    for full_name, duration, launches in projections(timeline(name)):
        found[full_name] += [duration, launches]
    for row in tables(name)["nvtx_gpu_proj_sum"]:
        domain, _, range_name = row["Range"].partition(":")
        assert domain
        values = found[range_name]
        assert sum(values[0::2]) == int(row["Total Proj Time (ns)"]), row["Range"]
        assert sum(values[1::2]) == int(row["Total GPU Ops"]), row["Range"]


def test_kernels_in_a_graph_belong_to_the_operations_that_they_were_recorded_for() -> None:
    """Three matrix products share one kernel; which is which only tells when the graph's node was made."""
    read = timeline("nsys_cold")
    ops = read.ops.take(read.ops.graph > 0)
    named = [
        (read.text(op), read.text(scope), read.text(source))
        for op, scope, source in zip(ops.hlo_op, ops.scope, ops.source, strict=True)
        if read.text(op).startswith("gemm_fusion_dot.")
    ]
    for layer in range(4):
        forward = (
            f"gemm_fusion_dot.{layer + 4}",
            f"jit(train_step)/jvp(layer_{layer})/dot_general",
            "train.py:9",
        )
        assert named.count(forward) == 4  # one a step
    kernels = {
        read.text(name)
        for name, op in zip(ops.name, ops.hlo_op, strict=True)
        if read.text(op) == "gemm_fusion_dot.6"
    }
    assert kernels == {"gemm_fusion_dot_5"}
    assert {read.text(module) for module in ops.module} == {"jit_train_step"}
    assert set(ops.program.tolist()) == {662}
    assert read.blind == {"allocator", "python"}


def test_kernels_in_a_graph_made_before_the_recording_are_named_by_xla() -> None:
    read = timeline("nsys_gpu_bound")
    found = {
        read.text(name): (read.text(op), read.text(scope), read.text(source))
        for name, op, scope, source in zip(
            read.ops.name, read.ops.hlo_op, read.ops.scope, read.ops.source, strict=True
        )
    }
    assert found["loop_add_fusion_2"] == (
        "loop_add_fusion.2", "jit(train)/transpose(jvp())/add_any", "nsys_patterns.py:8",
    )  # fmt: skip
    # A library's kernel has XLA's name of no operation: it belongs to the graph, and no more is said.
    assert found["nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"] == ("command_buffer_1", "", "")


def test_what_a_library_launches_in_a_graph_belongs_to_the_operations_that_called_it() -> None:
    """Each product of cuBLAS is a graph in the step's graph, which was made before recording."""
    read = timeline("nsys_child_graphs")
    ops = read.ops.take((read.ops.graph > 0) & (read.ops.kind == OpKind.KERNEL))
    layers = Counter(
        (read.text(scope), read.text(name).startswith("sm90_xmma_gemm"))
        for name, scope in zip(ops.name, ops.scope, strict=True)
    )
    for layer in range(8):
        assert layers[f"jit(big_step)/layer_{layer}/dot_general", True] == 5  # one a step
        assert layers[f"jit(big_step)/layer_{layer}/tanh", False] == 5
    assert layers["jit(big_step)/dot_general", True] == 5
    assert sum(layers.values()) == 5 * 21


def test_launches_outside_graphs_belong_to_the_range_around_them() -> None:
    read = timeline("nsys_eager")
    by_scope = nsys_stats.summed([read.text(scope) for scope in read.ops.scope], read.ops.duration_ns)
    assert by_scope["jit(add)/add"] == (100, 125472)
    assert by_scope["jit(sqrt)/sqrt"] == (100, 119902)
    modules = Counter(read.text(module) for module in read.ops.module)
    assert modules["jit_multiply"] == 200
    assert modules[""] == 200  # the copies
    assert len(set(read.ops.program.tolist()) - {-1}) == 6


@pytest.mark.parametrize(
    ("name", "stem", "count"),
    [
        ("nsys_gpu_bound", "step", 5),
        ("nsys_gpu_bound_graphmode", "step", 5),
        ("nsys_mlp_graphmode", "train_step", 8),
        ("nsys_eager", "step", 5),
        ("nsys_dp2", "step", 5),
        ("nsys_cold", "train_step", 4),
    ],
)
def test_steps_are_the_numbered_ranges(name: str, stem: str, count: int) -> None:
    steps = timeline(name).steps
    assert {timeline(name).text(number) for number in steps.name} == {stem}
    assert steps.number.tolist() == list(range(count))


@pytest.mark.parametrize("name", ["nsys_gpu_bound_graphmode", "nsys_mlp_graphmode"])
def test_a_graph_that_was_recorded_as_one_thing_is_told(name: str) -> None:
    read = timeline(name)
    graphs = read.ops.take(read.ops.kind == OpKind.GRAPH)
    assert len(graphs) == len(read.steps)
    assert "graphs" in read.blind
    assert {read.text(op) for op in graphs.hlo_op} == {"command_buffer_1"}
    launches = [row for row in range(len(read.calls)) if read.text(read.calls.name[row]) == "cuGraphLaunch"]
    assert read.calls.correlation[launches].tolist() == graphs.correlation.tolist()
    assert read.calls.launches[launches].all()


def test_copies_tell_direction_and_memory() -> None:
    read = timeline("nsys_mlp_graphmode")
    copies = read.ops.take(read.ops.kind == OpKind.COPY)
    assert Counter(copies.copy_kind.tolist()) == {
        CopyKind.HOST_TO_DEVICE: 8, CopyKind.DEVICE_TO_HOST: 8, CopyKind.DEVICE_TO_DEVICE: 8,
    }  # fmt: skip
    on_host = copies.copy_kind != CopyKind.DEVICE_TO_DEVICE
    assert set(copies.host_memory[on_host].tolist()) <= {HostMemory.PAGEABLE, HostMemory.PINNED}
    assert set(copies.host_memory[~on_host].tolist()) == {HostMemory.UNKNOWN}


def test_two_devices_and_their_collectives() -> None:
    read = timeline("nsys_dp2")
    assert [(device.name, device.model, device.multiprocessors) for device in read.devices] == [
        ("GPU 0", "NVIDIA H200", 132),
        ("GPU 1", "NVIDIA H200", 132),
    ]
    assert read.devices[0].peak_bytes_per_s == pytest.approx(4.8e12, rel=0.01)
    assert {read.text(kind) for kind in read.collectives.kind} == {"all-reduce"}
    rows = read.collectives.op
    nccl = [row for row in rows.tolist() if read.text(read.ops.name[row]).startswith("nccl")]
    assert read.ops.duration_ns[nccl].sum() == 1874159
    assert Counter(read.ops.device[nccl].tolist()) == {0: 10, 1: 10}
    assert {"XlaLauncher 0", "XlaLauncher 1"} <= {thread.name for thread in read.threads}


def test_who_marked_a_range_is_told_by_its_domain() -> None:
    read = timeline("nsys_cold")
    by_kind = defaultdict[int, set[str]](set)
    for kind, name in zip(read.ranges.kind.tolist(), read.ranges.name, strict=True):
        by_kind[kind].add(read.text(name))
    assert by_kind[RangeKind.ANNOTATION] == {
        "capture", "epoch", "load_data", "read_loss",
    }  # fmt: skip
    assert {"Thunk", "XlaModule", "XlaPass"} <= by_kind[RangeKind.RUNTIME]


def test_compiling_is_told_once_with_what_autotuning_compiled_in_it() -> None:
    read = timeline("nsys_cold")
    assert [read.text(function) for function in read.compiles.function] == ["train_step"]
    assert read.compiles.phase.tolist() == [Phase.COMPILE]
    assert read.compiles.duration_ns[0] == pytest.approx(1.035e9, rel=0.001)


def test_ranges_of_a_thread_nest() -> None:
    for name in (*STATS, "nsys_two_processes"):
        read = timeline(name)
        ends: dict[int, list[float]] = defaultdict(list)
        for row in range(len(read.ranges)):
            start = read.ranges.start_ns[row]
            end = start + read.ranges.duration_ns[row]
            around = ends[int(read.ranges.thread[row])]
            while around and around[-1] <= start:
                around.pop()
            assert not around or around[-1] >= end
            around.append(end)


def test_processes_of_one_report_are_apart() -> None:
    read = timeline("nsys_two_processes")
    assert {thread.process for thread in read.threads} == {0, 1}
    process = np.array([thread.process for thread in read.threads])[read.calls.thread]
    first, second = (set(read.calls.correlation[process == one].tolist()) - {0} for one in (0, 1))
    assert first
    assert second
    assert not first & second
    assert {thread.number for thread in read.threads} >= {1368, 1369}


@pytest.mark.parametrize("name", ["nsys_import_error", "nsys_two_processes"])
def test_a_report_of_which_nsys_lost_events_is_marked(name: str) -> None:
    read = timeline(name)
    assert not read.files[0].complete
    assert "could not process all recorded events" in read.notices[0]
    assert "ranges have no end of their own" in read.notices[0]
    ends = read.compiles.start_ns + read.compiles.duration_ns
    assert (ends < read.recorded_ns[1]).all(), "how long these took isn't known"


def test_times_are_those_of_the_report() -> None:
    read = timeline("nsys_gpu_bound")
    assert read.origin_ns == 1796028478502896210
    assert read.recorded_ns == (0, 28639559)
    assert read.steps.start_ns[0] == 14084182
    assert read.versions["nsys"] == "2025.3.2.0"
    assert read.versions["cuda_driver"] == "13.0"


def test_reports_are_read_without_jax(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('jax', 'jaxlib', 'xprof', 'tensorboard'): sys.modules[name] = None\n"
        "from jupyterlab_jaxprof import timeline\n"
        f"read = timeline.read({str(unpacked('nsys_gpu_bound.sqlite'))!r})\n"
        "print(len(read.ops), len(read.steps))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split() == ["160", "5"]
