"""The devices of an XPlane file: what ran on each, from the lines of its streams."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .build import Texts, columns, concatenate, empty
from .figures import read_number, whole_number
from .model import Collectives, CopyKind, Device, DeviceOps, HostMemory, Numbers, OpKind
from .xplane_format import Line, Plane
from .xplane_hlo import Programs

PLANE = re.compile(r"/device:(?P<platform>\w+):(?P<ordinal>\d+)")
_STREAM = re.compile(r"Stream #?(\d+)")
#: A TPU has lines of its own; of them this holds the operations.
_OPERATIONS_LINE = "XLA Ops"
#: No device does as much; what tells more is damaged.
_MOST_TERAFLOPS = 1e9
_COPY = re.compile(r"Memcpy(\w+?)\b")
_COPY_KINDS = {
    "H2D": CopyKind.HOST_TO_DEVICE,
    "D2H": CopyKind.DEVICE_TO_HOST,
    "D2D": CopyKind.DEVICE_TO_DEVICE,
    "P2P": CopyKind.PEER_TO_PEER,
}
_MEMORIES = {
    "pageable": HostMemory.PAGEABLE,
    "pinned": HostMemory.PINNED,
    "managed": HostMemory.MANAGED,
}
#: A CUDA graph that was recorded as one operation.
_GRAPH = re.compile(r"CudaGraphExec\b")
_COLLECTIVE_KINDS = {
    "all-reduce": "all-reduce",
    "allreduce": "all-reduce",
    "all-gather": "all-gather",
    "allgather": "all-gather",
    "reduce-scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "all-to-all": "all-to-all",
    "alltoall": "all-to-all",
    "ragged-all-to-all": "all-to-all",
    "collective-permute": "permute",
    "collective-broadcast": "broadcast",
    "broadcast": "broadcast",
    "sendrecv": "permute",
    "send": "send",
    "recv": "recv",
}
_NCCL = re.compile(
    r"nccl(?:Dev)?Kernel_?(AllReduce|AllGather|ReduceScatter|AlltoAll|SendRecv|Broadcast|Send|Recv)"
)
_COLLECTIVE_OP = re.compile(
    r"(ragged-all-to-all|all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    r"|collective-broadcast|send|recv)(?![a-z])"
)


@dataclass(frozen=True)
class DeviceContents:
    """One device and its operations; their `device` is 0."""

    device: Device
    ops: DeviceOps


def is_stream(name: str) -> bool:
    """Tell whether a line of a device's plane lists what the device did, once."""
    return bool(_STREAM.match(name)) or name == _OPERATIONS_LINE


def read_device(
    plane: Plane, lines: list[Line], host: str, texts: Texts, programs: Programs
) -> DeviceContents:
    """Read one device from its plane and those of its lines that are streams."""
    match = PLANE.match(plane.name)
    platform = match["platform"] if match else ""
    ordinal = read_number(match["ordinal"], plane.number) if match else plane.number
    stats = plane.stats
    device = Device(
        host=host,
        process=0,
        ordinal=ordinal,
        name=f"{platform} {ordinal}",
        model=str(stats.get("gpu_device_name") or stats.get("device_type_string") or ""),
        memory_bytes=_amount(plane, "memory_size"),
        multiprocessors=_amount(plane, "core_count"),
        peak_bytes_per_s=float(_amount(plane, "memory_bandwidth")),
        peak_flops_per_s=_peak_flops(stats.get("peak_teraflops_per_second")),
    )
    parts = [_read_stream(line, texts) for line in lines]
    ops = concatenate(parts) if parts else empty(DeviceOps)
    return DeviceContents(device, _with_origins(ops, texts, programs))


def _amount(plane: Plane, name: str) -> int:
    return max(whole_number(plane.stats.get(name)), 0)


def _peak_flops(teraflops: object) -> float:
    """Give floating-point operations a second; 0 where the device tells none that can be."""
    if isinstance(teraflops, int | float) and 0 < teraflops < _MOST_TERAFLOPS:
        return teraflops * 1e12
    return 0.0


def _read_stream(line: Line, texts: Texts) -> DeviceOps:
    match, events = _STREAM.match(line.name), line.events
    stats, all_texts = events.stats, texts.all()
    copies = stats.texts("memcpy_details", texts)
    sets = np.maximum(stats.texts("Memset_details", texts), stats.texts("memset_details", texts))
    names, inverse = np.unique(events.name, return_inverse=True)
    kind_of = [_kind_of_name(all_texts[number]) for number in names]
    kind = np.array([kind for kind, _ in kind_of], dtype=np.int8)[inverse] if len(names) else np.zeros(0)
    copy_kind = np.array([copy for _, copy in kind_of], dtype=np.int8)[inverse] if len(names) else kind
    kind = np.where(copies > 0, OpKind.COPY, np.where(sets > 0, OpKind.SET, kind)).astype(np.int8)
    copy_kind = np.where((kind == OpKind.COPY) & (copy_kind == CopyKind.NONE), CopyKind.OTHER, copy_kind)
    size_bytes, host_memory = _details(np.maximum(copies, sets), copy_kind, texts)
    scope = stats.texts("name", texts)
    return columns(
        DeviceOps,
        stream=read_number(match[1]) if match else 0,
        kind=kind,
        name=events.name,
        start_ns=events.start_ns,
        duration_ns=events.duration_ns,
        size_bytes=size_bytes,
        copy_kind=copy_kind,
        host_memory=host_memory,
        correlation=stats.integers("correlation_id"),
        graph=stats.integers("cuda_graph_id"),
        module=stats.texts("hlo_module", texts),
        program=stats.integers("program_id", missing=-1),
        hlo_op=stats.texts("hlo_op", texts),
        scope=np.where(scope > 0, scope, _scopes(stats.texts("tf_op", texts), texts)),
        source=stats.texts("source", texts),
    )


