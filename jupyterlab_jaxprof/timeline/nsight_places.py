"""Where an Nsight report's events happened: processes, their threads, and the devices that they used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .figures import whole_number
from .model import Device, Numbers, Thread
from .nsight_annotations import parse
from .nsight_database import Database, IntegerColumn

# A global thread id holds the machine in its upper 16 bits, then 24 bits of process id and 24 of thread id;
# a global process id is the same with a thread id of 0.
_THREAD_BITS = 24
_ID_MASK = (1 << _THREAD_BITS) - 1


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Give the different values, sorted, and for each value the number of its like: np.unique's inverse.

    Most columns hold few different values in a small span, which needs no sorting.
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp)
    low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
    if span > max(4 * len(values), 1024):
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse.reshape(-1)
    there = np.zeros(span, dtype=np.bool_)
    there[values - low] = True
    number = np.cumsum(there) - 1
    return np.flatnonzero(there) + low, number[values - low]


class Places:
    """Numbers processes, threads and devices in the order in which they are met."""

    def __init__(self, database: Database, strings: Mapping[int, str], host: str) -> None:
        self._host = host
        self._processes: dict[int, int] = {}
        self._threads: dict[int, int] = {}
        self._devices: dict[tuple[int, int], int] = {}
        self._thread_names = _thread_names(database, strings)
        self._gpus = _gpus(database)
        self._gpu_of = _gpu_of_devices(database)

    def processes(self, global_ids: IntegerColumn) -> IntegerColumn:
        """Give the numbers of the processes that global ids (of processes or threads) belong to."""
        found, which = distinct(global_ids >> _THREAD_BITS)
        numbers = [self._processes.setdefault(int(one), len(self._processes)) for one in found]
        return np.array(numbers, dtype=np.int64)[which]

    def threads(self, global_ids: IntegerColumn) -> Numbers:
        """Give the numbers of threads."""
        found, which = distinct(global_ids)
        self.processes(found)
        numbers = [self._threads.setdefault(int(one), len(self._threads)) for one in found]
        return np.array(numbers, dtype=np.int32)[which]

    def devices(self, process_ids: IntegerColumn, ordinals: IntegerColumn) -> Numbers:
        """Give the numbers of devices: those of two processes are apart, as the model has it."""
        processes, process = distinct(process_ids >> _THREAD_BITS)
        ordinals_found, ordinal = distinct(ordinals)
        pairs, which = distinct(process.astype(np.int64) * len(ordinals_found) + ordinal)
        numbers: list[int] = []
        for pair in pairs:
            key = (
                int(processes[pair // len(ordinals_found)]),
                int(ordinals_found[pair % len(ordinals_found)]),
            )
            self._processes.setdefault(key[0], len(self._processes))
            numbers.append(self._devices.setdefault(key, len(self._devices)))
        return np.array(numbers, dtype=np.int32)[which]

    def all_devices(self) -> tuple[Device, ...]:
        """Describe the devices, each at its number."""
        return tuple(self._device(process, ordinal) for process, ordinal in self._devices)

    def all_threads(self) -> tuple[Thread, ...]:
        """Describe the threads, each at its number."""
        return tuple(
            Thread(
                host=self._host,
                process=self._processes[number >> _THREAD_BITS],
                number=number & _ID_MASK,
                name=self._thread_names.get(number, ""),
            )
            for number in self._threads
        )

    def process_count(self) -> int:
        """Tell how many processes were met."""
        return len(self._processes)

    def _device(self, process: int, ordinal: int) -> Device:
        gpu = self._gpus.get(self._gpu_of.get((process & _ID_MASK, ordinal), ordinal), {})
        return Device(
            host=self._host,
            process=self._processes[process],
            ordinal=ordinal,
            name=f"GPU {ordinal}",
            model=str(gpu.get("name") or ""),
            memory_bytes=whole_number(gpu.get("totalMemory")),
            multiprocessors=whole_number(gpu.get("smCount")),
            peak_bytes_per_s=float(whole_number(gpu.get("memoryBandwidth"))),
        )


def _thread_names(database: Database, strings: Mapping[int, str]) -> Mapping[int, str]:
    table = database.table("ThreadNames")
    if table is None:
        return {}
    # The name of the greatest priority is the one that nsys-ui shows.
    rows = database.rows(f'select globalTid, nameId from "{table}" order by globalTid, priority')
    return {whole_number(number): _thread_name(strings.get(whole_number(name), "")) for number, name in rows}


def _thread_name(name: str) -> str:
    """Shorten XLA's names of the threads that launch: `XlaLauncher:#global=1,local=1,...#`."""
    launcher = parse(name)
    return name if launcher is None else f"{launcher.kind} {launcher.fields.get('global', '')}".strip()


def _gpus(database: Database) -> Mapping[int, Mapping[str, object]]:
    """Read what is told about each GPU of the machine, by its number there."""
    table = database.table("TARGET_INFO_GPU")
    if table is None or not database.has(table, "id"):
        return {}
    wanted = ("name", "totalMemory", "smCount", "memoryBandwidth")
    columns = [name for name in wanted if database.has(table, name)]
    rows = database.rows(f'select id, {", ".join(columns) or "id"} from "{table}"')
    return {whole_number(row[0]): dict(zip(columns, row[1:], strict=False)) for row in rows}


def _gpu_of_devices(database: Database) -> Mapping[tuple[int, int], int]:
    """Which GPU of the machine a process's device is: CUDA_VISIBLE_DEVICES numbers them anew."""
    table = database.table("TARGET_INFO_CUDA_DEVICE")
    if table is None or not database.has(table, "gpuId", "cudaId", "pid"):
        return {}
    rows = database.rows(f'select pid, cudaId, gpuId from "{table}"')
    return {(whole_number(pid), whole_number(cuda)): whole_number(gpu) for pid, cuda, gpu in rows}
