"""Traces of the JAX at hand on a CPU: whose marks are whose, what was compiled, what they can't tell."""

from __future__ import annotations

from collections import Counter

import numpy as np

from jupyterlab_jaxprof.timeline import read
from jupyterlab_jaxprof.timeline.model import Phase, RangeKind


def test_only_what_the_user_marked_is_an_annotation(cpu_trace):
    path, with_python = cpu_trace
    timeline = read(path)
    of_user = timeline.ranges.take(timeline.ranges.kind == RangeKind.ANNOTATION)
    assert Counter(timeline.text(name) for name in of_user.name) == {
        **{"program.<locals>.preprocess": 4, "inner part": 4, "in callback": 4, "eager": 4},
        **{"call": 1, "while tracing": 1},
    }
    details = {timeline.text(detail) for detail in of_user.detail}
    assert details == {"", *(f"batch={number}, path=/x" for number in range(4))}
    python = {timeline.text(name) for name in timeline.ranges.name[timeline.ranges.kind == RangeKind.PYTHON]}
    assert any(name.endswith(" preprocess") for name in python) == with_python
    assert ("python" in timeline.blind) != with_python


def test_steps_are_no_ranges(cpu_trace):
    timeline = read(cpu_trace[0])
    assert timeline.steps.number.tolist() == [10, 11, 12, 13]
    assert {timeline.text(name) for name in timeline.steps.name} == {"train"}
    assert "train" not in {timeline.text(name) for name in timeline.ranges.name}
    inner = timeline.ranges.take(timeline.ranges.name == timeline.find("inner part")[0])
    ends = timeline.steps.start_ns + timeline.steps.duration_ns
    assert ((timeline.steps.start_ns < inner.start_ns) & (inner.start_ns + inner.duration_ns < ends)).all()
    assert (inner.duration_ns >= 1e6).all(), "it slept a millisecond"


def test_what_was_compiled_is_told_by_function_and_phase(cpu_trace):
    timeline = read(cpu_trace[0])
    found = {
        (timeline.text(function), Phase(int(phase)))
        for function, phase in zip(timeline.compiles.function, timeline.compiles.phase, strict=True)
    }
    for function, times in (("train_step", 2), ("traced", 1)):
        assert {(function, phase) for phase in (Phase.TRACE, Phase.LOWER, Phase.COMPILE)} <= found
        compiled = (timeline.compiles.phase == Phase.COMPILE) & (
            timeline.compiles.function == timeline.find(function)[0]
        )
        assert compiled.sum() == times
    assert "jaxprof_fence" not in {function for function, _ in found}
    spans = timeline.compiles.take(timeline.compiles.phase == Phase.COMPILE)
    assert (spans.start_ns[1:] >= (spans.start_ns + spans.duration_ns)[:-1]).all(), "one after the other"


def test_what_a_cpu_trace_cannot_tell(cpu_trace):
    timeline = read(cpu_trace[0])
    assert {"devices", "allocator"} <= timeline.blind
    assert not {"host", "compiles"} & timeline.blind
    assert timeline.devices == ()
    assert len(timeline.ops) == len(timeline.collectives) == len(timeline.allocator) == 0


def test_ranges_of_a_thread_nest(cpu_trace):
    timeline = read(cpu_trace[0])
    ranges = timeline.ranges.take(timeline.ranges.kind != RangeKind.PYTHON)
    assert (np.diff(timeline.ranges.start_ns) >= 0).all()
    for thread in np.unique(ranges.thread):
        own = ranges.take(ranges.thread == thread)
        open_until: list[float] = []
        for start, end in zip(own.start_ns, own.start_ns + own.duration_ns, strict=True):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)
