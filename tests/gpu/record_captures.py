"""Record the labelled programs, each in a process of its own, some at a time but one alone on the device.

Leaves NAME.xplane.pb and NAME.json (what the program itself knows) of each in the directory, and of some
nsys_NAME.nsys-rep, .sqlite and .stats.csv.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.gpu.programs.recording import Program
from tests.gpu.programs.table import table

ROOT = Path(__file__).parents[2]
# Programs of which an Nsight report is taken too, and how it is to trace CUDA graphs.
REPORTS = {
    "healthy_transformer": "node",
    "healthy_unmarked": "graph",
    "eager_unmarked": "node",
    "float_loss_light": "graph",
    "loader_sleep": "node",
    "h2d_pageable": "node",
    "checkpoint_each_step": "graph",
    "scan_tiny": "node",
    "recompile_shapes": "node",
    "callback_slow": "node",
    "pause_between_phases": "node",
}
TABLES = ("cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_api_sum", "nvtx_gpu_proj_sum")
# Of the environment, only what the programs need: a report keeps all variables of its process.
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "JAX_PLATFORMS")


class Recorder:
    """Runs programs into one directory until its time is over."""

    def __init__(self, directory: Path, nsys: str | None, seconds: float, extra: list[str]) -> None:
        self.directory, self.nsys, self.extra = directory, nsys, extra
        self.ends = time.monotonic() + seconds

    def environment(self, program: Program) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        kept |= {"LC_ALL": "C.UTF-8", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}
        if program.flags:
            kept["XLA_FLAGS"] = program.flags
        if program.cached:
            kept["JAX_COMPILATION_CACHE_DIR"] = str(self.directory / "cache")
            kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        return kept

    def run(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> bool:
        with log.open("a") as output:
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=output, stderr=output, timeout=120, check=False
                )
            except subprocess.TimeoutExpired:
                return False
        return done.returncode == 0

    def record(self, program: Program, mode: str | None) -> str:
        """Run one program, under nsys where a mode is given; says how it went."""
        name = program.name if mode is None else f"nsys_{program.name}"
        if time.monotonic() > self.ends:
            return f"{name}: left out, the time is over"
        began = time.monotonic()
        work, log = self.directory / "work" / name, self.directory / f"{name}.log"
        work.mkdir(parents=True)
        command = [sys.executable, "-m", "tests.gpu.programs", program.name, "--out", str(work), *self.extra]
        command += ["--lock", str(self.directory / "lock")]
        environment = self.environment(program)
        if mode is not None:
            command = [*self.profile(self.directory / name, mode), *command, "--recorder", "nsys"]
            environment["NSYS_NVTX_PROFILER_REGISTER_ONLY"] = "0"
        good = self.run(command, log, environment)
        for path in work.rglob("*.xplane.pb"):
            shutil.move(path, self.directory / f"{name}.xplane.pb")
        if good:
            shutil.move(work / "facts.json", self.directory / f"{name}.json")
        if mode is not None:
            good = good and self.export(name, environment, log)
        return (
            f"{name}: {'recorded' if good else f'FAILED, see {log.name}'} ({time.monotonic() - began:.1f} s)"
        )

    def profile(self, report: Path, mode: str) -> list[str]:
        return [
            *(str(self.nsys), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
            *(f"--cuda-graph-trace={mode}", "--capture-range=nvtx", "--nvtx-capture=profile_region@jaxprof"),
            *("--capture-range-end=stop", "--force-overwrite=true", f"--output={report}"),
        ]

    def export(self, name: str, environment: dict[str, str], log: Path) -> bool:
        """Make the SQLite export, and the tables of `nsys stats`: what is computed of it must equal them."""
        report, database = self.directory / f"{name}.nsys-rep", self.directory / f"{name}.sqlite"
        export = [str(self.nsys), "export", "--type=sqlite", "--force-overwrite=true", f"--output={database}"]
        if not self.run([*export, str(report)], log, environment):
            return False
        reports = [argument for table in TABLES for argument in ("--report", table)]
        tables = self.directory / f"{name}.stats.csv"
        return self.run(
            [str(self.nsys), "stats", "--format=csv", *reports, str(database)], tables, environment
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nsys", help="the nsys to take reports with; without it none is taken")
    parser.add_argument("--jobs", type=int, default=5, help="programs that prepare at the same time")
    parser.add_argument("--seconds", type=float, default=1e9, help="no program starts later than this")
    parser.add_argument("--only", nargs="*", default=[], help="names of programs")
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    extra = ["--small"] if arguments.small else []
    recorder = Recorder(arguments.directory, arguments.nsys, arguments.seconds, extra)
    chosen = [p for p in table().values() if not arguments.only or p.name in arguments.only]
    # The one that takes all of the memory goes first, before others hold what they don't need any more.
    chosen.sort(key=lambda p: p.name != "memory_near_limit")
    tasks: list[tuple[Program, str | None]] = [(p, None) for p in chosen]
    if arguments.nsys:
        tasks += [(p, REPORTS[p.name]) for p in chosen if p.name in REPORTS]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(lambda task: recorder.record(*task), tasks):
            print(line, flush=True)


if __name__ == "__main__":
    main()
