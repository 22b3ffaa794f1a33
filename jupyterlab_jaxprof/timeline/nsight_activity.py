"""What an Nsight report's tables hold of the devices' work and of the calls that launched it, as columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .build import Texts
from .model import CopyKind, HostMemory, Numbers, OpKind
from .nsight_database import NO_TIME, Database, IntegerColumn, timed
from .nsight_places import Places, distinct

# How CUPTI numbers the kinds of copies; 11 to 13 are unified memory's. ENUM_CUDA_MEMCPY_OPER has the same.
_COPIES = {
    1: (CopyKind.HOST_TO_DEVICE, "Host-to-Device"),
    2: (CopyKind.DEVICE_TO_HOST, "Device-to-Host"),
    3: (CopyKind.HOST_TO_DEVICE, "Host-to-Array"),
    4: (CopyKind.DEVICE_TO_HOST, "Array-to-Host"),
    5: (CopyKind.DEVICE_TO_DEVICE, "Array-to-Array"),
    6: (CopyKind.DEVICE_TO_DEVICE, "Array-to-Device"),
    7: (CopyKind.DEVICE_TO_DEVICE, "Device-to-Array"),
    8: (CopyKind.DEVICE_TO_DEVICE, "Device-to-Device"),
    9: (CopyKind.OTHER, "Host-to-Host"),
    10: (CopyKind.PEER_TO_PEER, "Peer-to-Peer"),
    11: (CopyKind.HOST_TO_DEVICE, "Unified Host-to-Device"),
    12: (CopyKind.DEVICE_TO_HOST, "Unified Device-to-Host"),
    13: (CopyKind.DEVICE_TO_DEVICE, "Unified Device-to-Device"),
}
_MEMORIES = {0: HostMemory.PAGEABLE, 1: HostMemory.PINNED, 4: HostMemory.MANAGED, 6: HostMemory.MANAGED}
_COMMON = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_NOT_KNOWN = 1 << 20  # stands for a NULL kind
_LAUNCH = re.compile(r"(?:cu|cuda)(?:Launch(?!HostFunc)|GraphLaunch)\w*")
#: nsys keeps the version of the interface that a call has, and leaves it out when it sums up.
_API_VERSION = re.compile(r"_v\d{4}$")


@dataclass(frozen=True)
class Activity:
    """What the devices did, one row each, in no order; times in whole nanoseconds."""

    process: IntegerColumn
    device: IntegerColumn
    stream: IntegerColumn
    kind: IntegerColumn
    name: IntegerColumn  # number of a text
    start: IntegerColumn
    end: IntegerColumn
    size_bytes: IntegerColumn
    copy_kind: IntegerColumn
    host_memory: IntegerColumn
    correlation: IntegerColumn  # as the process numbers it
    node: IntegerColumn  # of the CUDA graph; 0: none
    graph: IntegerColumn

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Calls:
    """Calls of the CUDA API, in no order."""

    process: IntegerColumn
    thread: Numbers
    name: Numbers
    start: IntegerColumn
    end: IntegerColumn
    correlation: IntegerColumn
    launches: NDArray[np.bool_]

    def of(self, activity: Activity) -> IntegerColumn:
        """Give for each activity the row of the call that launched it, else -1."""
        if not len(self.start) or not len(activity):
            return np.full(len(activity), -1, dtype=np.int64)
        width = 1 + int(max(self.correlation.max(), activity.correlation.max()))
        own, wanted = (table.process * width + np.maximum(table.correlation, 0) for table in (self, activity))
        size = width * (1 + int(max(self.process.max(), activity.process.max())))
        if size <= 8 * (len(own) + len(wanted)) + 1024:  # nearly all numbers are in use: a table of them
            row_of = np.full(size, -1, dtype=np.int64)
            row_of[own] = np.arange(len(own))
            found = row_of[wanted]
        else:
            order = np.argsort(own, kind="stable")
            place = np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)
            found = np.where(own[order][place] == wanted, order[place], -1)
        return np.where(activity.correlation > 0, found, -1)


def read_activity(database: Database, places: Places, texts: Texts, strings: Mapping[int, str]) -> Activity:
    """Read kernels, copies, sets and graphs."""
    parts = [
        part
        for kind, name in (
            (OpKind.KERNEL, "CUPTI_ACTIVITY_KIND_KERNEL"),
            (OpKind.COPY, "CUPTI_ACTIVITY_KIND_MEMCPY"),
            (OpKind.SET, "CUPTI_ACTIVITY_KIND_MEMSET"),
            (OpKind.GRAPH, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
        )
        if (part := _read_kind(database, kind, name, places, texts, strings)) is not None
    ]
    none = np.zeros(0, dtype=np.int64)
    return Activity(
        **{
            column.name: np.concatenate([none, *(getattr(part, column.name) for part in parts)])
            for column in fields(Activity)
        }
    )


def _read_kind(
    database: Database, kind: OpKind, name: str, places: Places, texts: Texts, strings: Mapping[int, str]
) -> Activity | None:
    table = database.table(name)
    if table is None:
        return None
    if not database.has(table, "start", "end"):
        database.lost.append(f"{database.path}: the table {table} has no times that are known here.")
        return None
    more = {
        OpKind.KERNEL: (
            "demangledName" if database.has(table, "demangledName") else "shortName",
            "graphNodeId",
        ),
        OpKind.COPY: ("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"),
        OpKind.SET: ("bytes", "graphNodeId"),
        OpKind.GRAPH: ("graphExecId", "graphId"),
    }[kind]
    nulls = {"start": NO_TIME, "end": NO_TIME, "srcKind": _NOT_KNOWN, "dstKind": _NOT_KNOWN}
    read = database.integers(table, *_COMMON, *more, **nulls)
    known = timed(read["start"], read["end"])
    if not known.all():
        read = {column: values[known] for column, values in read.items()}
    zeros = np.zeros(len(read["start"]), dtype=np.int64)
    copy_kind, host_memory = _copies(read) if kind == OpKind.COPY else (zeros, zeros)
    node = read.get("graphNodeId", zeros)
    graph = node >> 32  # a node's number has its graph's in the upper half
    if kind == OpKind.GRAPH:
        graph = np.where(read["graphExecId"] > 0, read["graphExecId"], read["graphId"])
    return Activity(
        process=places.processes(read["globalPid"]),
        device=places.devices(read["globalPid"], read["deviceId"]).astype(np.int64),
        stream=read["streamId"],
        kind=zeros + kind,
        name=_names(kind, read, texts, strings),
        start=read["start"],
        end=read["end"],
        size_bytes=read.get("bytes", zeros),
        copy_kind=copy_kind,
        host_memory=host_memory,
        correlation=_correlations(read),
        node=node,
        graph=graph,
    )


def _correlations(read: Mapping[str, IntegerColumn]) -> IntegerColumn:
    """Give the numbers that join calls and what they launched; CUPTI's have 32 bits."""
    numbers = read["correlationId"]
    return np.where((numbers > 0) & (numbers < 1 << 32), numbers, 0)


