"""Files that are cut off, damaged, or no traces: what was readable, and a sentence; never more than that."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from jupyterlab_jaxprof.timeline import ReadError, Timeline, read
from jupyterlab_jaxprof.timeline.wire import Buffer, fields
from jupyterlab_jaxprof.timeline.xplane_format import read_plane
from tests.support.captures import content, unpacked_to


def planes(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each plane begins and ends."""
    buffer = Buffer(data)
    places = [part for part in fields(buffer, 0, len(data)) if part.number == 1]
    return {read_plane(buffer, place).name: (place.start, place.end) for place in places}


def assert_a_sentence(error: ReadError, path: Path) -> None:
    sentence = str(error)
    assert str(path) in sentence
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence


@pytest.fixture
def damaged(tmp_path):
    def write(data: bytes) -> Path:
        path = tmp_path / "vm.xplane.pb"
        path.write_bytes(data)
        return path

    return write


def test_a_file_that_was_cut_off_gives_the_planes_that_are_whole(damaged):
    data = content("healthy.xplane.pb")
    whole = read(damaged(data))
    begin, end = planes(data)["/host:CPU"]
    for cut in (begin, (begin + end) // 2, end - 1):
        timeline = read(damaged(data[:cut]))
        assert not timeline.files[0].complete
        assert timeline.ops.start_ns.tolist() == whole.ops.start_ns.tolist()
        assert len(timeline.ranges) == len(timeline.steps) == 0
        assert {"host", "compiles"} <= timeline.blind
        (notice,) = timeline.notices
        assert "vm.xplane.pb is cut off or damaged" in notice
        assert "108 operations" in notice


def test_a_cut_that_leaves_nothing_is_told(damaged):
    data = content("healthy.xplane.pb")
    begin, end = planes(data)["/device:GPU:0"]
    for cut in (3, begin, (begin + end) // 2):
        path = damaged(data[:cut])
        with pytest.raises(ReadError) as raised:
            read(path)
        assert_a_sentence(raised.value, path)


def test_a_damaged_line_costs_only_itself(damaged):
    data = bytearray(content("float_loss.xplane.pb"))
    begin, end = planes(bytes(data))["/device:GPU:0"]
    at = data.index(b"Stream #16", begin, end) + 60
    data[at : at + 40] = b"\xff" * 40
    timeline = read(damaged(bytes(data)))
    assert len(timeline.ops) == 330 - 15
    assert "devices" in timeline.blind, "a stream is missing: idle time can't be told"
    assert len(timeline.steps) == 30
    assert "a line of /device:GPU:0" in timeline.notices[0]


@pytest.mark.parametrize("seed", range(3))
def test_no_damage_does_worse_than_a_sentence(damaged, seed):
    random = np.random.default_rng(seed)
    data = content("two_hosts_r0.xplane.pb")
    for _ in range(60):
        spoiled = np.frombuffer(data, dtype=np.uint8).copy()
        places = random.integers(0, len(spoiled), random.choice([1, 10, 300]))
        spoiled[places] = random.integers(0, 256, len(places))
        path = damaged(spoiled[: random.integers(1, len(spoiled) + 1)].tobytes())
        try:
            timeline = read(path)
        except ReadError as error:
            assert_a_sentence(error, path)
        else:
            assert timeline.files[0].complete or timeline.notices
            assert (timeline.ops.duration_ns >= 0).all()
            assert isinstance(timeline, Timeline)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"step,ms\n1,2.5\n" * 9, "is no trace"),
        (gzip.compress(b"x" * 999), "gunzip"),
        (b"\xfd7zXZ\x00" + bytes(99), "unxz"),
        (b"PK\x03\x04" + bytes(99), "unzip"),
        (os.urandom(4096).replace(b"\n", b""), "is no trace"),
        (bytes(4096), "is no trace"),
    ],
    ids=["empty", "text", "gzip", "xz", "zip", "random", "zeros"],
)
def test_files_of_another_kind(damaged, data, said):
    path = damaged(data)
    with pytest.raises(ReadError, match=said) as raised:
        read(path)
    assert_a_sentence(raised.value, path)


def test_a_file_that_may_not_be_read(tmp_path):
    path = unpacked_to(tmp_path, "no_steps.xplane.pb")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read all files
    try:
        with pytest.raises(ReadError) as raised:
            read(path)
    finally:
        os.seteuid(user)
    assert_a_sentence(raised.value, path)


def test_a_directory_with_one_session(tmp_path):
    session = tmp_path / "log" / "plugins" / "profile" / "2026_01_31"
    unpacked_to(session, "two_hosts_r0.xplane.pb", "a.xplane.pb")
    unpacked_to(session, "two_hosts_r1.xplane.pb", "b.xplane.pb")
    for directory in (session, tmp_path / "log", tmp_path):
        timeline = read(directory)
        assert [Path(file.path).name for file in timeline.files] == ["a.xplane.pb", "b.xplane.pb"]
    (session / "b.xplane.pb").write_bytes(b"nothing")
    timeline = read(str(session))
    assert [file.complete for file in timeline.files] == [True, False]
    assert "b.xplane.pb is no trace" in timeline.notices[0]
    unpacked_to(tmp_path, "nsys_gpu_bound.sqlite")
    timeline = read(tmp_path)
    assert "nsys_gpu_bound.sqlite" not in [Path(file.path).name for file in timeline.files]
    assert timeline.notices[0].startswith("Not read, though it lies in ")


def test_a_stream_counts_unless_a_report_was_made_of_it(tmp_path):
    stream = tmp_path / "run.qdstrm"
    stream.write_bytes(b"no stream")
    with pytest.raises(ReadError, match=r"run\.qdstrm"):
        read(tmp_path)
    unpacked_to(tmp_path, "nsys_gpu_bound.sqlite", "run.sqlite")
    assert [Path(file.path).name for file in read(tmp_path).files] == ["run.sqlite"]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.xplane.pb")
    for path in (tmp_path, tmp_path / "x.xplane.pb"):
        with pytest.raises(ReadError, match=r"x\.xplane\.pb is a pipe"):
            read(path)
    with pytest.raises(ReadError, match="is a device"):
        read("/dev/zero")


def test_directories_that_are_no_one_run(tmp_path):
    def problem(*paths: Path) -> str:
        with pytest.raises(ReadError) as raised:
            read(paths)
        return str(raised.value)

    assert "holds no trace" in problem(tmp_path)
    assert "does not exist" in problem(tmp_path / "missing")
    unpacked_to(tmp_path / "one", "no_steps.xplane.pb", "vm.xplane.pb.unreadable")
    assert "vm.xplane.pb.unreadable no viewer can read" in problem(tmp_path)
    first = unpacked_to(tmp_path / "one", "no_steps.xplane.pb")
    unpacked_to(tmp_path / "two", "no_steps.xplane.pb")
    assert "2 sessions" in problem(tmp_path)
    (tmp_path / "report.sqlite").write_bytes(b"SQLite format 3\0")
    assert "can't be read as one run" in problem(first, tmp_path / "report.sqlite")
    assert len(read([first, first.parent]).files) == 1, "each file once"
