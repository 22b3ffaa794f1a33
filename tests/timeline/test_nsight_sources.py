"""Source lines of HLO operations, hardware counters and secrets in an Nsight export."""

from __future__ import annotations

import sqlite3
import struct

import numpy as np
import pytest

from jupyterlab_jaxprof import diagnosis
from jupyterlab_jaxprof.environment.nsys import PADDING
from jupyterlab_jaxprof.timeline.nsight import read_export
from jupyterlab_jaxprof.timeline.nsight_hlo import HloTexts, source_line

FORWARD = "\n- /home/user/train.py:36:23[step]\n-- /home/user/train.py:25:25[predict]\n"
UPDATE = "\n- /home/user/train.py:37:14[step]\n-- /home/user/train.py:37:40[step.&lt;lambda&gt;]\n"
FUSED = (
    "\n- /home/user/train.py:36:23[step]\n-- /home/user/train.py:26:11[predict] transpose(jvp())/transpose\n"
    "- /home/user/train.py:37:14[step]\n-- /home/user/train.py:37:40[step.&lt;lambda&gt;] sub\n"
)


def block(name: str, scope: str, frame: int, source: str) -> list[str]:
    """What XLA registers of one operation, in its order."""
    return [
        f"Thunk:#name={scope},hlo_op={name},unique_hlo_op_id={frame}#",
        f"{name} = f32[8]{{0}} fusion(x), calls=fused_{frame}, "
        f'metadata={{op_name="{scope}" stack_frame_id={frame}}}',
        source,
        f"\nfused_{frame} {{\n  ROOT y = f32[] add(a, b)\n}}",
    ]


@pytest.mark.parametrize("backwards", [False, True], ids=["while it records", "before"])
def test_a_source_counts_only_where_all_around_it_fits(backwards):
    texts = block("dot.2", "jit(step)/jvp()/dot_general", 9, FORWARD)
    texts += block("sub.1", "jit(step)/sub", 13, UPDATE)
    moved = block("dot.3", "jit(step)/jvp()/dot_general", 10, UPDATE)
    del moved[3]  # what it calls is told elsewhere: the source may be another's
    texts += moved
    hlo = HloTexts(dict(enumerate(texts[::-1] if backwards else texts)))
    assert hlo.operation("jit_step", "dot.2").source == "train.py:25"
    assert hlo.operation("jit_step", "sub.1").source == "train.py:37"
    assert hlo.operation("jit_step", "dot.3").source == ""


def test_the_line_of_a_fusion_is_that_of_its_scope():
    assert source_line(FUSED, "jit(step)/transpose(jvp())/transpose") == "train.py:26"
    assert source_line(FUSED, "jit(step)/sub") == "train.py:37"
    assert source_line(FUSED, "jit(step)/other") == ""
    assert source_line("\n- not a frame\n", "jit(step)/sub") == ""


@pytest.fixture
def export(tmp_path):
    """An export with the payload of one operation, its source resolved twice, and counters of two GPUs."""
    path = tmp_path / "report.sqlite"
    title, *_ = block("dot.2", "jit(step)/jvp()/dot_general", 77, FORWARD)
    strings = {1: "XlaModule:#hlo_module=jit_step,program_id=1#", 2: title, 3: FORWARD, 4: f"{PADDING} 3"}
    strings |= {5: "cuLaunchKernel", 6: "gemm", 7: "HOME=/root\0OWN_API_KEY=hidden\0", 8: "TSL"}
    payload = struct.pack("<7Q", 1, 99, 24, 32, 1234, 4, 5678)
    with sqlite3.connect(path) as base:
        base.executescript("""
create table StringIds(id integer, value text);
create table NVTX_PAYLOAD_SCHEMAS(schemaId integer, name text);
create table NVTX_EVENTS(start, end, eventType, globalTid, textId, domainId, text, binaryData);
create table CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId);
create table CUPTI_ACTIVITY_KIND_KERNEL(
    start, end, deviceId, streamId, correlationId, globalPid, shortName, demangledName);
create table TARGET_INFO_GPU_METRICS(typeId integer, metricId integer, metricName text);
create table GPU_METRICS(timestamp integer, typeId integer, metricId integer, value integer);
insert into NVTX_PAYLOAD_SCHEMAS values (99, 'XlaInstruction');
insert into CUPTI_ACTIVITY_KIND_RUNTIME values (120, 130, 16777217, 1, 5);
insert into CUPTI_ACTIVITY_KIND_KERNEL values (140, 900, 0, 7, 1, 16777216, 6, 6);
""")
        base.executemany("insert into StringIds values (?, ?)", strings.items())
        base.executemany(
            "insert into NVTX_EVENTS values (?, ?, ?, 16777217, ?, 1, null, ?)",
            [(0, None, 75, 8, None), (100, 200, 59, 1, None), (110, 150, 59, 2, payload)],
        )
        for gpu in range(2):
            kind = 281479271677952 + gpu
            names = ("SMs Active [Throughput %]", "GPC Clock Frequency [MHz]", "Pixel Warps [Throughput %]")
            base.executemany(
                "insert into TARGET_INFO_GPU_METRICS values (?, ?, ?)",
                [(kind, number, name) for number, name in enumerate(names)],
            )
            base.executemany(
                "insert into GPU_METRICS values (?, ?, ?, ?)",
                [
                    (time, kind, number, value)
                    for time, share in ((-500, 100), (200, 20 + gpu), (600, 40 + gpu))
                    for number, value in enumerate((share, 1_980_000_000, 0))
                ],
            )
    base.close()
    return path


def test_a_source_that_was_resolved_twice_is_told_again(export):
    read = read_export(export)
    assert [read.text(number) for number in read.ops.source] == ["train.py:25"]


def test_counters_are_told_over_the_window(export):
    read = read_export(export)
    assert read.counters is not None
    assert np.unique(read.counters.gpu).tolist() == [0, 1]
    rows = diagnosis.diagnose(read).summary["tables"]["counters"]
    assert [(row["device"], row["name"], row["unit"], row["mean"], row["max"]) for row in rows] == [
        ("GPU 0", "SMs Active", "percent", 30.0, 40.0),
        ("GPU 0", "GPC Clock Frequency", "MHz", 1980.0, 1980.0),
        ("GPU 1", "SMs Active", "percent", 31.0, 41.0),
        ("GPU 1", "GPC Clock Frequency", "MHz", 1980.0, 1980.0),
    ]


def test_variables_that_may_be_secrets_are_named_but_not_told(export):
    (notice,) = [one for one in read_export(export).notices if "secrets" in one]
    assert "(OWN_API_KEY)" in notice
    assert "hidden" not in notice
