"""The devices' memory that a second process can have, and who holds the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jupyterlab_jaxprof.environment.command import is_count, output_of
from jupyterlab_jaxprof.timing.memory import device_memory
from jupyterlab_jaxprof.timing.variables import backend_has_started

#: What CUDA and its libraries take for themselves in each process, about.
_RESERVE_BYTES = 1 << 30
_MOST, _LEAST = 0.95, 0.01
_FRACTIONS = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")
_MIB = 1 << 20
_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|out of memory|OUT_OF_MEMORY", re.IGNORECASE)


@dataclass(frozen=True)
class Gpu:
    """One GPU's memory as the driver tells it."""

    index: int
    uuid: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class Memory:
    """What a second process may take; `holders` are sentences on who has the rest, or empty."""

    gpus: tuple[Gpu, ...] = ()
    holders: str = ""

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Give the variables that keep JAX from taking what is not free; empty without a GPU.

        JAX refuses to start when both of the variables for the fraction are set: neither must be left.
        """
        chosen = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if not self.gpus:
            return chosen
        fraction = min((gpu.free_bytes - _RESERVE_BYTES) / gpu.total_bytes for gpu in self.gpus)
        own = [value for name in _FRACTIONS if (value := _number(environ.get(name))) is not None]
        fraction = max(min(fraction, _MOST, *own), _LEAST)
        return chosen | {_FRACTIONS[0]: f"{fraction:.3f}"}

    def explains(self, text: str) -> str:
        """Say who holds the memory, where an error's text tells that it ran out."""
        return self.holders if self.holders and _OUT_OF_MEMORY.search(text) else ""


#: Must be absent, since `variables` sets the other.
UNSET = (_FRACTIONS[1],)


def look() -> Memory:
    """Ask the driver, and JAX where it runs in this process; starts nothing."""
    gpus = _visible(_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Memory(tuple(gpus), _holders(gpus)) if gpus else Memory()


def _gpus() -> list[Gpu]:
    found: list[Gpu] = []
    for line in _ask("--query-gpu=index,uuid,memory.total,memory.free"):
        values = [value.strip() for value in line.split(",")]
        if len(values) == 4 and all(is_count(values[number]) for number in (0, 2, 3)) and int(values[2]):
            found.append(Gpu(int(values[0]), values[1], int(values[2]) * _MIB, int(values[3]) * _MIB))
    return found


def _visible(gpus: list[Gpu], chosen: str | None) -> list[Gpu]:
    if chosen is None:
        return gpus
    names = [name.strip() for name in chosen.split(",")]
    return [
        gpu for gpu in gpus if any(name == str(gpu.index) or (name and name in gpu.uuid) for name in names)
    ]


def _holders(gpus: list[Gpu]) -> str:
    own = {}
    if backend_has_started():
        own = {device.device: device for device in device_memory()}
    others = [line.split(",") for line in _ask("--query-compute-apps=gpu_uuid,pid,used_memory")]
    sentences: list[str] = []
    for gpu in gpus:
        held: list[str] = []
        for parts in others:
            if len(parts) == 3 and parts[0].strip() == gpu.uuid and is_count(parts[1].strip()):
                pid, used = int(parts[1]), parts[2].strip()
                who = "this notebook's kernel" if pid == os.getpid() else f"process {pid}"
                held.append(f"{who} holds {_size(int(used) * _MIB)}" if is_count(used) else who)
        sentences.append(
            f"GPU {gpu.index} has {_size(gpu.total_bytes)}, of which {_size(gpu.free_bytes)} were free"
            + (f"; {', '.join(held)}" if held else "")
            + "."
        )
    pools = [
        f"{name}: {_size(memory.pool_bytes)} taken by JAX, {_size(memory.in_use_bytes or 0)} in use"
        for name, memory in own.items()
        if memory.pool_bytes
    ]
    if pools:
        sentences.append(f"In this notebook's kernel, {'; '.join(pools)}.")
        sentences.append(
            "Start the notebook's kernel with XLA_PYTHON_CLIENT_PREALLOCATE=false, so that JAX leaves the "
            "rest to the process under nsys, or delete arrays that the cell does not need."
        )
    return " ".join(sentences)


def _ask(query: str) -> list[str]:
    said, failure = output_of("nvidia-smi", query, "--format=csv,noheader,nounits")
    return [] if failure else said.splitlines()


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _size(size_bytes: float) -> str:
    return f"{size_bytes / 1e9:,.1f} GB"
