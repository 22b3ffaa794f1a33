"""What holds for any timeline: idle time is divided without rest or overlap, steps' parts add up, and what is
shown has its size and shape."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jupyterlab_jaxprof import cards
from jupyterlab_jaxprof.captures.shapes import FINDING, SUMMARY, misfit
from jupyterlab_jaxprof.diagnosis import diagnose
from jupyterlab_jaxprof.diagnosis.analysis import Analysis, analyse
from jupyterlab_jaxprof.diagnosis.gaps import Cause
from jupyterlab_jaxprof.diagnosis.patterns import IDS
from jupyterlab_jaxprof.diagnosis.steps import parts_of_steps
from jupyterlab_jaxprof.diagnosis.units import percent
from jupyterlab_jaxprof.reports.compare_steps import compare_steps
from jupyterlab_jaxprof.timeline.model import CopyKind, OpKind, RangeKind
from tests.support.timelines import MAIN, WORKER, Scene, loop

NAMES = (
    ("PjitFunction(f)", RangeKind.RUNTIME),
    ("np.asarray(jax.Array)", RangeKind.RUNTIME),
    ("Transpose::Execute", RangeKind.RUNTIME),
    ("pure_callback.1", RangeKind.RUNTIME),
    ("load", RangeKind.ANNOTATION),
    ("wait for it", RangeKind.ANNOTATION),
    ("time sleep", RangeKind.PYTHON),
    ("train.py:3 step", RangeKind.PYTHON),
    ("gc collect", RangeKind.PYTHON),
)


def anything(seed: int) -> Scene:
    """A timeline of random things that make no sense together."""
    random = np.random.default_rng(seed)
    devices = int(random.integers(1, 4))
    scene = Scene(devices=devices)
    for _ in range(int(random.integers(1, 120))):
        start, duration = random.uniform(0, 1e5), random.exponential(600)
        device = int(random.integers(devices))
        kind = random.integers(4)
        if kind == 0:
            scene.copy(
                start, duration, CopyKind(int(random.integers(1, 4))), int(random.integers(1, 1 << 20))
            )
        elif kind == 1:
            scene.collective(start, duration, device)
        else:
            module = f"jit_f{random.integers(3)}"
            scene.kernel(start, duration, f"k{random.integers(5)}", module, device)
    for _ in range(int(random.integers(0, 80))):
        name, range_kind = NAMES[int(random.integers(len(NAMES)))]
        thread = MAIN if random.random() < 0.8 else WORKER
        scene.range(random.uniform(0, 1e5), random.exponential(2000), name, range_kind, thread)
    for _ in range(int(random.integers(0, 5))):
        scene.compile(random.uniform(0, 1e5), random.exponential(5000), f"f{random.integers(3)}")
    time = random.uniform(0, 1e4)
    for number in range(int(random.integers(0, 9))):
        duration = random.exponential(9000)
        scene.step(time, duration, number)
        time += duration + random.exponential(200)
    return scene


@pytest.fixture(scope="module")
def analyses() -> list[Analysis]:
    return [analyse(anything(seed).timeline()) for seed in range(60)]


def test_each_moment_of_idle_time_has_one_cause(analyses: list[Analysis]) -> None:
    assert sum(len(analysis.idle) for analysis in analyses) > 80
    for analysis in analyses:
        for idle in analysis.idle:
            gaps = idle.device.idle
            together = idle.of(*Cause)
            np.testing.assert_allclose(together.total_ns, gaps.total_ns, rtol=1e-12)
            assert (together - gaps).total_ns == 0
            assert sum(idle.of(cause).total_ns for cause in Cause) == pytest.approx(gaps.total_ns, rel=1e-12)


def test_busy_and_idle_time_fill_the_window(analyses: list[Analysis]) -> None:
    for analysis in analyses:
        for use in analysis.devices:
            busy = use.compute.total_ns + use.exposed_collective.total_ns + use.exposed_copy.total_ns
            assert busy == pytest.approx(use.busy.total_ns, rel=1e-12)
            assert busy + use.idle.total_ns == pytest.approx(analysis.window.length_ns, rel=1e-12)


def test_parts_of_every_step_add_up_to_it(analyses: list[Analysis]) -> None:
    steps = 0
    for analysis in analyses:
        if analysis.steps is None or not analysis.devices:
            continue
        parts = parts_of_steps(analysis, analysis.steps)
        together = parts.compute + parts.copy + parts.collective + parts.host + parts.idle
        np.testing.assert_allclose(together, analysis.steps.duration_ns, rtol=1e-9)
        assert all((part >= 0).all() for part in vars(parts).values())
        steps += len(analysis.steps)
    assert steps > 100


def test_what_is_told_of_anything_has_its_shape() -> None:
    for seed in range(100, 125):
        told = diagnose(anything(seed).timeline()).to_json()
        json.dumps(told, allow_nan=False)
        assert misfit(told["summary"], SUMMARY) is None
        for finding in told["findings"]:
            assert misfit(finding, FINDING) is None
            assert finding["id"] in IDS
            assert finding["doc"] == f"patterns/{finding['id']}"
            assert finding["evidence"]
            assert finding["share"] is None or 0 <= finding["share"] <= 1
        steps = told["summary"]["steps"]
        if steps is not None and steps["parts"] is not None:
            assert sum(steps["parts"].values()) == pytest.approx(steps["median_ms"], abs=1e-9)


def test_findings_come_by_the_time_that_they_cost() -> None:
    scene = Scene()
    for start in loop(scene, host_us=20_000, work="load", dispatch_us=8000):
        scene.range(start + 100, 6000, "pure_callback.1")
    findings = [f for f in diagnose(scene.timeline()).findings if f.level == "problem"]
    assert [finding.id for finding in findings][:2] == ["host-starves-device", "host-callback"]


def test_a_finding_s_ranges_are_in_the_file_s_own_time() -> None:
    scene = Scene()
    dispatches = loop(scene, host_us=20_000, work="load")
    finding = next(f for f in diagnose(scene.timeline()).findings if f.id == "host-starves-device")
    told = finding.to_json()["ranges"]
    assert told[0]["end_ms"] == pytest.approx(dispatches[0] / 1e3)
    assert told[0]["label"] == "load"
    assert len(told) == 5


def test_tables_and_drawing_are_cut_to_what_can_be_shown() -> None:
    scene = Scene()
    for index in range(2000):
        scene.kernel(1000 + 10 * index, 6, f"kernel_{index % 50}")
        scene.dispatch(1000 + 10 * index, 1)
    summary = diagnose(scene.timeline()).summary
    assert len(summary["tables"]["kernels"]) == 30
    assert summary["tables_left_out"]["kernels"] == 20
    device = next(lane for lane in summary["timeline"]["drawing"]["lanes"] if lane["kind"] == "device")
    assert len(device["intervals"]) == 300
    starts, ends = np.array(device["intervals"]).T
    assert (starts[1:] > ends[:-1]).all()
    assert (starts[0], ends[-1]) == (1.0, 20.996)


def test_shares_of_the_tables() -> None:
    scene = Scene()
    loop(scene, 4, dispatch_us=1000, device_us=8000, wake_us=1000)
    scene.copy(5000, 500, CopyKind.HOST_TO_DEVICE, 1_000_000)
    summary = diagnose(scene.timeline()).summary
    kernels, copies = summary["tables"]["kernels"], summary["tables"]["copies"]
    assert sum(row["share_device"] for row in kernels) == pytest.approx(32 / 32.5, abs=1e-5)
    assert sum(row["share_wall"] for row in kernels) == pytest.approx(0.8, abs=0.001)
    assert kernels[0]["median_us"] == 2000.0
    assert copies[0] | {"share_wall": 0} == {
        "kind": "host to device",
        "memory": "pinned",
        "count": 1,
        "bytes": 1_000_000,
        "total_ms": 0.5,
        "gb_per_s": 2.0,
        "share_wall": 0,
    }
    assert summary["tables"]["modules"][0]["name"] == "jit_train_step"
    assert summary["tables"]["modules"][0]["count"] == 4


def test_the_slowest_steps_say_what_was_different() -> None:
    scene = Scene()
    loop(scene, 8, device_us=5000)
    last = scene.timeline().recorded_ns[1] / 1e3
    scene.annotation(last + 20, 9000, "write_checkpoint")
    scene.dispatch(last + 9020, 100)
    scene.kernel(last + 9120, 5000)
    scene.step(last + 10, 14_300, 8)
    slowest = diagnose(scene.timeline()).summary["steps"]["slowest"]
    assert [one["number"] for one in slowest] == [8]
    assert "`write_checkpoint`" in slowest[0]["why"]


def test_the_window_is_from_the_first_step_to_the_last_work_of_a_device() -> None:
    scene = Scene()
    scene.kernel(100, 500, "before")
    for step in range(4):
        scene.dispatch(1000 + 200 * step, 150)
        scene.step(1000 + 200 * step, 190, step)
        scene.kernel(1200 + 10_000 * step, 10_000)
    timeline = diagnose(scene.timeline()).summary["timeline"]
    assert timeline["window_ms"] == pytest.approx(40.2)
    assert timeline["window"].endswith("to the last work of a device.")
    assert timeline["devices"][0]["ops"] == 4


def test_markers_that_end_early_tell_nothing_of_where_a_step_s_time_goes() -> None:
    scene = Scene()
    for step in range(4):
        scene.dispatch(1000 + 200 * step, 150)
        scene.step(1000 + 200 * step, 190 if step else 195, step)
        scene.kernel(1200 + 10_000 * step, 10_000)
    early = diagnose(scene.timeline()).summary["steps"]
    assert early["marks_dispatch"] is True
    assert early["device_ms"] == 10.0
    assert early["slowest"] is early["parts"] is None
    unseen = Scene()
    for step in range(4):
        unseen.step(1000 + 200 * step, 190, step)
    alone = diagnose(unseen.timeline()).summary
    assert alone["steps"]["marks_dispatch"] is None
    judged = compare_steps(alone, alone)
    assert judged["verdict"] == "unknown"
    assert "no device is in the trace" in judged["reason"]
    loop(waited := Scene(), 4)
    steps = diagnose(waited.timeline()).summary["steps"]
    assert (steps["marks_dispatch"], steps["device_ms"]) == (False, 5.0)
    assert steps["slowest"] == []
    assert steps["parts"] is not None


def test_steps_of_other_names_are_told() -> None:
    scene = Scene()
    loop(scene, 6)
    end = scene.timeline().recorded_ns[1] / 1e3
    for step in range(3):
        scene.step(end + 1000 * step, 900, step, "evaluate")
        scene.kernel(end + 1000 * step + 10, 700, "k", "jit_evaluate")
    scene.step(1000 + 5305 * 2, 5000, 1, "train", thread=WORKER)
    summary = diagnose(scene.timeline()).summary
    window = summary["timeline"]["window"]
    assert "the 6 `train`, which take more time in all than the 3 `evaluate`" in window
    assert "1 more `train` of other threads" in window
    lanes = [lane["label"] for lane in summary["timeline"]["drawing"]["lanes"] if lane["kind"] == "steps"]
    assert lanes == ["train", "evaluate"]
    assert summary["steps"]["others"] == [
        {"name": "train", "count": 1, "median_ms": 5.0},
        {"name": "evaluate", "count": 3, "median_ms": 0.9},
    ]
    assert summary["timeline"]["steps_in_window"] == 10
    assert summary["steps"]["device_ms"] == pytest.approx(5.0)


def test_an_epoch_s_steps_are_not_the_steps() -> None:
    scene = Scene()
    loop(scene, 12)
    scene.step(500, 33_000, 0, "epoch")
    scene.step(34_000, 33_000, 1, "epoch")
    summary = diagnose(scene.timeline()).summary
    assert summary["steps"]["name"] == "train"
    assert "the 12 `train`, which lie in the 2 `epoch`" in summary["timeline"]["window"]


def test_steps_of_one_number_are_told_apart() -> None:
    for outer in (False, True):
        scene = Scene()
        for epoch in range(2):
            start = 1000 + 100_000 * epoch
            for step in range(4):
                long = 10_000 if (epoch, step) == (1, 2) else 0
                scene.step(start + 20_000 * step, 5000 + long, step)
                scene.kernel(start + 20_000 * step + 100, 4800 + long)
            if outer:
                scene.step(start - 10, 90_000, epoch, "epoch")
        (slowest,) = diagnose(scene.timeline()).summary["steps"]["slowest"]
        assert slowest["number"] == 2
        assert slowest["why"].startswith("In `epoch` 1: " if outer else "Number 7 in the order of time: ")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.9996, "99.9 %"),
        (0.9947, "99.4 %"),
        (1.0, "100 %"),
        (0.0191, "1.9 %"),
        (0.0001, "under 0.1 %"),
        (0.5, "50 %"),
    ],
)
def test_shares_are_rounded_as_the_cards_do(share: float, text: str) -> None:
    assert percent(share) == text
    assert share < 0.01 or cards.units.share(share) == text


def test_clearing_memory_is_an_operation_and_in_a_table() -> None:
    scene = Scene()
    loop(scene, 4)
    scene.kernel(2000, 5, "Memset", kind=OpKind.SET)
    summary = diagnose(scene.timeline()).summary
    assert [device["ops"] for device in summary["timeline"]["devices"]] == [17]
    assert [row["count"] for row in summary["tables"]["copies"] if row["kind"] == "memset"] == [1]


def test_an_annotation_without_a_name_explains_nothing() -> None:
    scene = Scene()
    for start in loop(scene, host_us=20_000):
        scene.annotation(start - 20_000, 19_900, "")
    diagnosis = diagnose(scene.timeline())
    assert not any("``" in json.dumps(finding.to_json()) for finding in diagnosis.findings)
    assert diagnosis.summary["tables"]["annotations"][0]["name"] == "(no name)"


def test_copies_of_arrays_that_are_staged_are_told_so() -> None:
    scene = Scene()
    for start in loop(scene, host_us=30_000):
        scene.range(start - 28_000, 20_000, "Transpose::Execute", thread=WORKER)
        scene.copy(start - 5000, 2000, CopyKind.HOST_TO_DEVICE, 1 << 26)
    (row,) = diagnose(scene.timeline()).summary["tables"]["copies"]
    assert row["memory"] == "pageable, staged"