def _kind_of_name(name: str) -> tuple[OpKind, CopyKind]:
    if match := _COPY.match(name):
        return OpKind.COPY, _COPY_KINDS.get(match[1], CopyKind.OTHER)
    if name.startswith("Memset"):
        return OpKind.SET, CopyKind.NONE
    return (OpKind.GRAPH if _GRAPH.match(name) else OpKind.KERNEL), CopyKind.NONE


def _details(
    details: Numbers, copy_kind: NDArray[np.int8], texts: Texts
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Read sizes and host memories from texts such as `kind_src:pinned kind_dst:device size:4 async:1`."""
    all_texts = texts.all()
    unique, inverse = np.unique(details, return_inverse=True)
    parsed = [
        dict(part.split(":", 1) for part in all_texts[number].split() if ":" in part) for number in unique
    ]
    sizes = [one.get("size", one.get("num_bytes", "0")) for one in parsed]
    size_bytes = np.array([max(read_number(size), 0) for size in sizes], dtype=np.int64)
    sources, targets = (
        np.array(
            [_MEMORIES.get(one.get(key, "").lower(), HostMemory.UNKNOWN) for one in parsed], dtype=np.int8
        )
        for key in ("kind_src", "kind_dst")
    )
    if not len(unique):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8)
    to_host = copy_kind == CopyKind.DEVICE_TO_HOST
    return size_bytes[inverse], np.where(to_host, targets[inverse], sources[inverse]).astype(np.int8)


def _scopes(tf_ops: Numbers, texts: Texts) -> Numbers:
    """JAX's name stacks as older versions give them, with a colon and an empty type behind."""
    all_texts = texts.all()
    unique, inverse = np.unique(tf_ops, return_inverse=True)
    scopes = (all_texts[number].rstrip(":") for number in unique)
    numbers = texts.numbers("" if scope == "XlaModule" else scope for scope in scopes)
    return numbers[inverse] if len(unique) else tf_ops


def _with_origins(ops: DeviceOps, texts: Texts, programs: Programs) -> DeviceOps:
    """Fill in from the programs what the events do not tell: operations inside CUDA graphs, sources."""
    count = len(texts.all())
    # One number for each different operation, since sorting rows of four is slow.
    named = (ops.module.astype(np.int64) * count + ops.hlo_op) * count + ops.name
    _, programs_inverse = np.unique(ops.program, return_inverse=True)
    _, named_inverse = np.unique(named, return_inverse=True)
    _, first, inverse = np.unique(
        named_inverse * (int(programs_inverse.max(initial=0)) + 1) + programs_inverse,
        return_index=True,
        return_inverse=True,
    )
    unique = zip(
        *(column[first].tolist() for column in (ops.module, ops.program, ops.hlo_op, ops.name)), strict=True
    )
    all_texts = texts.all()
    found = [
        programs.origin(all_texts[module], program, all_texts[op])
        if not all_texts[op].startswith("command_buffer")
        else programs.origin(all_texts[module], program, all_texts[name])
        for module, program, op, name in unique
    ]
    if not found:
        return ops
    op, scope, source = (
        texts.numbers(getattr(origin, name) if origin else "" for origin in found)[inverse]
        for name in ("op", "scope", "source")
    )
    return columns(
        DeviceOps,
        **{
            **vars(ops),
            "hlo_op": np.where(op > 0, op, ops.hlo_op),
            "scope": np.where(ops.scope > 0, ops.scope, scope),
            "source": np.where(ops.source > 0, ops.source, source),
        },
    )


def find_collectives(ops: DeviceOps, texts: Texts, programs: Programs | None = None) -> Collectives:
    """Find the operations between devices by the names of their kernels and of their HLO operations.

    Their sizes are known from the programs.
    """
    all_texts = texts.all()
    kinds = [np.zeros(len(ops), dtype=np.int32)] * 2
    for place, (column, pattern) in enumerate(((ops.name, _NCCL), (ops.hlo_op, _COLLECTIVE_OP))):
        unique, inverse = np.unique(column, return_inverse=True)
        matches = [pattern.match(all_texts[number]) for number in unique]
        names = ["" if match is None else _COLLECTIVE_KINDS[match[1].lower()] for match in matches]
        if names:
            kinds[place] = texts.numbers(names)[inverse]
    kind = np.where(kinds[1] > 0, kinds[1], kinds[0])
    rows = np.flatnonzero(kind)
    sizes: dict[tuple[int, int, int], int] = {}
    operations = list(
        zip(*(column[rows].tolist() for column in (ops.module, ops.program, ops.hlo_op)), strict=True)
    )
    for module, program, op in set(operations) if programs else ():
        origin = programs.origin(all_texts[module], program, all_texts[op]) if programs else None
        sizes[module, program, op] = origin.operand_bytes if origin else 0
    size_bytes = np.array([sizes.get(one, 0) for one in operations], dtype=np.int64)
    return columns(Collectives, op=rows, kind=kind[rows], size_bytes=size_bytes)
