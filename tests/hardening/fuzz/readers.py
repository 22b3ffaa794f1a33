"""Coverage-guided fuzzing of what reads bytes: `python -m tests.hardening.fuzz.readers TARGET [OPTION...]`.

The options are libFuzzer's (-runs=, -max_len=, a directory with inputs to begin with); scripts/fuzz.sh gives
them. What is found is printed, and kept as `crash-*` in the directory where this runs.
"""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["jupyterlab_jaxprof"]):
    from jupyterlab_jaxprof.captures.record import RecordError, parse, serialize
    from jupyterlab_jaxprof.reports import ReportError
    from jupyterlab_jaxprof.reports.archives import unpack
    from jupyterlab_jaxprof.timeline import nsight, xplane
    from jupyterlab_jaxprof.timeline.model import ReadError

from tests.support import xspace
from tests.support.captures import content
from tests.support.fuzz_checks import assert_card, assert_sentence, assert_timeline, examined
from tests.support.fuzzed_records import DIRECTORY, bases
from tests.support.fuzzing import bounded

_PLACE = Path(tempfile.mkdtemp(prefix="jaxprof-fuzz-"))


@dataclass(frozen=True)
class Target:
    """A reader: what is done with an input, and inputs to begin with."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    most_bytes: int


def _record(data: bytes) -> None:
    try:
        record = parse(data)
    except RecordError as error:
        assert_sentence(str(error))
        return
    assert parse(serialize(record)).id == record.id
    assert_card(record, DIRECTORY)


def _trace(data: bytes) -> None:
    path = _PLACE / "vm.xplane.pb"
    path.write_bytes(data)
    with suppress(ReadError):
        assert_timeline(xplane.read_xplane(path))
        examined(path)


def _export(data: bytes) -> None:
    path = _PLACE / "report.sqlite"
    path.write_bytes(data)
    with suppress(ReadError):
        assert_timeline(nsight.read_export(path))


def _archive(data: bytes) -> None:
    path, directory = _PLACE / "given.zip", Path(tempfile.mkdtemp(dir=_PLACE))
    path.write_bytes(data)
    with suppress(ReportError):
        unpack(path, directory)
    for entry in sorted(directory.rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() else entry.unlink()
    directory.rmdir()
    assert {entry.name for entry in _PLACE.iterdir()} == {path.name}


def _traces() -> Iterator[bytes]:
    yield content("two_hosts_r0.xplane.pb")
    device, host = xspace.Plane("/device:GPU:0"), xspace.Plane("/host:CPU")
    stats = {"correlation_id": 1, "hlo_op": "dot.1", "hlo_module": "jit_f", "memcpy_details": "size:4"}
    device.line("Stream #7(Compute)", 5, [device.event("gemm", 0, 10**9, stats)])
    calls = [host.event("PjitFunction(f)", 0, 10**8), host.event("s", 0, 10**9, {"step_num": 1})]
    host.line("python3/7", 0, calls)
    yield xspace.space(device, host, warnings=["3 events were dropped"])


_TABLES = """
    pragma page_size = 512;
    create table StringIds (id integer primary key, value text);
    create table META_DATA_EXPORT (name text, value text);
    create table CUPTI_ACTIVITY_KIND_KERNEL (
        start int, end int, deviceId int, contextId int, streamId int, correlationId int, globalPid int,
        demangledName int, shortName int
    );
    create table NVTX_EVENTS (
        start int, end int, eventType int, text text, globalTid int, domainId int, textId int
    );
"""


def _exports() -> Iterator[bytes]:
    """Give an export of pages of 512 bytes: leaves, branches and overflowing texts are in it."""
    with closing(sqlite3.connect(":memory:")) as small:
        small.executescript(_TABLES)
        small.executemany(
            "insert into StringIds values (?, ?)", ((n, f"name {n} " * (n % 90)) for n in range(60))
        )
        small.execute("insert into META_DATA_EXPORT values ('EXPORT_SCHEMA_VERSION', '3.11.0')")
        rows = ((n * 1000, n * 1000 + 500, 0, 1, 7, n, 1 << 24, n % 60, n % 60) for n in range(80))
        small.executemany("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        marks = ((n * 2000, n * 2000 + 900, 59, f"step {n}", 1 << 24, 0, None) for n in range(20))
        small.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?, ?, ?, ?)", marks)
        small.commit()
        yield small.serialize()


def _archives() -> Iterator[bytes]:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            archive.writestr("a/capture.json", b"{}" * 50)
            archive.writestr("a/vm.xplane.pb", bytes(300))
        yield out.getvalue()


TARGETS = {
    "records": Target(_record, lambda: (json.dumps(json.loads(one)).encode() for one in bases()), 40_000),
    "traces": Target(_trace, _traces, 4_000),
    "exports": Target(_export, _exports, 40_000),
    "archives": Target(_archive, _archives, 4_000),
}


def main() -> None:
    target = TARGETS[sys.argv[1]]
    seeds = Path(tempfile.mkdtemp(prefix="jaxprof-seeds-"))
    for number, seed in enumerate(target.seeds()):
        (seeds / str(number)).write_bytes(seed)

    def one_input(data: bytes) -> None:
        with bounded():
            target.check(data)

    atheris.Setup([sys.argv[0], f"-max_len={target.most_bytes}", *sys.argv[2:], str(seeds)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
