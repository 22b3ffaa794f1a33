"""The GPUs' hardware counters in an Nsight report: samples that `--gpu-metrics-devices` takes."""

from __future__ import annotations

import re

import numpy as np

from .build import Texts, columns
from .figures import whole_number
from .model import Counters
from .nsight_database import Database

#: What a name says of its unit: `SMs Active [Throughput %]`, `GPC Clock Frequency [MHz]`. Other counters, as
#: `[Avg Warps per Cycle]`, tell the same as a share in another way.
_UNITS = {"Throughput %": ("percent", 1.0), "MHz": ("MHz", 1e-6)}  # clocks are exported in Hz
_NAME = re.compile(r"(?P<name>.+?) \[(?P<unit>[^\]]+)\]")


def read_counters(database: Database, texts: Texts) -> Counters | None:
    """Read the samples; None where none were taken."""
    table, named = database.table("GPU_METRICS"), database.table("TARGET_INFO_GPU_METRICS")
    if table is None or named is None or not database.has(named, "typeId", "metricId", "metricName"):
        return None
    if not database.has(table, "timestamp", "typeId", "metricId", "value"):
        return None
    read = database.integers(table, "timestamp", "typeId", "metricId", "value")
    kept: list[np.ndarray] = []
    names, units, scales = list[str](), list[str](), list[float]()
    for type_id, metric, text in database.rows(f'select typeId, metricId, metricName from "{named}"'):
        match = _NAME.fullmatch(str(text))
        if match is None or match["unit"] not in _UNITS:
            continue
        own = (read["typeId"] == whole_number(type_id)) & (read["metricId"] == whole_number(metric))
        kept.append(np.flatnonzero(own))
        unit, scale = _UNITS[match["unit"]]
        names.append(match["name"])
        units.append(unit)
        scales.append(scale)
    if not kept:
        return None
    rows, counts = np.concatenate(kept), [len(one) for one in kept]
    return columns(
        Counters,
        gpu=read["typeId"][rows] & 0xFF,  # the lowest byte; the others tell the machine and the kind
        name=np.repeat(texts.numbers(names), counts),
        unit=np.repeat(texts.numbers(units), counts),
        time_ns=read["timestamp"][rows],
        value=read["value"][rows] * np.repeat(scales, counts),
    )
