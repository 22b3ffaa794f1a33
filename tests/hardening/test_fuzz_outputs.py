"""What nsys and nvidia-smi print, with anything in it: flags, progress, complaints, versions, memory."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from jupyterlab_jaxprof.environment import command, machine, nsys
from jupyterlab_jaxprof.environment.versions import numbers
from jupyterlab_jaxprof.nsight import flags, launch_flags, memory
from jupyterlab_jaxprof.nsight.flags import FlagError, Wishes
from jupyterlab_jaxprof.nsight.gather import Gathered
from jupyterlab_jaxprof.nsight.memory import Memory
from jupyterlab_jaxprof.nsight.outcome import judge
from jupyterlab_jaxprof.nsight.pipes import Lines, Stream
from jupyterlab_jaxprof.nsight.progress import Phase
from jupyterlab_jaxprof.nsight.ran import Ran
from jupyterlab_jaxprof.nsight.session import Limits, Session
from jupyterlab_jaxprof.server import usage
from jupyterlab_jaxprof.timeline import nsight_export
from tests.support.fuzz_checks import assert_sentence
from tests.support.fuzzing import fuzzed
from tests.support.odd_values import byte_changes, mutated, odd_json, odd_text, pool


@pytest.fixture(scope="module")
def installation() -> nsys.Installation:
    found = nsys.best()
    assert found is not None, "these tests need an nsys"
    return found


@pytest.fixture(scope="module")
def help_text(installation: nsys.Installation) -> bytes:
    said, failure = command.output_of(str(installation.path), "profile", "--help", timeout_s=60)
    assert failure is None, failure
    return said.encode()


_TRACES = ("", "cuda", "cuda,nvtx", "osrt, ,", ",", "none", "x;y", "CUDA", "cuda,cudnn,opengl")


def _raw(chance: Random) -> str:
    words = (
        "--cuda-memory-usage=true",
        "-s",
        "none",
        "--x",
        "'",
        "--backtrace",
        "--output=/x",
        "-t cuda",
        "--",
    )
    return " ".join(chance.choice([*words, odd_text(chance)]) for _ in range(chance.randrange(4)))


@fuzzed(
    150,
    damage=byte_changes(8),
    wishes=st.builds(
        Wishes,
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.sampled_from(_TRACES),
        pool(_raw),
    ),
    trace=st.one_of(st.sampled_from(_TRACES), pool(odd_text, 500)),
)
def test_any_help_of_nsys_gives_flags_or_a_sentence(
    installation: nsys.Installation, help_text: bytes, damage: Any, wishes: Wishes, trace: str
) -> None:
    said = mutated(help_text, damage).decode("utf-8", "replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "_help", lambda *_: (said, None))
        for make in (
            lambda: flags.flags(installation, wishes, Path("report")).arguments,
            lambda: launch_flags.checked_trace(trace, installation),
            lambda: launch_flags.start_flags(installation, "x", Path("r"), metrics=True, sample=True),
        ):
            problem = ""
            try:
                made = make()
            except FlagError as error:
                problem = str(error)
            if problem:
                assert_sentence(problem)
            else:
                assert all(isinstance(word, str) and word for word in made)


_SAID = (
    b"Generating '/tmp/nsys-report-1a.qdstrm'\n", b"[1/8] [=====25%      ] report\r",
    b"[1/8] [====100%] x\n", b"WARNING: x\n", b"Error {\n", b"error: No space left on device\n",
    b"Agent launcher failed\n", b"\r\r\n", b"99999%", b"100%\n", b"\xff\xfe\0", b"\x1b[2K\x1b[31m",
    b"Capture range started\n", b"a" * 9000, b"\n" * 100, "²%".encode(), b"Collecting data...\n",
    b"dropped 5 events\n",
)  # fmt: skip
_PHASES = list(Phase)


@fuzzed(
    150,
    parts=st.lists(st.one_of(st.sampled_from(_SAID), st.binary(max_size=12)), max_size=12),
    cut=st.integers(1, 40),
    ran=st.builds(
        Ran,
        phase=st.sampled_from(_PHASES),
        interrupted=st.booleans(),
        nsys_status=st.one_of(st.none(), st.sampled_from([0, 1, -9, -77, 137, 255, 1 << 40])),
        hung=st.booleans(),
        lingered=st.booleans(),
        captured=st.booleans(),
        timed_out=st.booleans(),
        left_behind=st.integers(0, 3),
    ),
)
def test_anything_that_nsys_prints_is_told_in_sentences(
    installation: nsys.Installation,
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[bytes],
    cut: int,
    ran: Ran,
) -> None:
    work = Path(tmp_path_factory.getbasetemp()) / "work"
    said = b"".join(parts)
    ran.said = []
    heard, written = Lines(ran.hear), []
    stream = Stream("stdout", lambda _name, text: written.append(text))
    for at in range(0, len(said), cut):
        heard.take(said[at : at + cut])
        stream.take(said[at : at + cut])
        part = command.percentage(said[at : at + cut])
        assert part is None or 0 <= part <= 1
    heard.take(b"")
    stream.take(b"")
    assert "".join(written) == said.decode("utf-8", "replace")
    assert all(line and len(line) <= 4000 for line in ran.said)
    outcome = judge(ran, Gathered(), installation, work, Memory())
    for sentence in (outcome.reason, *outcome.notices):
        assert sentence == "" or len(sentence) < 3000
        assert "Traceback" not in sentence
    command._readable(said)
    nsight_export._quoted(command._readable(said))


class _Nobody:
    def beat(self) -> None: ...
    def enter(self, phase: Phase, doing: str) -> None: ...
    def tell(self, doing: str, part: float | None = None) -> None: ...
    def write(self, stream: str, text: str) -> None: ...
    def publish(self, shown: Any) -> None: ...
    def clear(self, *, wait: bool) -> None: ...


@fuzzed(100, event=pool(lambda chance: json.dumps(odd_json(chance)), 3000), damage=byte_changes(2))
def test_whatever_the_cell_writes_between_the_events_is_passed_over(event: str, damage: Any) -> None:
    session = Session(_Nobody(), Limits(1.0, 1.0, is_wanted=False))
    session._on_event(event)
    session._on_event(mutated(event.encode(), damage).decode("utf-8", "replace"))


_CELLS = (
    "0",
    "GPU-1",
    "81920",
    "[N/A]",
    "²",
    "٣",
    "-1",
    "9" * 30,
    "9" * 5000,
    "",
    "Enabled",
    "NVIDIA H200, x",
    "5 %",
)
_rows = pool(
    lambda chance: ", ".join(chance.choice(_CELLS) for _ in range(chance.choice([3, 3, 4, 5, 5, 6]))), 4000
)


@fuzzed(
    150, rows=st.lists(_rows, max_size=4), version=st.one_of(st.sampled_from(_CELLS), pool(odd_text, 500))
)
def test_any_answer_of_nvidia_smi_is_survived(rows: list[str], version: str) -> None:
    said = "\n".join(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "output_of", lambda *_: (said, None))
        patch.setattr(machine, "output_of", lambda *_: (said, None))
        patch.setattr(machine.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
        patch.setattr(usage, "_rows", lambda _query, columns: [
            cells for row in rows if len(cells := [cell.strip() for cell in row.split(",")]) == columns
        ])  # fmt: skip
        found = memory._gpus()
        fraction = Memory(tuple(found)).variables({}).get("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
        assert 0 < float(fraction) < 1
        assert isinstance(memory._holders(found), str)
        json.dumps(machine.gpus(), allow_nan=False)
        for gpu in usage._ask_gpus().gpus:
            assert gpu.busy_share is None or math.isfinite(gpu.busy_share)
    assert all(number >= 0 for number in numbers(version))


_REPORT = b"NVIDIA Tegra Profiler Report 1A2B.\0" + bytes(100) + b"2025.3.1:\x051A2B" + bytes(64)
_STREAM = b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f!" + bytes(80)


@fuzzed(100, which=st.sampled_from([_REPORT, _STREAM]), damage=byte_changes(8))
def test_the_version_of_any_report_is_read(
    tmp_path_factory: pytest.TempPathFactory, which: bytes, damage: Any
) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "r.nsys-rep"
    path.write_bytes(mutated(which, damage))
    for version in (nsight_export.needed_version(path), nsight_export._stream_version(path)):
        assert version.isprintable()
        assert len(numbers(version)) <= len(version)
