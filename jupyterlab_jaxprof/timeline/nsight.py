"""Reading an Nsight Systems report, from its SQLite export, into a timeline.

The names of tables and columns: https://docs.nvidia.com/nsight-systems/UserGuide/index.html#sqlite-schema-reference
Needs neither jax nor XProf: reports are read where only they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from jupyterlab_jaxprof.environment.secrets import is_secret

from .build import Texts, columns, empty
from .figures import read_number, whole_number
from .model import (
    AllocatorSamples,
    ApiCalls,
    Compiles,
    DeviceOps,
    File,
    Integers,
    OpKind,
    Source,
    Timeline,
)
from .nsight_activity import Activity, Calls, read_activity, read_calls
from .nsight_counters import read_counters
from .nsight_database import KNOWN_SCHEMA, Database
from .nsight_hlo import HloTexts
from .nsight_host import find_compiles, find_steps, host_ranges, merged
from .nsight_join import Origins, join, read_nodes
from .nsight_payloads import read_sources
from .nsight_places import Places
from .nsight_ranges import Ranges, read_nvtx, read_system
from .xplane_device import find_collectives

_XLA_DOMAINS = {"TSL", "XLA"}


def read_export(path: Path, report: Path | None = None) -> Timeline:
    """Read the SQLite export at `path`; `report` is the report that it was made of, where that is known.

    Raises ReadError for a file that is no such export, or of which nothing can be read. What is damaged or
    missing is left out; then the file is marked incomplete, and notices say why.
    """
    database = Database(path)
    try:
        return _Reader(database, report or path).timeline()
    finally:
        database.close()


class _Reader:
    """One export on its way to a timeline."""

    def __init__(self, database: Database, shown: Path) -> None:
        self._database = database
        self._shown = shown
        self._notices: list[str] = []
        self._texts = Texts()
        self._export = database.mapping("META_DATA_EXPORT", "EXPORT_META_DATA")
        self._environment = database.mapping("TARGET_INFO_SYSTEM_ENV")
        self._strings = database.strings()
        self._places = Places(database, self._strings, self._environment.get("Hostname", ""))

    def timeline(self) -> Timeline:
        """Read it."""
        database, texts, strings = self._database, self._texts, self._strings
        duration = self._duration()
        nvtx, domains = read_nvtx(database, self._places, strings, duration)
        system = read_system(database, self._places, strings)
        calls = read_calls(database, self._places, texts, strings)
        activity = read_activity(database, self._places, texts, strings)
        nodes = read_nodes(database, self._places)
        hlo = HloTexts(strings, read_sources(database, strings))
        origins = join(activity, calls, nvtx, nodes, hlo, texts)
        ops = self._ops(activity, origins)
        steps, others = find_steps(nvtx, texts)
        ranges, threads = host_ranges(merged(others, system), self._places.all_threads(), texts)
        whole = self._judge(nvtx, duration)
        counters = read_counters(database, texts)
        return Timeline(
            source=Source.NSIGHT,
            files=(self._file(whole),),
            origin_ns=self._origin(),
            devices=self._places.all_devices(),
            threads=tuple(threads),
            ops=ops,
            ranges=ranges,
            calls=self._calls(calls),
            steps=steps,
            compiles=_whole(find_compiles(nvtx, texts), duration if not whole else None),
            allocator=empty(AllocatorSamples),
            collectives=find_collectives(ops, texts),
            counters=counters,
            texts=texts.all(),
            recorded_ns=self._recorded(duration, [activity, calls, nvtx, system]),
            blind=self._blind(activity, calls, nvtx, domains),
            notices=tuple(dict.fromkeys([*self._notices, *database.lost])),
            versions=self._versions(),
        )

    def _ops(self, activity: Activity, origins: Origins) -> DeviceOps:
        return columns(
            DeviceOps,
            device=activity.device,
            stream=activity.stream,
            kind=activity.kind,
            name=activity.name,
            start_ns=activity.start,
            duration_ns=activity.end - activity.start,
            size_bytes=activity.size_bytes,
            copy_kind=activity.copy_kind,
            host_memory=activity.host_memory,
            correlation=_apart(activity.correlation, activity.process),
            graph=_apart(activity.graph, activity.process),
            module=origins.module,
            program=origins.program,
            hlo_op=origins.hlo_op,
            scope=origins.scope,
            source=origins.source,
        )

    def _calls(self, calls: Calls) -> ApiCalls:
        return columns(
            ApiCalls,
            thread=calls.thread,
            name=calls.name,
            start_ns=calls.start,
            duration_ns=calls.end - calls.start,
            correlation=_apart(calls.correlation, calls.process),
            launches=calls.launches,
        )

    def _duration(self) -> int | None:
        """How long recording lasted, from time 0 on; None where the export does not tell."""
        table = self._database.table("ANALYSIS_DETAILS")
        if table is None or not self._database.has(table, "duration"):
            return None
        return max(
            (whole_number(row[0]) for row in self._database.rows(f'select duration from "{table}"')),
            default=0,
        )

    def _recorded(
        self, duration: int | None, tables: Sequence[Activity | Calls | Ranges]
    ) -> tuple[float, float]:
        ends = [int(table.end.max()) for table in tables if len(table.end)]
        starts = [int(table.start.min()) for table in tables if len(table.start)]
        if duration:
            # Kernels that were launched within may end later: nsys waits for them.
            return 0.0, float(max([duration, *ends]))
        return float(min(starts, default=0)), float(max(ends, default=0))

    def _origin(self) -> int:
        table = self._database.table("TARGET_INFO_SESSION_START_TIME")
        if table is None or not self._database.has(table, "utcEpochNs"):
            return 0
        return next(
            (whole_number(row[0]) for row in self._database.rows(f'select utcEpochNs from "{table}"')), 0
        )

    def _versions(self) -> dict[str, str]:
        found = {
            "nsys": self._export.get("EXPORT_PRODUCT_VERSION", ""),
            "cuda_driver": _cuda_version(self._environment.get("CudaDriverVersion", "")),
            "driver": self._environment.get("NvDriverVersion", ""),
        }
        if found["driver"] in ("", "0"):  # there was no GPU
            found["cuda_driver"] = found["driver"] = ""
        return {name: version for name, version in found.items() if version}

    def _file(self, whole: bool) -> File:
        return File(
            path=str(self._shown),
            source=Source.NSIGHT,
            size_bytes=self._shown.stat().st_size,
            host=self._environment.get("Hostname", ""),
            complete=whole and not self._database.lost,
        )

    def _judge(self, nvtx: Ranges, duration: int | None) -> bool:
        """Say what is amiss with the report itself; False where it lacks events."""
        schema = self._database.schema()
        if schema and schema[0] > KNOWN_SCHEMA[0]:
            self._notices.append(
                f"{self._shown} was exported by a newer Nsight Systems (schema {schema[0]}; known here is "
                f"{KNOWN_SCHEMA[0]}): what has changed since is not read."
            )
        self._notices += _secrets(self._shown, self._strings.values())
        failed = self._import_failed()
        if failed:
            # What was open when the events broke off is ended where recording did.
            unended = nvtx.unended + int(np.sum(nvtx.end == duration)) if duration else nvtx.unended
            self._notices.append(
                f"{self._shown} is incomplete: Nsight Systems could not process all recorded events"
                + (f", and {unended} NVTX ranges have no end of their own" if unended else "")
                + ". nsys 2025.3 fails so, now and then, at what XLA's ranges tell of their source. Record "
                "it again, or with another version of nsys."
            )
        return not failed

    def _import_failed(self) -> bool:
        table = self._database.table("DIAGNOSTIC_EVENT")
        if table is None or not self._database.has(table, "text"):
            return False
        query = f"select 1 from \"{table}\" where text like 'Error when processing events%' limit 1"
        return next(iter(self._database.rows(query)), None) is not None

    def _blind(
        self, activity: Activity, calls: Calls, nvtx: Ranges, domains: frozenset[str]
    ) -> frozenset[str]:
        blind = {"allocator", "python"}
        if not len(activity) and not len(calls.start):
            blind.add("devices")
        if not len(nvtx) and not len(calls.start):
            blind.add("host")
        if not domains & _XLA_DOMAINS or not self._strings:
            blind.add("compiles")
        if _hides_graphs(activity, calls, self._texts.all()):
            blind.add("graphs")
        return frozenset(blind)


def _secrets(shown: Path, texts: Iterable[str]) -> list[str]:
    """Say which secrets a report may hold: nsys keeps the environment of all processes that it can look at.

    Seen with 2025.3, as root: that of the shell and of the notebook's kernel too. In a text, a null follows
    each variable. Where %%nsys has removed a value, there are asterisks.
    """
    variables = [variable.partition("=") for text in texts if "\0" in text for variable in text.split("\0")]
    names = sorted(
        {
            name
            for name, _, value in variables
            if value.strip("*") and re.fullmatch(r"\w+", name) and is_secret(name)
        }
    )
    if not names:
        return []
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [
        f"{shown} holds environment variables that may be secrets ({listed}): nsys has recorded those of "
        "other processes too. Don't hand it on."
    ]


def _hides_graphs(activity: Activity, calls: Calls, texts: Sequence[str]) -> bool:
    """Tell whether kernels ran inside graphs that were recorded as one thing, or not at all."""
    if bool(np.any(activity.kind == OpKind.GRAPH)):
        return True
    named = {number for number, text in enumerate(texts) if "GraphLaunch" in text}
    launches = np.isin(calls.name, list(named))
    if not bool(np.any(launches)):
        return False
    width = 1 + int(calls.correlation.max(initial=0))
    seen = np.isin(
        (calls.process * width + calls.correlation)[launches],
        activity.process * width + np.minimum(activity.correlation, width - 1),
    )
    return not bool(np.any(seen))


def _whole(compiles: Compiles, duration: int | None) -> Compiles:
    """Leave out what was open when the events of a broken recording end: how long it took isn't known."""
    return compiles.take(compiles.start_ns + compiles.duration_ns < duration) if duration else compiles


def _apart(numbers: Integers, process: Integers) -> Integers:
    """Keep the numbers of two processes apart: each counts from 1."""
    width = 1 + int(numbers.max(initial=0))
    return np.where(numbers > 0, numbers + process * width, 0)


def _cuda_version(number: str) -> str:
    known = read_number(number)
    return f"{known // 1000}.{known % 1000 // 10}" if known > 0 else number
