"""What is true of the real captures of H200s is named, and nothing else."""

from __future__ import annotations

import json
from functools import cache

import pytest

from jupyterlab_jaxprof.diagnosis import Diagnosis, Finding, Level, diagnose
from jupyterlab_jaxprof.timeline import read
from tests.support.captures import unpacked

# Of a capture: the steps' name, count and median (ms); the busy share; what must be named, with words of its
# title; what must not be. None: not told.
Row = tuple[tuple[str, int, float] | None, float | None, dict[str, str], set[str]]
COMPILING = {"recompilation"}
ANYTHING = {
    "recompilation",
    "first-call-compile",
    "host-starves-device",
    "eager-dispatch",
    "tiny-kernels",
    "launch-bound",
    "batch-too-small",
    "sync-every-step",
    "device-to-host-read",
    "host-to-device-copies",
    "device-to-host-copies",
    "host-callback",
    "exposed-collectives",
    "straggler",
    "device-copies",
    "device-idle",
    "hidden-in-graphs",
    "profiler-overhead",
    "dropped-events",
}
ROWS: dict[str, Row] = {
    "healthy.xplane.pb": (
        ("train_step", 6, 1.63),
        0.02,
        {"device-idle": "98 %", "batch-too-small": "too small for this device"},
        {"recompilation", "memory-pressure", "first-call-compile", "tiny-kernels", "eager-dispatch"},
    ),
    "float_loss.xplane.pb": (
        ("train_step", 30, 0.48),
        0.07,
        {"device-to-host-read": "in every step (float(x))", "device-idle": "93 %"},
        COMPILING | {"host-to-device-copies", "sync-every-step", "eager-dispatch"},
    ),
    "small_ops.xplane.pb": (
        ("chain", 3, 13.4),
        0.01,
        {"eager-dispatch": "150 operations a step are dispatched one by one", "device-idle": "99 %"},
        COMPILING | {"tiny-kernels", "batch-too-small", "host-to-device-copies", "host-starves-device"},
    ),
    "host_starved.xplane.pb": (
        ("train_step", 6, 31.9),
        0.003,
        {
            "host-starves-device": "`load_data` is where the time goes",
            "host-to-device-copies": "1.2 MiB is copied from the host to the device in every step",
        },
        COMPILING | {"sync-every-step", "batch-too-small", "eager-dispatch"},
    ),
    "gpu_bound.xplane.pb": (
        ("train_step", 5, 11.6),
        0.92,
        {"nothing-wrong": "busy 92 %"},
        ANYTHING | {"memory-pressure", "no-step-markers"},
    ),
    "first_call.xplane.pb": (
        None,
        0.0002,
        {"first-call-compile": "The first call of `train_step` was compiled in the first step: 51"},
        COMPILING | {"host-starves-device", "sync-every-step"},
    ),
    "h2d_every_step.xplane.pb": (
        ("train", 8, 29.6),
        0.16,
        {
            "host-to-device-copies": "128 MiB is copied from the host to the device in every step from page",
            "device-idle": "83 %",
        },
        COMPILING | {"host-starves-device", "device-to-host-copies", "device-copies", "batch-too-small"},
    ),
    "loader_gap.xplane.pb": (
        ("train", 8, 21.0),
        0.11,
        {"host-starves-device": "`preprocess` is where the time goes"},
        COMPILING | {"host-to-device-copies", "device-to-host-copies", "device-to-host-read"},
    ),
    "tiny_scan.xplane.pb": (
        ("rnn", 5, 9.2),
        0.24,
        {"tiny-kernels": "500 times over in a loop"},
        COMPILING | {"eager-dispatch", "batch-too-small", "launch-bound", "device-copies"},
    ),
    "no_steps.xplane.pb": (
        None,
        0.98,
        {"nothing-wrong": "98 %", "no-step-markers": "No steps are marked"},
        ANYTHING,
    ),
    "host_callback.xplane.pb": (
        ("train", 8, 3.4),
        0.65,
        {"host-callback": "holds the device up in every step"},
        COMPILING | {"device-to-host-read", "host-to-device-copies", "host-starves-device", "launch-bound"},
    ),
    "mem_near_limit.xplane.pb": (
        ("train", 4, 2.9),
        0.76,
        {"memory-pressure": "99.2 of 112.6 GB (88 %)"},
        COMPILING | {"host-starves-device", "launch-bound"},
    ),
    "dp_balanced.xplane.pb": (("train", 6, 3.5), 0.74, {}, COMPILING | {"straggler", "launch-bound"}),
    "dp_exposed_collectives.xplane.pb": (
        None,
        0.30,
        {"exposed-collectives": "not hidden by computing", "batch-too-small": "too small"},
        COMPILING | {"straggler", "host-starves-device"},
    ),
    "two_hosts_r0.xplane.pb": (None, None, {}, COMPILING | {"straggler", "host-starves-device"}),
    "nsys_mlp_graphmode.sqlite": (
        ("train_step", 8, 1.7),
        0.02,
        {"hidden-in-graphs": "82 %", "device-idle": "98 %", "batch-too-small": "too small"},
        COMPILING | {"tiny-kernels", "host-to-device-copies", "memory-pressure"},
    ),
    "nsys_gpu_bound.sqlite": (("step", 5, 2.8), 0.83, {}, ANYTHING - {"sync-every-step"}),
    "nsys_gpu_bound_graphmode.sqlite": (
        ("step", 5, 2.8),
        0.81,
        {"hidden-in-graphs": "100 %"},
        ANYTHING - {"sync-every-step", "hidden-in-graphs"},
    ),
    "nsys_eager.sqlite": (
        ("step", 5, 17.8),
        0.01,
        {"eager-dispatch": "120 operations a step are dispatched one by one"},
        COMPILING | {"tiny-kernels", "batch-too-small", "host-to-device-copies", "hidden-in-graphs"},
    ),
    "nsys_dp2.sqlite": (
        ("step", 5, 1.6),
        0.55,
        {"exposed-collectives": "not hidden by computing"},
        COMPILING | {"straggler", "host-starves-device", "hidden-in-graphs"},
    ),
}


