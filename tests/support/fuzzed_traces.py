"""Traces that no recorder wrote: XSpace messages of odd names, times and stats, and damaged ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.support import xspace
from tests.support.odd_values import NUMBERS, byte_changes, mutated, odd_text, pool

BEGAN_NS = 1_796_028_606_418_385_433

#: Names that the readers know something about.
NAMES = (
    "gemm_fusion_dot", "loop_add_fusion", "MemcpyH2D", "MemcpyD2H", "MemcpyP2P", "Memset 0",
    "CudaGraphExec:3", "ncclDevKernel_AllReduce_Sum_f32", "all-gather-start.1", "PjitFunction(train_step)",
    "PjitFunction(f)", "PjitFunction(jaxprof_fence)", "jit_jaxprof_fence", "trace_to_jaxpr",
    "lower_sharding_computation", "backend_compile", "HLO Transforms:jit_f",
    "PjRtCApiLoadedExecutable::Execute", "np.asarray(jax.Array)", "cuLaunchKernel", "cuGraphLaunch",
    "$loader.py:12 next_batch", "MemoryAllocation", "MemoryDeallocation", "end: x",
    "ThreadpoolListener::Record", "train", "load batch", "pure_callback.3", "GC", "<UNKNOWN>",
    "copy_array_to_devices_with_sharding", "shard_args", "DeserializeExecutable", "BFCAllocator",
)  # fmt: skip
STATS = (
    "step_num", "_r", "correlation_id", "hlo_op", "hlo_module", "program_id", "memcpy_details",
    "Memset_details", "name", "tf_op", "source", "cuda_graph_id", "allocator_name", "bytes_allocated",
    "bytes_available", "peak_bytes_in_use", "fragmentation", "device_id", "run_id", "_c", "_p", "_pt",
    "long_name", "module_name",
)  # fmt: skip
DETAILS = (
    "kind_src:pinned kind_dst:device size:4096 async:1", "size:" + "9" * 30, "size:٣", "size:-1", "size",
    ":", "kind_src:device kind_dst:pageable num_bytes:8", "GPU_0_bfc", "GPU_99999999999999999999_bfc",
    "jit_f", "dot.1", "--5", "-3", "9" * 18, "/a/b.py:12", "/a/b.py:" + "9" * 6000, "{{{}}}", "step_num=1",
)  # fmt: skip
DEVICES = (
    "/device:GPU:0", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/device:GPU:99999999999999999999",
    "/device:CUSTOM:x", "/device:GPU:" + "9" * 5000,
)  # fmt: skip
OTHER_PLANES = ("/host:metadata", "Task Environment", "/host:__ScopeRangeCallStack__")
STREAMS = (
    "Stream #7(Compute)", "Stream #7(Compute)", "Stream #8(MemcpyH2D)", "Stream #99999999999999999999",
    "XLA Ops", "Steps",
)  # fmt: skip
THREADS = ("python3/7", "pjrt_async_work_runner/8", "tf_XLAEigen/9", "7", "")
PLANE_STATS = (
    "profile_start_time", "profile_stop_time", "memory_size", "core_count", "memory_bandwidth",
    "peak_teraflops_per_second", "gpu_device_name", "device_type_string", "dropped_traceme_events",
    "cuda_runtime_version",
)  # fmt: skip
WARNINGS = (
    "12 events were dropped",
    "dropped 99999999999999999999 events",
    "dropped " + "9" * 5000,
    "x\0\x1b[31m",
)


def _time(chance: Random) -> int:
    if chance.random() < 0.8:
        return chance.randrange(10 ** chance.randrange(1, 11))
    return chance.choice([*NUMBERS, 10**13, BEGAN_NS, BEGAN_NS * 1000])


def _text(chance: Random) -> str:
    return chance.choice(DETAILS) if chance.random() < 0.6 else odd_text(chance)


def _value(chance: Random) -> int | str:
    if chance.random() < 0.5:
        return _text(chance)
    return chance.randrange(-2, 100) if chance.random() < 0.6 else chance.choice(NUMBERS)


def _stats(chance: Random, names: Sequence[str]) -> dict[str, int | str]:
    return {chance.choice(names): _value(chance) for _ in range(chance.randrange(4))}


def _event(chance: Random) -> tuple[str, int, int, dict[str, int | str]]:
    name = chance.choice(NAMES) if chance.random() < 0.8 else odd_text(chance)
    return name, _time(chance), _time(chance), _stats(chance, STATS)


def _begin(chance: Random) -> int:
    return chance.choice([0, 0, BEGAN_NS, _time(chance)])


def _planes_of(names: tuple[str, ...], lines: tuple[str, ...], most: int) -> st.SearchStrategy[list[Any]]:
    head = pool(lambda chance: (chance.choice([*lines, *lines, _text(chance)]), _begin(chance)), 500)
    line = st.tuples(head, st.lists(pool(_event), min_size=1, max_size=8))
    own = pool(lambda chance: (chance.choice(names), _stats(chance, PLANE_STATS)), 500)
    plane = st.tuples(own, st.lists(line, min_size=1, max_size=2))
    return st.lists(plane, max_size=most)


_planes = st.builds(
    lambda *parts: [plane for part in parts for plane in part],
    _planes_of(DEVICES, STREAMS, 2),
    _planes_of(("/host:CPU",), THREADS, 1),
    _planes_of(OTHER_PLANES, THREADS, 1),
)


def _written(planes: list[Any], warnings: list[str], host: str) -> bytes:
    made: list[xspace.Plane] = []
    for (name, stats), lines in planes:
        plane = xspace.Plane(name, stats)
        for (line, begin), events in lines:
            plane.line(line, begin, [plane.event(*event) for event in events])
        made.append(plane)
    return xspace.space(*made, host=host, warnings=warnings)


#: A trace's bytes: well formed but of odd contents, and every third one damaged besides.
traces = st.builds(
    lambda planes, warnings, host, changes: mutated(_written(planes, warnings, host), changes),
    _planes,
    st.lists(st.sampled_from(WARNINGS), max_size=1),
    pool(lambda chance: chance.choice(["vm", odd_text(chance)]), 200),
    st.one_of(st.just([]), st.just([]), byte_changes()),
)