def _names(
    kind: OpKind, read: Mapping[str, IntegerColumn], texts: Texts, strings: Mapping[int, str]
) -> IntegerColumn:
    """Name things as `nsys stats` does, so that they are found again there."""
    if kind == OpKind.KERNEL:
        found, which = distinct(read["demangledName"] if "demangledName" in read else read["shortName"])
        return texts.numbers(strings.get(int(one), "") for one in found)[which].astype(np.int64)
    if kind == OpKind.COPY:
        found, which = distinct(read["copyKind"])
        labels = (_COPIES.get(int(one), (CopyKind.OTHER, "Unknown"))[1] for one in found)
        return texts.numbers(f"[CUDA memcpy {label}]" for label in labels)[which].astype(np.int64)
    if kind == OpKind.SET:
        return np.full(len(read["start"]), texts.number("[CUDA memset]"), dtype=np.int64)
    found, which = distinct(np.where(read["graphExecId"] > 0, read["graphExecId"], read["graphId"]))
    return texts.numbers(f"CUDA graph {one}" for one in found)[which].astype(np.int64)


def _copies(read: Mapping[str, IntegerColumn]) -> tuple[IntegerColumn, IntegerColumn]:
    """Between which memories each copy went, and of which kind the host's is."""
    kind = _translated(read["copyKind"], {key: copy for key, (copy, _) in _COPIES.items()}, CopyKind.OTHER)
    source, target = (
        _translated(read[name], _MEMORIES, HostMemory.UNKNOWN) for name in ("srcKind", "dstKind")
    )
    host = np.where(kind == CopyKind.DEVICE_TO_HOST, target, source)
    on_host = (kind == CopyKind.HOST_TO_DEVICE) | (kind == CopyKind.DEVICE_TO_HOST)
    return kind, np.where(on_host, host, HostMemory.UNKNOWN)


def _translated(values: IntegerColumn, into: Mapping[int, int], other: int) -> IntegerColumn:
    found, which = distinct(values)
    return np.array([into.get(int(one), other) for one in found], dtype=np.int64)[which]


def read_calls(database: Database, places: Places, texts: Texts, strings: Mapping[int, str]) -> Calls:
    """Read the calls of CUDA's driver and runtime."""
    table = database.table("CUPTI_ACTIVITY_KIND_RUNTIME")
    names = ("start", "end", "globalTid", "correlationId", "nameId")
    nulls = {"start": NO_TIME, "end": NO_TIME}
    empty = {name: np.zeros(0, dtype=np.int64) for name in names}
    read = empty if table is None else database.integers(table, *names, **nulls)
    known = timed(read["start"], read["end"])
    if not known.all():
        read = {column: values[known] for column, values in read.items()}
    found, which = distinct(read["nameId"])
    called = [_API_VERSION.sub("", strings.get(int(one), "")) for one in found]
    launching = np.array([bool(_LAUNCH.fullmatch(one)) for one in called], dtype=np.bool_)
    return Calls(
        process=places.processes(read["globalTid"]),
        thread=places.threads(read["globalTid"]),
        name=texts.numbers(called)[which] if called else np.zeros(0, dtype=np.int32),
        start=read["start"],
        end=read["end"],
        correlation=_correlations(read),
        launches=launching[which] if called else np.zeros(0, dtype=np.bool_),
    )