@cache
def diagnosis(*names: str) -> Diagnosis:
    return diagnose(read([unpacked(name) for name in names]))


def found(*names: str) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnosis(*names).findings}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_true_is_named_and_nothing_else(name: str) -> None:
    steps, busy, must, must_not = ROWS[name]
    findings = found(name)
    for pattern, words in must.items():
        assert pattern in findings, f"{pattern} is not among {list(findings)}"
        assert words in findings[pattern].title
    assert not must_not & set(findings)
    summary = diagnosis(name).summary
    if busy is not None:
        assert summary["timeline"]["busy_share"] == pytest.approx(busy, abs=0.006)
    if steps is not None:
        told = summary["steps"]
        assert (told["name"], told["count"]) == steps[:2]
        assert told["median_ms"] == pytest.approx(steps[2], rel=0.02)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("float_loss.xplane.pb", "device-to-host-read"),
        ("small_ops.xplane.pb", "eager-dispatch"),
        ("host_starved.xplane.pb", "host-starves-device"),
        ("first_call.xplane.pb", "first-call-compile"),
        ("h2d_every_step.xplane.pb", "host-to-device-copies"),
        ("loader_gap.xplane.pb", "host-starves-device"),
        ("tiny_scan.xplane.pb", "tiny-kernels"),
        ("host_callback.xplane.pb", "host-callback"),
        ("nsys_eager.sqlite", "eager-dispatch"),
        ("gpu_bound.xplane.pb", "nothing-wrong"),
        ("no_steps.xplane.pb", "nothing-wrong"),
    ],
)
def test_the_cause_comes_first(name: str, first: str) -> None:
    assert diagnosis(name).findings[0].id == first


def test_the_times_that_are_lost() -> None:
    first_call = found("first_call.xplane.pb")["first-call-compile"]
    assert first_call.lost_ms == pytest.approx(512, abs=5)
    assert first_call.share is not None
    assert first_call.share > 0.98
    copies = found("h2d_every_step.xplane.pb")["host-to-device-copies"]
    assert "1 GiB in 8 copies, 19.5 ms in all" in " ".join(copies.evidence)
    starved = found("loader_gap.xplane.pb")["host-starves-device"]
    assert starved.lost_ms == pytest.approx(8 * 18.0, rel=0.02)
    assert "`preprocess` ran 8 times, 18.0 ms each (median)." in starved.evidence
    callback = found("host_callback.xplane.pb")["host-callback"]
    assert "`jax.pure_callback` in `jit_f`: 8 calls" in callback.evidence[0]


def test_collectives_that_are_mostly_hidden_are_no_problem() -> None:
    finding = found("dp_balanced.xplane.pb").get("exposed-collectives")
    assert finding is None or finding.level is Level.NOTE
    exposed = found("dp_exposed_collectives.xplane.pb")["exposed-collectives"]
    assert exposed.level is Level.PROBLEM
    assert any("batch on each device is too small" in sentence for sentence in exposed.evidence)


def test_two_hosts_are_one_run_judged_each_by_its_own_clock() -> None:
    names = ("two_hosts_r0.xplane.pb", "two_hosts_r1.xplane.pb")
    both = diagnosis(*names).summary["timeline"]
    alone = [diagnosis(name).summary["timeline"]["devices"] for name in names]
    assert len(both["devices"]) == 2  # each host's empty plane of the other's device counts for nothing
    for device, (own,) in zip(both["devices"], alone, strict=True):
        assert device["busy_ms"] == pytest.approx(own["busy_ms"], abs=1e-6)
        assert device["ops"] == own["ops"]
    assert "straggler" not in found(*names)


def test_a_peak_of_the_past_is_a_note() -> None:
    # Both captures are of one process, whose peak was before them: the trace can't tell more than that
    finding = found("mem_near_limit.xplane.pb")["memory-pressure"]
    assert finding.level is Level.NOTE
    assert "at most 0.9 GB in use" in finding.evidence[0]


@pytest.mark.parametrize("name", ROWS)
def test_parts_of_the_median_step_add_up_to_it(name: str) -> None:
    steps = diagnosis(name).summary["steps"]
    if steps is None:
        return
    assert sum(steps["parts"].values()) == pytest.approx(steps["median_ms"], abs=1e-9)
    assert all(part >= 0 for part in steps["parts"].values())
    json.dumps(diagnosis(name).to_json(), allow_nan=False)
